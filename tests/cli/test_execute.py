"""`forgehand execute` as a person runs it: the real command line, real boxes, the real agent, a scripted model."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bot.simulation.anthropic import Call, Calls, Say, Script, SimulatedAnthropic, Wait
from bot.simulation.scenarios import discount
from bot.workbench import slots
from tests.foreign_folder import keys
from tests.foreign_folder.planting import Listener, plant
from tests.world.environments import short_folder

MODEL_KEY = "sk-ant-api03-" + "canary-model-key" * 4
ROOT = Path(__file__).parents[2]
FACTS = {"outcome", "branch", "files", "left_out", "cost_usd", "usage", "seconds", "result", "detail", "isolation"}
SECONDS = 60.0


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def facts(self) -> dict[str, Any]:
        """The one object on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        assert set(found) == FACTS
        return found


@dataclass
class Desk:
    """A person's terminal: a home of their own, a data directory, a key."""

    home: Path
    data: Path
    model: SimulatedAnthropic
    environment: dict[str, str] = field(default_factory=dict)

    @asynccontextmanager
    async def started(
        self, *arguments: str, under: Sequence[str] = (), **changes: str
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.home),
            "FORGEHAND_DATA_DIR": str(self.data),
            "ANTHROPIC_API_KEY": MODEL_KEY,
            "ANTHROPIC_BASE_URL": self.model.url,
            **changes,
        }
        argv = [*under, sys.executable, "-m", "bot", "execute", *arguments]
        process = await asyncio.create_subprocess_exec(*argv, cwd=self.home, env=environment, stdout=-1, stderr=-1)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    async def execute(self, *arguments: str, under: Sequence[str] = (), **changes: str) -> Ended:
        async with self.started(*arguments, under=under, **changes) as process:
            return await ended(process)

    def left_running(self) -> list[str]:
        """Environments, sockets and scratch folders: none of it may outlive a run."""
        root = self.data / "execute"
        found = [*root.glob("*.run"), *root.glob("[0-9]*/boxes/*"), *root.glob("[0-9]*/sockets/*")]
        return [str(path) for path in [*found, *root.glob("[0-9]*/plain/*")]]


async def ended(process: asyncio.subprocess.Process) -> Ended:
    async with asyncio.timeout(SECONDS):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """One for the module: the agent's binary is laid out once in it."""
    with short_folder() as folder:
        found = folder / "data"
        found.mkdir(mode=0o711)
        yield found


@pytest.fixture
async def desk(tmp_path: Path, data: Path) -> AsyncIterator[Desk]:
    home = tmp_path / "home"
    home.mkdir()
    async with SimulatedAnthropic.running(api_key=MODEL_KEY) as model:
        model.default(discount.script(paced=False))
        yield (desk := Desk(home, data, model))
    assert desk.left_running() == []


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def shop(folder: Path) -> Path:
    for name, text in discount.FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def repository(folder: Path) -> Path:
    shop(folder)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def own_state(folder: Path) -> tuple[str, ...]:
    """Everything of a repository that must stay as it was, whatever is added to it."""
    files = (folder / ".git" / name for name in ("HEAD", "index", "config", "refs/heads/main"))
    hashes = (hashlib.sha256(file.read_bytes()).hexdigest() for file in files)
    return (*hashes, git(folder, "status", "--porcelain"))


@pytest.mark.quick
async def test_work_on_a_clean_repository_comes_back_as_a_branch(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    before = own_state(folder)
    found = await desk.execute("fix the discount", "--path", str(folder))
    assert found.code == 0, found.err
    branch = git(folder, "branch", "--list", "forgehand/*", "--format=%(refname:short)").strip()
    assert own_state(folder) == before
    assert git(folder, "rev-parse", f"{branch}~1") == git(folder, "rev-parse", "main")
    assert git(folder, "diff", "--name-only", "main", branch).split() == ["shop.py"]
    assert "max(0.0" in git(folder, "show", f"{branch}:shop.py")
    assert "fix the discount" in git(folder, "log", "-1", "--format=%B", branch)
    assert f"git -C {folder} merge {branch}" in found.out
    assert "✓ Done" in found.out
    assert "\x1b" not in found.out + found.err
    lines = found.err.splitlines()
    assert re.search(r"^▶ \[[12]/3\] Run the tests$", found.err, re.MULTILINE)
    assert "✓ Edit shop.py" in lines
    git(folder, "merge", "--quiet", branch)


async def test_uncommitted_work_is_seen_and_kept_apart(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    (folder / "README.md").write_text("# shop\n\nStaged.\n", encoding="utf-8")
    git(folder, "add", "README.md")
    (folder / "README.md").write_text("# shop\n\nStaged and changed again.\n", encoding="utf-8")
    (folder / "notes.txt").write_text("untracked\n", encoding="utf-8")
    (folder / "own.log").write_text("ignored by the person\n", encoding="utf-8")
    (desk.home / ".config/git").mkdir(parents=True)
    (desk.home / ".config/git/ignore").write_text("*.log\n", encoding="utf-8")
    (folder / "test_shop.py").unlink()
    before = own_state(folder)
    steps = Calls([Call("Bash", {"command": "ls -A; cat README.md; echo trace > agent.log; echo more >> notes.txt"})])
    desk.model.default(Script([steps, Say("Done.")]))
    found = await desk.execute("look", "--path", str(folder), "--json")
    assert (found.code, found.facts["outcome"]) == (0, "done"), found.err
    [seen] = desk.model.requests[-1].tool_results
    assert "Staged and changed again." in seen.text
    assert "notes.txt" in seen.text
    assert "own.log" not in seen.text
    assert "test_shop.py" not in seen.text
    assert own_state(folder) == before
    branch = found.facts["branch"]
    assert [file["path"] for file in found.facts["files"]] == ["notes.txt"]
    assert git(folder, "show", f"{branch}:notes.txt") == "untracked\nmore\n"
    assert git(folder, "rev-parse", f"{branch}~2") == git(folder, "rev-parse", "main")
    changed = git(folder, "diff", "--name-status", "main", f"{branch}~1").split("\n")
    assert changed[:-1] == ["M\tREADME.md", "A\tnotes.txt", "D\ttest_shop.py"]


async def test_a_folder_without_repository_is_changed_on_request(desk: Desk) -> None:
    folder = shop(desk.home / "shop")
    kept = await desk.execute("fix it", "--path", str(folder), "--json")
    assert (kept.code, kept.facts["branch"]) == (0, None), kept.err
    assert "max(0.0" not in (folder / "shop.py").read_text(encoding="utf-8")
    patch = next((desk.data / "execute/kept").glob("*.patch"))
    assert str(patch) in kept.facts["detail"]
    found = await desk.execute("fix it", "--path", "shop", "--apply", "--json")
    facts = found.facts
    assert (found.code, facts["outcome"], facts["branch"]) == (0, "done", None), found.err
    assert facts["files"] == [{"path": "shop.py", "added": 4, "removed": 2}]
    assert "all three tests pass" in facts["result"]
    assert facts["cost_usd"] > 0
    assert facts["usage"]["output_tokens"] > 0
    assert 0 < facts["seconds"] < SECONDS
    assert facts["isolation"] == "local boxes (bubblewrap)"
    assert "max(0.0" in (folder / "shop.py").read_text(encoding="utf-8")
    assert not (folder / ".git").exists()
    assert "✓ Done" in found.err


async def test_nothing_of_the_person_is_run_and_no_key_goes_in(desk: Desk) -> None:
    folder, canary = repository(desk.home / "shop"), desk.home / "canary"
    for hook in ("reference-transaction", "post-index-change", "pre-commit", "post-commit", "update", "post-merge"):
        file = folder / ".git/hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\necho {hook} >> {canary}\n", encoding="utf-8")
        file.chmod(0o755)
    with (folder / ".git/config").open("a", encoding="utf-8") as config:
        config.write(f'[filter "own"]\n\tclean = echo clean >> {canary}; cat\n\tsmudge = echo >> {canary}; cat\n')
        config.write(f"[core]\n\tfsmonitor = echo fsmonitor >> {canary}; false\n")
        config.write('[http]\n\textraHeader = "Authorization: Basic canary-of-git"\n')
    (folder / ".gitattributes").write_text("*.py filter=own\n", encoding="utf-8")
    (folder / "test_shop.py").write_text(f"{discount.TESTS}# changed\n", encoding="utf-8")
    look = Call("Bash", {"command": "env; cat .git/config; cat /proc/*/environ | tr '\\0' '\\n'; ls .git/hooks"})
    change = Call("Bash", {"command": "echo '# fixed' >> shop.py"})
    desk.model.default(Script([look, change, Say("Done.")]))
    found = await desk.execute("look around", "--path", str(folder), "--apply", "--json")
    assert (found.code, found.facts["outcome"]) == (0, "done"), found.err
    assert (folder / "shop.py").read_text(encoding="utf-8").endswith("# fixed\n")
    assert not canary.exists(), canary.read_text(encoding="utf-8")
    seen = desk.model.requests[-1].tool_results[0].text
    assert "ANTHROPIC_BASE_URL" in seen
    assert MODEL_KEY not in seen
    assert "canary" not in seen.replace(str(canary), "")


@pytest.mark.review("security-3", "security-4")
@pytest.mark.parametrize("options", [("--apply",), ("--no-isolation",), ("--path", "sub")])
async def test_no_setting_of_the_folder_counts(desk: Desk, options: tuple[str, ...]) -> None:
    """Everything at once that git's config can do, in every place; `tests/foreign_folder` has each by itself."""
    async with Listener.running() as listener:
        planted = plant(desk.home, keys.ROWS, net=listener.address, remote=f"http://{listener.address}/")
        (planted.folder / "sub").mkdir()
        (planted.folder / "sub/c.txt").write_text("c\n")
        before = planted.state()
        desk.model.default(Script([Call("Bash", {"command": "echo worked > work.txt"}), Say("Done.")]))
        where = () if "--path" in options else ("--path", ".")
        found = await desk.execute("work", *where, *options, "--json", under=["env", "-C", str(planted.folder)])
        assert (found.code, found.facts["outcome"]) == (0, "done"), found.err
        assert (planted.found(), listener.heard) == ([], [])
        assert planted.state() == before
        assert (planted.folder / "work.txt").exists() is ("--apply" in options)


async def test_what_is_right_is_left_alone(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("a\n", encoding="utf-8")
    (folder / "AGENTS.md").write_text("Always be brief.\n", encoding="utf-8")
    desk.model.default(Script([Say("It is right as it is.")]))
    found = await desk.execute("anything wrong?", "--path", str(folder / "sub"), "--json")
    assert (found.code, found.facts["outcome"]) == (0, "no_change"), found.err
    assert found.facts["result"] == "It is right as it is."
    assert git(folder, "branch", "--list", "forgehand/*") == ""
    system = next(request.system for request in desk.model.requests if request.has_tools)
    assert "about the folder `sub`" in system
    assert "Always be brief." in system


async def test_money_and_time_end_it_with_their_own_codes(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    poor = await desk.execute("fix it", "--path", str(folder), "--budget", "0.02", "--json")
    assert (poor.code, poor.facts["outcome"]) == (3, "over_budget"), poor.err
    assert "$0.02" in poor.facts["detail"]
    desk.model.default(Script([Call("Bash", {"command": "echo half > half.txt"}), Wait("never"), Say("Too late.")]))
    late = await desk.execute("fix it", "--path", str(folder), "--timeout", "10s", "--json", "--apply")
    assert (late.code, late.facts["outcome"]) == (4, "timed_out"), late.err
    assert git(folder, "show", f"{late.facts['branch']}:half.txt") == "half\n", "what was paid for is kept"
    assert not (folder / "half.txt").exists(), "unfinished work is not applied"


async def test_an_interrupt_keeps_the_work_and_a_second_one_throws_it_away(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    half = Call("Bash", {"command": "echo half > half.txt"})
    desk.model.default(Script([half, Wait("first"), Say("Never said.")]))
    async with desk.started("fix it", "--path", str(folder), "--json") as process:
        await desk.model.reached("first", SECONDS)
        process.send_signal(signal.SIGINT)
        stopped = await ended(process)
    assert (stopped.code, stopped.facts["outcome"]) == (130, "stopped"), stopped.err
    assert [file["path"] for file in stopped.facts["files"]] == ["half.txt"]
    assert git(folder, "show", f"{stopped.facts['branch']}:half.txt") == "half\n"
    busy = Call("Bash", {"command": "trap '' TERM; while :; do sleep 1; done"})
    desk.model.default(Script([Call("Bash", {"command": "echo more > more.txt"}), Wait("second"), busy]))
    async with desk.started("fix it", "--path", str(folder), "--json") as process:
        await desk.model.reached("second", SECONDS)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while b"Press Ctrl-C again to throw the work away" not in await process.stderr.readline():
            assert not process.stderr.at_eof()
        process.send_signal(signal.SIGINT)
        abandoned = await ended(process)
    assert (abandoned.code, abandoned.facts["outcome"]) == (130, "stopped"), abandoned.err


async def test_a_token_that_has_ended_is_not_told_as_a_key_that_is_refused(desk: Desk) -> None:
    desk.model.default(Script([Wait("on"), Call("Bash", {"command": "echo x > x"}), Say("Done.")]))
    async with desk.started("Do it", "--path", str(repository(desk.home / "shop"))) as process:
        await desk.model.reached("on", 30)
        [store] = (desk.data / "execute").glob("*.run/store/state.db")
        with closing(sqlite3.connect(store, timeout=10)) as db, db:
            db.execute("UPDATE gateway_tokens SET revoked_at = 1")
        desk.model.release("on")
        found = await ended(process)
    assert found.code == 1 and "no longer accepted this turn's token" in found.err + found.out, found.err
    assert "ANTHROPIC_API_KEY" not in found.err + found.out


async def test_policy_holds_what_leaves_the_folder(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    odd = "; mkdir -p a/git~1; echo x > a/git~1/x"
    link = Call(
        "Bash", {"command": "ln -s /etc/passwd link; mkdir -p .github/workflows; echo x > .github/workflows/a" + odd}
    )
    desk.model.default(Script([link, Say("Done.")]))
    found = await desk.execute("link it", "--path", str(folder), "--apply", "--json")
    assert (found.code, found.facts["outcome"], found.facts["branch"]) == (1, "refused", None), found.err
    assert "`link`" in found.facts["detail"]
    assert (
        "Left behind in the sandbox" in found.err and "`a/git~1/x` (its name stands for git's own folder" in found.err
    )
    [left_out] = found.facts["left_out"]
    assert left_out["path"] == "a/git~1/x" and left_out["why"].startswith("its name stands for git's own folder")
    assert "workflows" not in found.facts["detail"], "on the person's own machine these are as good as any"
    assert not (folder / "link").is_symlink()


async def test_a_folder_that_changed_meanwhile_is_not_overwritten(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    desk.model.default(Script([Call("Bash", {"command": "echo agent > README.md"}), Wait("edited"), Say("Done.")]))
    async with desk.started("fix it", "--path", str(folder), "--apply", "--json") as process:
        await desk.model.reached("edited", SECONDS)
        (folder / "README.md").write_text("the person's own words\n", encoding="utf-8")
        desk.model.release("edited")
        found = await ended(process)
    assert (found.code, found.facts["outcome"]) == (1, "failed"), found.err
    assert "could not be applied" in found.facts["detail"]
    assert (folder / "README.md").read_text(encoding="utf-8") == "the person's own words\n"
    assert git(folder, "show", f"{found.facts['branch']}:README.md") == "agent\n"


async def test_two_at_once_do_not_meet(desk: Desk) -> None:
    folders = [repository(desk.home / "one"), repository(desk.home / "two")]
    runs = [desk.execute("fix it", "--path", str(folder), "--json") for folder in folders]
    for folder, found in zip(folders, await asyncio.gather(*runs), strict=True):
        assert found.code == 0, found.err
        assert git(folder, "branch", "--list", "forgehand/*").strip() == found.facts["branch"]


async def test_without_isolation_it_runs_only_when_told_to(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    no_namespaces = ["bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--"]
    refused = await desk.execute("fix it", "--path", str(folder), under=no_namespaces)
    assert refused.code == 1
    [sentence] = [line for line in refused.err.splitlines() if "cannot isolate" in line]
    assert "--no-isolation" in sentence
    assert desk.model.requests == []
    told = await desk.execute("fix it", "--path", str(folder), "--no-isolation", "--json")
    assert (told.code, told.facts["isolation"]) == (0, "none"), told.err
    assert "NO ISOLATION" in told.err


@pytest.mark.parametrize(
    ("arguments", "changes", "sentence"),
    [
        (["--path", "nowhere"], {}, "There is no folder nowhere."),
        (["--path", "file"], {}, "file is a file; --path takes a folder."),
        (["--path", "empty"], {}, "There is nothing to work on in"),
        (
            ["--path", "."],
            {"ANTHROPIC_API_KEY": ""},
            "ANTHROPIC_API_KEY is not set (nor CLAUDE_CODE_OAUTH_TOKEN). Make",
        ),
        (["--path", ".", "--budget", "much"], {}, "`--budget` takes an amount"),
        (["--path", ".", "--model", "gpt-9"], {}, "Forgehand does not know the price of the model `gpt-9`"),
    ],
)
async def test_an_error_is_one_sentence(
    desk: Desk, arguments: list[str], changes: dict[str, str], sentence: str
) -> None:
    (desk.home / "empty").mkdir()
    (desk.home / "file").write_text("x", encoding="utf-8")
    found = await desk.execute("fix it", *arguments, "--json", **changes)
    assert found.code == 1
    assert found.err.splitlines()[-1].startswith(sentence)
    assert (found.facts["outcome"], found.facts["branch"]) == ("failed", None)
    assert found.facts["detail"].startswith(sentence)
    assert "Traceback" not in found.err


@pytest.mark.quick("bot.workbench")
def test_slots_are_given_out_once(tmp_path: Path) -> None:
    with slots.taken(tmp_path / "execute") as first, slots.taken(tmp_path / "execute") as second:
        assert [first.name, second.name] == ["0", "1"]
    with slots.taken(tmp_path / "execute") as again:
        assert again.name == "0"


def helpers(*rounds: int) -> Script:
    """So many sub-agents at once in each round."""
    numbers = iter(range(100))
    calls = [
        Calls(
            [
                Call("Agent", {"description": f"Part {number}", "prompt": f"[[scenario:part]] {number}"})
                for number in (next(numbers) for _ in range(count))
            ]
        )
        for count in rounds
    ]
    return Script([*calls, Say("All parts are done.")])


async def test_sub_agents_are_counted_and_one_more_is_refused(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    desk.model.script("part", Script([Say("Part done.")]))
    desk.model.default(helpers(2, 2, 1))
    found = await desk.execute("do it in parts", "--path", str(folder), "--json", FORGEHAND_SUBAGENTS="3")
    assert (found.code, found.facts["result"]) == (0, "All parts are done."), found.err
    started = [one for one in desk.model.requests if "[[scenario:part]]" in str(one.body["messages"][0])]
    assert len(started) == 3
    told = str(desk.model.requests[-1].body)
    assert told.count("No more sub-agents may be started in this turn. A turn may start 3.") == 2


async def test_a_question_of_the_agents_is_answered_with_a_no_at_once(desk: Desk) -> None:
    folder = repository(desk.home / "shop")
    choices = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
    question = {"question": "Which?", "header": "Colour", "options": choices, "multiSelect": False}
    call = Call("AskUserQuestion", {"questions": [question]})
    desk.model.default(Script([Calls([call]), Say("I go on without an answer.")]))
    found = await desk.execute("ask me", "--path", str(folder), "--json", "--timeout", "30s")
    assert (found.code, found.facts["result"]) == (0, "I go on without an answer."), found.err
    assert "Nobody can answer while you work" in str(desk.model.requests[-1].body)
