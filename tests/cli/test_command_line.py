"""The command line as a stranger meets it: in an empty home, with a word misspelt, with a setting that is wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bot.__main__ import FOREIGN_THREADS
from bot.cli import period
from bot.cli.logs import TurnPrinter
from bot.cli.main import app
from bot.simulation.anthropic import Call, Say, Script
from bot.words import replies
from tests.world import World
from tests.world.command_line import ROOT, SECONDS, Ran, forgehand

KEY = base64.b64encode(bytes(32)).decode()
NO_STORE = "yet: start `forgehand serve` once"


async def at_home(home: Path, *arguments: str, **changes: str) -> Ran:
    return await forgehand({"HOME": str(home), "PATH": os.environ["PATH"], **changes}, *arguments)


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["sandbox", "list"], 0, "There are no sandboxes."),
        (["keys", "list"], 0, "No keys are stored."),
        (["keys", "test"], 1, "There is no credential for the model"),
        (["sessions", "list"], 1, NO_STORE),
        (["deliveries", "list"], 1, NO_STORE),
        (["spend"], 1, NO_STORE),
        (["db", "check"], 1, NO_STORE),
        (["pause"], 1, NO_STORE),
        (["doctor"], 1, "FORGEHAND_APP_ID is not set"),
        (["serve", "--config", "nowhere"], 1, "The settings file nowhere does not exist"),
        (["audit", "--config", "nowhere"], 1, "The settings file nowhere does not exist"),
        (["pause", "--config", "nowhere"], 1, "The settings file nowhere does not exist"),
        (["setup", "--config", "nowhere"], 1, "The settings file nowhere does not exist"),
    ],
)
async def test_a_look_into_an_empty_home_leaves_it_empty(
    tmp_path: Path, command: list[str], code: int, words: str
) -> None:
    ran = await at_home(tmp_path, *command, FORGEHAND_SECRET_KEY=KEY)
    assert ran.code == code and words in ran.text, ran
    assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


def every_command(command: Any, *words: str) -> Iterator[list[str]]:
    yield list(words)
    for name, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, *words, name)


@pytest.mark.parametrize("words", list(every_command(get_command(app))), ids=" ".join)
def test_help_says_what_is_taken_and_names_no_kind_of_value(words: list[str]) -> None:
    """Of a flag nothing is taken; `<int range>`, or a list of choices that is broken in a word, helps nobody."""
    said = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERM": "dumb"})
    assert said.exit_code == 0 and "Usage: " in said.output
    options = said.output.partition("─ Options ─")[2].partition("─ Commands ─")[0]
    assert not re.search(r"<(bool|path|str|int)\b", options), said.output
    for row in said.output.partition("─ Arguments ─")[2].partition("─ Options ─")[0].splitlines()[1:-2]:
        assert re.match(r"│ [* ] +[A-Z|]+ +<(str|path)> +\S|│ {20,}", row) and "> [required]" not in row, row


async def test_help_and_mistakes_name_the_program_as_people_call_it(tmp_path: Path) -> None:
    told, misspelt, inner, option = await asyncio.gather(
        at_home(tmp_path, "sessions", "--help"),
        at_home(tmp_path, "sesions"),
        at_home(tmp_path, "sessions", "lst"),
        at_home(tmp_path, "serve", "--pol"),
    )
    assert "Usage: forgehand sessions" in told.out
    assert misspelt.code == inner.code == option.code == 2
    assert "Did you mean 'sessions'?" in misspelt.err and "Try 'forgehand -h'" in misspelt.err
    assert "Did you mean 'list'?" in inner.err
    assert "--poll" in option.err
    assert "python -m" not in told.text + misspelt.text + inner.text + option.text


async def test_words_are_completed(tmp_path: Path) -> None:
    asked = {"_FORGEHAND_COMPLETE": "complete_bash", "COMP_WORDS": "forgehand sandbox t", "COMP_CWORD": "2"}
    assert (await at_home(tmp_path, **asked)).out.split() == ["terminate", "template"]
    script = await at_home(tmp_path, _FORGEHAND_COMPLETE="source_bash")  # what the option writes for the shell it finds
    assert script.out.rstrip().endswith("forgehand") and "_FORGEHAND_COMPLETE" in script.out


async def test_the_doctor_sends_to_set_up_only_who_has_no_app(tmp_path: Path) -> None:
    no_app, bad_key, bad_port = await asyncio.gather(
        at_home(tmp_path, "doctor", "--json", FORGEHAND_SECRET_KEY=KEY),
        at_home(tmp_path, "doctor", "--json", FORGEHAND_SECRET_KEY="short"),
        at_home(tmp_path, "doctor", "--json", FORGEHAND_SECRET_KEY=KEY, FORGEHAND_PORT="high", FORGEHAND_APP_ID="1"),
    )
    said = no_app.json[-1]
    assert "FORGEHAND_APP_ID" in said["words"] and "forgehand setup" in said["fix"]
    for wrong, name in ((bad_key, "FORGEHAND_SECRET_KEY"), (bad_port, "FORGEHAND_")):
        said = wrong.json[-1]
        assert name in said["words"] and "setup" not in said["fix"], said


async def test_a_setting_that_was_mistyped_is_named_by_who_reads_it(tmp_path: Path) -> None:
    """A limit that nobody sees is missing would be the default."""
    wrong = {"FORGEHAND_SECRET_KEY": KEY, "FORGEHAND_DAY_BUDGTE": "1", "FORGEHAND_WEATHER": "fine"}
    right = {"FORGEHAND_APP_ID": "1", "FORGEHAND_PRIVATE_KEY_FILE": "/nowhere/key.pem"}
    doctor, serve = await asyncio.gather(
        at_home(tmp_path, "doctor", "--json", **wrong), at_home(tmp_path, "serve", **wrong, **right)
    )
    told = [one for one in doctor.json if one["level"] == "warning"]
    assert [one["words"] for one in told] == [
        "Unknown setting FORGEHAND_DAY_BUDGTE (did you mean FORGEHAND_DAY_BUDGET?); ignored.",
        "Unknown setting FORGEHAND_WEATHER; ignored.",
    ]
    assert all(one["fix"] for one in told)
    assert serve.code == 1 and "did you mean FORGEHAND_DAY_BUDGET?" in serve.text
    assert "FORGEHAND_PRIVATE_KEY_FILE is no" not in serve.text and "FORGEHAND_APP_ID is no" not in serve.text


async def test_the_doctor_sends_nobody_to_set_up_with_a_damaged_database(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "state.db").write_text("no database", encoding="utf-8")
    ran = await at_home(tmp_path, "doctor", "--json", FORGEHAND_SECRET_KEY=KEY, FORGEHAND_DATA_DIR=str(folder))
    found = {one["name"]: one for one in ran.json}
    assert ran.code == 1 and "is damaged" in found["database"]["words"], ran
    assert "setup" not in found["settings"]["fix"]


async def test_the_doctor_names_the_key_when_the_store_has_another(world: World) -> None:
    async with world.bot():
        pass
    other = base64.b64encode(bytes(range(32))).decode()
    ran = await forgehand({**world.environment, "FORGEHAND_SECRET_KEY": other}, "doctor", "--json")
    said = ran.json[-1]
    assert ran.code == 1 and "FORGEHAND_SECRET_KEY is not the key" in said["words"]
    assert "setup" not in said["fix"]


async def test_no_thread_of_a_foreign_runtime_meets_the_end_of_the_interpreter(tmp_path: Path) -> None:
    """One that has something to say then is ended by force, and the process with it: seen as an exit by signal 6."""
    begins = "import atexit, sys; atexit.register(print, 'FINALIZED', flush=True); "
    for module, finalized in (("json", True), (FOREIGN_THREADS, False)):
        code = (
            f"{begins}import {module}; sys.argv = ['forgehand', 'sessions', 'lst']; import bot.__main__ as m; m.main()"
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, cwd=ROOT, stdout=-1, stderr=-1, env={"HOME": str(tmp_path)}
        )
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
        assert process.returncode == 2 and b"No such command" in err, "what it says comes out in any case"
        assert (b"FINALIZED" in out) is finalized


async def test_a_session_is_shown_to_people_in_words(world: World) -> None:
    world.model.default(
        Script([Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"}), Say("Done.")])
    )
    async with world.bot():
        world.say("/claude add a line")
        assert await world.outcome() == "pull_request"
        [row] = (await forgehand(world.environment, "sessions", "list", "--json")).json
        told = await forgehand(world.environment, "sessions", "show", row["id"])
    assert told.out.startswith(f"{row['id']}  {world.repo.full_name}#1  since 20"), told.out
    assert f"branch: forgehand/1-{row['id']}\npull request: {world.github.url}/" in told.out
    assert " of $5.00\nturn 1: done pull_request  $" in told.out
    assert "_id" not in told.out


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (None, "5 min ago, issue comment created by alice: ignored."),
        ("it is our own edit", "created by alice: ignored. It is our own edit."),
        ("Forgehand does not act on `push`.", "created by alice: ignored. Forgehand does not act on `push`."),
    ],
)
def test_what_became_of_a_delivery_is_said_in_sentences(reason: str | None, words: str) -> None:
    told = SimpleNamespace(event="issue_comment", action="created", sender="alice", state="ignored", reason=reason)
    assert replies.fate(told, "5 min ago", str).endswith(words)


@pytest.mark.parametrize(
    ("since", "words"),
    [("30d", "in the last 30 days"), ("1h", "in the last hour"), ("2026-11-01", "since 2026-11-01")],
)
def test_a_period_is_told_in_words(since: str, words: str) -> None:
    assert period.period(since) == words


def stream(*rows: dict[str, object]) -> list[str]:
    return [json.dumps(row) for row in rows]


def called(call: str, command: str) -> dict[str, object]:
    block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
    return {"type": "assistant", "message": {"content": [block]}}


@pytest.mark.quick("bot.cli")
def test_a_log_is_told_to_people_in_lines_that_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "3 passed\nin 0.1 s"}
    printer = TurnPrinter(2)
    for line in stream(
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look.\x1b[2J\x1b]0;own\x07"}]}},
        called("1", "pytest -q"),
        {"type": "user", "message": {"content": [result]}},
        called("2", "sleep 99"),
    ):
        printer.feed(line)
    printer.feed("no json")
    printer.end()
    told = capsys.readouterr().out
    assert told.splitlines() == [
        "turn 2",
        "I look.",
        "✓ Bash pytest -q → 3 passed",
        "· not understood: no json",
        "✗ Bash sleep 99 → no result",
    ]
