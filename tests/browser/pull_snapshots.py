"""What stands on a pull request beside the live comment, for `snapshots`: a review, a check run, work on a fork."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bot.agent.findings import KeptBack, ReviewFinding, ReviewReport, ReviewVerdict, Severity, dump
from bot.kinds.review import HandedOver
from bot.kinds.shape import OnFork
from bot.live import check_runs, open_findings, questions
from bot.live.open_findings import Reviewed
from bot.live.page import TurnView
from bot.models import Fork, Outcome, RepoId, SessionId, Step, TurnState
from bot.outbound import neutralise
from bot.simulation.github import accounts, threads
from bot.simulation.pages.pulls import SIGNS, timeline
from bot.simulation.pages.views import templates
from bot.store.approvals import Approval, ApprovalKind, ApprovalState, Scope
from bot.store.findings import StoredFinding
from bot.words import on_forks, on_reviews
from bot.words.on_forks import Patch
from bot.words.on_reviews import ReviewAccount
from tests.unit.test_live_comment import fold, view

REPO: Any = SimpleNamespace(full_name="octo-org/shop", path=Path())
BOT = accounts.Account(1, "forgehand[bot]", "Bot")
LONG = "src/a_rather_long_package_name/with_a_module_of_a_long_name_too/baskets_of_the_shop.py"
HUNK = """@@ -0,0 +1,14 @@
+def mean_price(prices: list[float], percent: float = 0) -> float:
+    total = sum(discounted(price, percent) for price in prices)
+    return total / len(prices)"""
EMPTY = ReviewFinding(
    path="basket.py",
    line=3,
    body="An empty basket divides by zero here: `mean_price([])` raises `ZeroDivisionError`. See #3 and @octo.",
    severity=Severity.MAJOR,
    confidence=0.9,
    suggestion="    return total / len(prices) if prices else 0.0",
)
SPAN = ReviewFinding(path=LONG, line=3, start_line=1, body="Nothing tests this.", severity=Severity.NIT, confidence=0.5)
AWAY = ReviewFinding(
    path="shop.py", line=7, body="This rounds twice now.", severity=Severity.MINOR, suggestion="    return price"
)
FOUND = ReviewReport(
    ReviewVerdict.REQUEST_CHANGES, "The idea is **sound**, but an empty basket goes wrong.", (EMPTY, SPAN, AWAY)
)
ACCOUNT_PULL = "https://github.com/octo-org/shop/pull/2"
SAID = SimpleNamespace(id="ab-1-1", path="basket.py", line=14, body="Lowest, not dearest.")
ACCOUNT = ReviewAccount(
    verdict=ReviewVerdict.REQUEST_CHANGES,
    approves=False,
    summary=FOUND.summary,
    on_lines=2,
    below=[AWAY],
    unsaid=0,
    left_out=1,
    repeated=1,
    resolved=[SAID],
    notes=["what the pull request changes in logo.svg data.json: the diff is longer than is read"],
    commit="5959b07807747829012fe97effebb55e4d77f57b",
    base="main",
    base_now="release",
    moved_to="77f57b5959b07807747829012fe97effebb55e4d",
    graded=[Severity.MAJOR, Severity.NIT, Severity.MINOR],
    kept_back=KeptBack(Severity.NIT, ignored=2, dismissed=1),
)
FORK = Fork(7, "mallory/shop", "feature")
DIFF = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def half(n):\n-    return n / 0\n+    return n / 2\n"


def forms() -> dict[str, str]:
    """Each as the inside of a page."""
    module: Any = templates(lambda at: "now").get_template("pull.html").module
    return {
        "pull-review": str(module.review(_review(), REPO)),
        "pull-check-review": _check(module, _turn(Outcome.REVIEWED)),
        "pull-check-queued": _check(module, None),
        "pull-fork-patch": _comment(on_forks.patch_comment(_patch(neutralise.block(DIFF, "diff")))),
        "pull-fork-patch-large": _comment(on_forks.patch_comment(_patch(None))),
    }


def views() -> dict[str, TurnView]:
    """Live comments of turns on a fork."""
    sha, url = ACCOUNT.commit, "https://github.com/octo-org/shop/pull/2#pullrequestreview-1"
    asked = Approval(
        SessionId("abcd1234"),
        1,
        "abcd1234-1-fork",
        ApprovalKind.FORK,
        ApprovalState.OPEN,
        "",
        {"sha": sha},
        1000.0,
        1600.0,
        Scope.ONCE,
        None,
        None,
        None,
        late=False,
    )
    offered = tuple(questions.to_adopt(asked.id, sha[: on_forks.SHORT]))
    on_a_fork: dict[str, Any] = {
        "state": TurnState.DONE,
        "step": Step.SETTLE,
        "parts": [OnFork(FORK, "x")],
        "finished_at": 1240.0,
    }
    done = view(fold(), outcome=Outcome.REVIEWED, detail=on_forks.suggested(2, 3, url), **on_a_fork)
    done = replace(done, turn=replace(done.turn, agent_result="Halving divides by **two** now."))
    patched = view(fold(), outcome=Outcome.ANSWERED, detail=on_forks.patched(on_forks.moved(sha, sha)), **on_a_fork)
    pushed = view(fold(), outcome=Outcome.PUSHED, detail=on_forks.pushed(FORK, sha), **on_a_fork)
    void = replace(asked, state=ApprovalState.EXPIRED)
    reviewed = Reviewed([_stored(1, EMPTY), _stored(2, AWAY), _stored(3, SPAN)], [_stored(4, SPAN)], ACCOUNT_PULL)
    over: dict[str, Any] = {"step": Step.SETTLE, "parts": [HandedOver(dump(FOUND), 1)], "finished_at": 1240.0}
    words = on_reviews.in_short(ACCOUNT, f"{ACCOUNT_PULL}#pullrequestreview-1")
    review = view(fold(), outcome=Outcome.REVIEWED, kind="review", detail=words, state=TurnState.DONE, **over)
    return {
        "end-review-findings": replace(review, reviewed=reviewed, boxes=tuple(open_findings.boxes(reviewed))),
        "end-fork-suggested": replace(done, asked=(asked,), boxes=offered),
        "end-fork-void": replace(done, asked=(void,)),
        "end-fork-patched": patched,
        "end-fork-pushed": pushed,
    }


def _stored(place: int, one: ReviewFinding) -> StoredFinding:
    session, repo = SessionId("ab12cd34"), RepoId(1)
    name = f"{session}-1-{place}"
    return StoredFinding(
        name, session, 1, place, repo, 2, one.path, one.line, one.body, "", 1, 10 + place, one.severity
    )


def _review() -> Any:
    summary = on_reviews.summary(ACCOUNT, neutralise.inert)
    bodies = [on_reviews.on_line(one, f"ab-1-{n}", neutralise.inert) for n, one in enumerate((EMPTY, SPAN))]
    lines = [
        threads.ReviewComment(n, one.path, body, one.line, "RIGHT", one.start_line, 0.0, HUNK)
        for n, (one, body) in enumerate(zip((EMPTY, SPAN), bodies, strict=True))
    ]
    lines[1].resolved_by = BOT
    pull: Any = SimpleNamespace(issue=SimpleNamespace(repo=REPO, comments=[]), reviews=[])
    pull.issue.pull = pull
    pull.reviews = [threads.Review(1, pull, BOT, "CHANGES_REQUESTED", neutralise.whole(summary), "", 0.0, lines)]
    return timeline(pull.issue)[0]


def _turn(outcome: Outcome) -> Any:
    found = replace(FOUND, comments=(EMPTY, replace(SPAN, path="basket.py")))
    words = on_reviews.in_short(ACCOUNT, "https://github.com/octo-org/shop/pull/2#pullrequestreview-1")
    return view(fold(), outcome=outcome, kind="review", parts=[HandedOver(dump(found))], detail=words).turn


def _check(module: Any, turn: Any) -> str:
    output = check_runs.check_output(turn or _turn(Outcome.REVIEWED), "done" if turn else "queued")
    shown = [
        {
            "annotation_level": one.level,
            "title": one.title,
            "path": one.path,
            "start_line": one.first,
            "end_line": one.last,
            "message": one.message,
        }
        for one in output.annotations
    ]
    run = SimpleNamespace(
        id=1,
        name=check_runs.NAME,
        conclusion=output.conclusion,
        status=output.status,
        output={"title": output.title, "summary": output.summary, "annotations": shown},
        actions=[{"label": one.label, "description": one.what} for one in output.buttons],
    )
    return str(module.check(SIGNS.get(output.conclusion, "⚪"), run, REPO))


def _patch(block: str | None) -> Patch:
    page, command = "https://bot.example/sessions/abcd1234/patch/1", "forgehand sessions patch abcd1234 --turn 1"
    return Patch(2, FORK, ACCOUNT.commit, block, 1 if block else 1234, page, command)


def _comment(words: str) -> str:
    entry: Any = templates(lambda at: "now").from_string(
        '<article class="comment bot"><header><strong>forgehand</strong></header>'
        '<div class="words">{{ words|markdown(repo) }}</div></article>'
    )
    return str(entry.render(words=neutralise.whole(words), repo=REPO))
