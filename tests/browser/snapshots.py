"""`python -m tests.browser.snapshots OUT_DIR`: the live comment and a pull request as images: light, dark, narrow."""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from bot.git.inspection import Change
from bot.kinds.shape import AgentReading, BroughtHome
from bot.live import questions as boxes
from bot.live import questions as live_questions
from bot.live import render
from bot.live.page import QueuePlace, TurnView
from bot.models import Outcome, Step, TurnState
from bot.outbound import neutralise
from bot.proposal import descriptions
from bot.proposal.descriptions import Extras
from bot.proposal.push_policy import look_closely
from bot.sessions import dialogue
from bot.simulation.pages import markdown
from bot.store.approvals import Approval, ApprovalKind, ApprovalState, Scope
from bot.store.sessions import Turn
from bot.words import endings, on_approvals, on_pushes
from sandbox.agents.events import (
    AgentSaid,
    FileChanged,
    PermissionAsked,
    Retrying,
    SessionStarted,
    Todo,
    TodoChanged,
    ToolCalled,
    ToolReturned,
)
from tests.browser import pull_snapshots
from tests.unit.test_live_comment import fold, view

CSS = Path(markdown.__file__).parent / "static" / "watch.css"
THEMES = {"light": (860, "light"), "dark": (860, "dark"), "narrow": (375, "light")}
PAGE = (
    '<!doctype html><meta charset="utf-8"><style>{css}</style><main><article class="comment bot">'
    "<header><strong>forgehand</strong></header>"
    '<div class="words">{body}</div></article></main>'
)
TODO = TodoChanged(
    (
        Todo("Reproduce the failure", "completed"),
        Todo("Fix `discounted`", "in_progress"),
        Todo("Run the tests", "pending"),
    )
)
WORK = (
    SessionStarted("x", "claude-sonnet-5-5", "2"),
    TODO,
    AgentSaid("The rounding happens before the discount is capped. I will **cap first**, then round."),
    ToolCalled("1", "Bash", "python3 -m unittest 2>&1"),
    ToolReturned("1", False, "FAIL: test_never_below_zero\n2 failures"),
    ToolCalled("2", "Edit", "shop.py"),
    ToolReturned("2", True, "The file shop.py has been updated."),
    FileChanged("shop.py", 4, 1),
    ToolCalled("3", "Bash", "python3 -m unittest -v tests.test_a_very_long_module_name.WithALongClass.and_method"),
)
LONG = TodoChanged(tuple(Todo(f"Step {n} of a long list, with some words to it", "pending") for n in range(40)))
TALK = tuple(AgentSaid(f"Line {n} of the log, which goes on and on.") for n in range(60))
RESULT = (
    "Prices are capped at **zero**; discounts below it are refused.\n\n```python\nmax(0.0, price)\n```\n\n- one\n- two"
)
FILES = ({"path": "shop.py", "added": 4, "removed": 1}, {"path": "logo.png", "added": None, "removed": None})
CHECKS = (
    {"command": "python3 -m unittest -q", "exit_code": 0, "where": "fresh", "sha": "4f2c" * 10, "seconds": 3.4},
    {
        "command": "ruff check",
        "exit_code": 1,
        "where": "fresh",
        "sha": "4f2c" * 10,
        "seconds": 0.2,
        "base_exit_code": 0,
        "tail": "E501 Line too long (124 > 120)\n --> shop.py:7:121\nFound 1 error.",
    },
    {"command": "mypy", "exit_code": 2, "where": "fresh", "sha": "4f2c" * 10, "seconds": 1.1, "base_exit_code": 2},
)
ASKED = PermissionAsked(
    "r1", "Bash", "", {"command": "curl -fsS https://example.org/data.csv\n", "description": "Get the prices"}
)
PLAN = "1. Clamp the price at zero in `shop.py`.\n2. Add a test for a discount of 120 %.\n\nNothing else changes."
BLOCKED = ({"host": "example.org", "port": 443, "count": 3}, {"host": "db.example.net", "port": 5432, "count": 1})
NOTES = ("2 comments by people without write access", "1 comment that was changed after the request")


def forms() -> dict[str, TurnView]:
    """By name."""
    working = view(fold(*WORK))
    found = {
        "queued": view(state=TurnState.QUEUED, step=Step.PREPARE, place=QueuePlace(3, 8, estimate=500, known=20)),
        "queued-behind": view(
            state=TurnState.QUEUED, step=Step.PREPARE, place=QueuePlace(1, 1, behind_own_thread=True)
        ),
        **{f"step-{step.value}": view(step=step) for step in Step},
        "working": working,
        "working-silent": replace(working, now=working.now + 300),
        "working-retrying": view(fold(*WORK, Retrying(3, 529, "overloaded", 4.0))),
        "working-long": view(fold(LONG, *TALK, *WORK[3:])),
        "working-crowded": replace(working, crowded=True),
        "stopping": view(fold(*WORK), stop_requested="alice"),
    }
    found = {name: replace(one, boxes=(boxes.STOP,) * (name != "stopping")) for name, one in found.items()}
    asked = boxes.to_answer("abcd1234-1", plan=True)
    for outcome in Outcome:
        offered = boxes.at_the_end(outcome)
        found[f"end-{outcome}"] = replace(_ended(outcome), boxes=(*asked * (outcome is Outcome.PLANNED), *offered))
    return found | _among_people() | _checked()


def _among_people() -> dict[str, TurnView]:
    """Where somebody asks, answers, steers, or is told what was not done."""
    working, pull = view(fold(*WORK)), _ended(Outcome.PULL_REQUEST)
    question = Approval(
        working.session.id,
        1,
        "abcd1234-1-1",
        ApprovalKind.TOOL,
        ApprovalState.OPEN,
        "r1",
        dialogue.matter(ASKED),
        1000.0,
        1600.0,
        Scope.ONCE,
        None,
        None,
        None,
        late=False,
    )
    state = fold(*WORK)
    state.heard += [("alice", "Leave the tax as it is, please."), ("bob", "And mind `tests/test_shop.py`: it is slow.")]
    no_answer = endings.nobody_answered(question.id, str(question.matter["shown"]), "/claude")
    waiting = view(state=TurnState.QUEUED, step=Step.PREPARE, place=QueuePlace(2, 0))
    stop, answers = (boxes.STOP,), tuple(boxes.to_answer(question.id, plan=False))
    needs, planned = _ended(Outcome.NEEDS_INPUT), _ended(Outcome.PLANNED)
    late = tuple(boxes.to_answer_late(question.id))
    over = replace(question, state=ApprovalState.EXPIRED)
    out = {"hosts": ["example.org"], "shown": on_approvals.hosts_asked(["example.org"])}
    yes = replace(question, id="abcd1234-1", kind=ApprovalKind.PLAN, state=ApprovalState.APPROVED, answered_by="bob")
    return {
        "working-asking": replace(working, asks=(question,), boxes=(*answers, *stop)),
        "working-steered": replace(view(state), boxes=stop),
        "queued-paused": replace(waiting, paused=True, boxes=stop),
        "end-unanswered": replace(needs, turn=replace(needs.turn, detail=no_answer), boxes=late, asked=(over,)),
        "end-blocked-asked": replace(
            pull, turn=pull.turn.having(BroughtHome(BLOCKED)), boxes=late, asked=(replace(over, matter=out),)
        ),
        "end-plan-approved": replace(planned, asked=(yes,)),
        "end-plan-denied": replace(planned, asked=(replace(yes, state=ApprovalState.DENIED),)),
        "end-plan-over": replace(planned, asked=(replace(yes, state=ApprovalState.EXPIRED, answered_by=None),)),
        "end-blocked": replace(pull, turn=pull.turn.having(BroughtHome(BLOCKED))),
        "end-stopped-saving": view(
            fold(*WORK), step=Step.COLLECT, outcome=Outcome.STOPPED, detail="alice asked to stop.", stop_at=0.0
        ),
        "end-asked-too-late": replace(pull, turn=replace(pull.turn, stop_requested="alice")),
        "end-held": held(),
        "end-withheld": replace(
            pull, turn=pull.turn.having(AgentReading(notes=NOTES, ignored=("CLAUDE.md",)), base="main")
        ),
    }


def _checked() -> dict[str, TurnView]:
    """Where the declared checks run, fail, go back to the agent, or run where it worked."""
    pull = _ended(Outcome.PULL_REQUEST)
    agents = tuple({**one, "where": "agent", "sha": ""} for one in CHECKS[:2])
    return {
        "working-verifying": replace(view(fold(*WORK), step=Step.VERIFY, verified=CHECKS[:1]), boxes=(boxes.STOP,)),
        "working-mending": replace(view(fold(*WORK), mending=1, verified=CHECKS), boxes=(boxes.STOP,)),
        "end-mended": replace(pull, turn=replace(pull.turn, mending=1), verified=list(CHECKS[:1])),
        "end-verified-where-the-agent-was": replace(pull, verified=list(agents)),
    }


def _ended(outcome: Outcome) -> TurnView:
    short = outcome in (Outcome.STOPPED, Outcome.TIMED_OUT, Outcome.OVER_BUDGET, Outcome.KILLED)
    why = "alice asked to stop." if outcome is Outcome.STOPPED else "Why it ended like this." if short else ""
    planned = outcome is Outcome.PLANNED
    return view(
        fold(*WORK),
        state=TurnState.DONE,
        step=Step.SETTLE,
        outcome=outcome,
        detail=endings.plan_waits("abcd1234-1", 7) if planned else why,
        agent_result=PLAN if planned else RESULT,
        finished_at=1240.0,
        files_changed=FILES if outcome in (Outcome.PULL_REQUEST, Outcome.PUSHED) else (),
        verified=CHECKS if outcome is Outcome.PULL_REQUEST else (),
        rescue_ref="refs/forgehand/rescue/abcd1234-1" if short else None,
    )


def questions() -> dict[str, str]:
    """The comments beside the live one in which the agent's questions are put."""
    asking = _among_people()["working-asking"].asks[0]
    said = replace(asking, state=ApprovalState.APPROVED, answered_by="bob", scope=Scope.SESSION)
    found = {
        "open": asking,
        "yes": said,
        "no": replace(said, state=ApprovalState.DENIED),
        "over": replace(asking, state=ApprovalState.EXPIRED),
    }
    return {f"question-{name}": live_questions.body(one, "/claude") for name, one in found.items()}


def pulls() -> dict[str, str]:
    """Texts of pull requests, by name."""
    report = look_closely(
        [
            Change("auth/session.py", "M", "100644", "100644", "1" * 40, size=2048, added=12, removed=3),
            Change(".github/workflows/ci.yml", "M", "100644", "100644", "1" * 40, size=400, added=2, removed=2),
            Change("web/package-lock.json", "M", "100644", "100644", "1" * 40, size=3 << 20, added=9000, removed=800),
            Change(
                "web/a/very/long/path/to/some/asset/that/does/not/fit/logo.png",
                "A",
                "0",
                "100644",
                "1" * 40,
                binary=True,
            ),
            Change("scripts/deploy.sh", "M", "100644", "100755", "1" * 40),
        ],
        sensitive=["auth/**"],
        let_go_by="bob",
    )
    template = (
        "## Description\n\n## Type of change\n\n- [ ] Bug fix\n- [ ] Feature\n\n"
        "## How has this been tested?\n\n## Checklist\n\n- [ ] I have read the rules\n- [ ] I have told the team\n"
    )
    turn = _ended(Outcome.PULL_REQUEST).turn
    texts = {"plain": Extras(), "report": Extras(report), "template": Extras(report, template, closes=True)}
    return {f"pull-{name}": _pull(turn, extras) for name, extras in texts.items()}


def _pull(turn: Turn, extras: Extras) -> str:
    cost = view().cost
    return descriptions.pull_body(
        turn,
        number=12,
        files=FILES,
        verified=CHECKS,
        seconds=240,
        cost=cost,
        extras=extras,
        inert=neutralise.inert,
        block=neutralise.block,
    )


def held() -> TurnView:
    """A commit that waits for somebody's yes."""
    path = ".github/workflows/ci.yml"
    patch = f"diff --git a/{path} b/{path}\n@@ -1 +1 @@\n-on: push\n+on: [push, pull_request]"
    one = _ended(Outcome.REFUSED)
    approval = Approval(
        one.session.id,
        1,
        "abcd1234-1-1",
        ApprovalKind.PUSH,
        ApprovalState.OPEN,
        "",
        {},
        1000.0,
        1600.0,
        Scope.ONCE,
        None,
        None,
        None,
        late=False,
    )
    words = on_pushes.waits(on_pushes.held([path], "1" * 40, patch, 7, cut=False), approval.id)
    turn = replace(one.turn, detail=words, kept="abcd1234-1.bundle")
    return replace(one, turn=turn, asks=(approval,), asked=(approval,), boxes=tuple(boxes.to_let_go(approval.id)))


def page(one: TurnView | str) -> str:
    body = markdown.to_html(
        neutralise.whole(one, 12) if isinstance(one, str) else neutralise.whole(render.comment(one)), "octo-org/shop"
    )
    return PAGE.format(css=CSS.read_text(), body=body.replace("<details>", "<details open>"))


def pages() -> dict[str, str]:
    """All that is to be looked at."""
    bare = PAGE.replace('<article class="comment bot"><header><strong>forgehand</strong></header>', "")
    bare = bare.replace('<div class="words">{body}</div></article>', "{body}")
    beside = {
        name: bare.format(css=CSS.read_text(), body=html.replace("<details>", "<details open>"))
        for name, html in pull_snapshots.forms().items()
    }
    return {
        name: page(one) for name, one in (forms() | questions() | pulls() | pull_snapshots.views()).items()
    } | beside


async def taken(browser: Browser, out: Path) -> None:
    for theme, (width, scheme) in THEMES.items():
        (out / theme).mkdir(parents=True, exist_ok=True)
        size = {"width": width, "height": 300}
        tab = await browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        for name, html in pages().items():
            await tab.set_content(html)
            wide = await tab.evaluate("document.documentElement.scrollWidth > innerWidth")
            assert not wide, f"{name} does not fit into {width} pixels"
            await tab.screenshot(path=out / theme / f"{name}.png", full_page=True)
        await tab.close()


async def main(out: Path) -> None:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        await taken(browser, out)
        await browser.close()
    print(f"{len(pages()) * len(THEMES)} images in {out}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
