"""The demo's plays, each acted out once without a browser: what happens in them is what they are there to show."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from bot.cli import demo_world
from bot.cli.demo import Scenario
from bot.cli.demo_replicas import PATIENCE_SECONDS
from bot.cli.demo_service import DemoService
from bot.cli.demo_story import Story
from bot.errors import SettingsError
from bot.simulation.github import SimulatedGitHub
from bot.simulation.postgres import LocalPostgres
from bot.simulation.scenarios.plays import PLAYS, Crash, Deed, Play
from tests.world.postgres import require_programs

LONG_SECONDS = 100.0


async def played(root: Path, play: Play) -> Story:
    """To its end; everything has been ended by then."""
    async with demo_world.telling(root, 0, play, watched=False) as story:
        await story.begin()
        await story.end()
        assert tuple(story.outcomes) == play.outcomes, story.live[-1].body
        assert await story.tests_pass() is play.tests_pass
        assert await story.credentials_found() == []
    return story


def command_lines() -> Iterator[str]:
    """Of all processes."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            yield one.read_text(errors="replace")


def test_the_command_offers_each_play() -> None:
    assert {one.value for one in Scenario} == set(PLAYS)
    assert {type(play.meanwhile or play.afterwards) for play in PLAYS.values()} >= set(get_args(Deed))


@pytest.mark.quick("bot.simulation.scenarios")
async def test_words_in_the_middle_are_part_of_the_work(tmp_path: Path) -> None:
    story = await played(tmp_path / "demo", PLAYS["steer"])
    assert story.pull is not None
    assert b"def test_100_percent" in (story.repo.file(story.pull.head, "test_shop.py") or b"")
    assert "as you said meanwhile" in story.live[0].body


async def test_a_killed_service_goes_on_where_it_was(tmp_path: Path) -> None:
    story = await played(tmp_path / "demo", PLAYS["crash"])
    assert story.service.told() == {"service_starts": 2}
    assert len(story.live) == 1 and len(story.repo.pulls) == 1, "nothing was done twice"
    [verified] = story.verified
    assert verified.startswith("✓ `python3 -m unittest -q` exit 0, ")
    assert "in a fresh sandbox" in story.live[0].body
    begun = [one for one in story.model.requests if one.has_tools and not one.tool_calls]
    assert len(begun) == 1, "the agent was not begun anew"


async def test_a_review_at_its_lines_and_one_more_after_the_push_that_mends_one(tmp_path: Path) -> None:
    story = await played(tmp_path / "demo", PLAYS["review"])
    assert story.issue.pull is not None and story.pull is None
    [first] = (one for one in story.issue.pull.reviews if one.author is story.app.bot)
    assert [one.line for one in first.comments] == [14, 9] and all(
        "```suggestion" in one.body for one in first.comments
    )
    assert [one.resolved_by for one in first.comments] == [story.app.bot, None]
    assert "1 earlier finding resolved. 1 earlier finding still open." in story.live[-1].body
    [check] = [one for one in story.repo.checks.values() if one.head_sha == first.commit_id]
    assert len(check.output["annotations"]) == 2


async def test_findings_that_a_tick_has_fixed_are_looked_at_again(tmp_path: Path) -> None:
    story = await played(tmp_path / "demo", PLAYS["findings"])
    assert story.issue.pull is not None
    [review] = (one for one in story.issue.pull.reviews if one.author is story.app.bot)
    assert all(one.resolved_by is story.app.bot for one in review.comments), "both lines have changed"


async def test_a_private_package_is_installed_and_its_credential_stays_outside(tmp_path: Path) -> None:
    story = await played(tmp_path / "demo", PLAYS["packages"])
    assert story.registries is not None
    assert [line.split(" exit ")[0] for line in story.verified] == [
        "✓ `python3 -m unittest -q`",
        "✓ `python3 -c 'import acme_prices'`",
    ]
    files = [one for one in story.registries.requests if one.path.endswith(".whl") and one.method == "GET"]
    assert len(files) == 1, "the checks' environment installs from the cache"
    assert not story.registries.leaks
    [pull] = (one for one in story.repo.pulls.values())
    assert story.repo.file(pull.head, "acme_prices/__init__.py") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fix", "ask", "plan", "stop", "undo"])
async def test_the_other_plays(tmp_path: Path, name: str) -> None:
    assert not isinstance(PLAYS[name].meanwhile, Crash)
    await played(tmp_path / "demo", PLAYS[name])


async def test_a_demo_that_is_killed_leaves_no_service_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "FORGEHAND_DATA_DIR": str(tmp_path)}
    command = (sys.executable, "-m", "bot", "demo", "--port", "0")
    process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=PIPE)
    assert process.stderr is not None
    async with asyncio.timeout(LONG_SECONDS):
        while b"Watch it here" not in (line := await process.stderr.readline()):
            assert line, "it ended"
        lock = tmp_path / "demo" / "0" / "data" / "lock"
        number = int(lock.read_text())
        assert number != process.pid
        end = os.pidfd_open(number)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(end, ended.set)
        await ended.wait()
        asyncio.get_running_loop().remove_reader(end)
        os.close(end)


async def test_a_service_that_does_not_start_says_why(tmp_path: Path) -> None:
    async with SimulatedGitHub.running(tmp_path / "github") as github:
        app = github.create_app(slug="forgehand", webhook_secret="secret")
        with pytest.raises(SettingsError, match="FORGEHAND_SECRET_KEY is not set"):
            async with DemoService.running({"HOME": str(tmp_path)}, app, tmp_path):
                pass


@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_another_replica_goes_on_where_one_was_killed(tmp_path: Path) -> None:
    require_programs()
    environment = {**os.environ, "FORGEHAND_DATA_DIR": str(tmp_path)}
    command = (sys.executable, "-m", "bot", "demo", "--replicas", "3", "--json")
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(2 * LONG_SECONDS):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode() + out.decode()
    found = json.loads(out)
    assert found["as_expected"] and found["outcomes"] == ["pull_request"] and found["credentials_found"] == []
    assert found["pull_request"].endswith("/pull/2"), "the first after the issue, and no other"
    assert (found["replicas"], found["service_starts"]) == (3, 4)
    assert found["killed"] != found["took_over"] and {found["killed"], found["took_over"]} < {1, 2, 3}
    assert found["took_over_seconds"] < PATIENCE_SECONDS + 5


@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_a_demo_of_replicas_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    require_programs()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)  # PostgreSQL runs as another user than root
        environment = {**os.environ, "FORGEHAND_DATA_DIR": str(tmp_path), "TMPDIR": name}
        command = (sys.executable, "-m", "bot", "demo", "--replicas", "2", "--port", "0")
        process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=PIPE)
        assert process.stderr is not None
        async with asyncio.timeout(LONG_SECONDS):
            while b"Watch it here" not in (line := await process.stderr.readline()):
                assert line, "it ended"
            assert [one for one in folder.iterdir() if one.name.startswith("forgehand-postgres-")]
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130
        assert not [one for one in folder.iterdir() if one.name.startswith("forgehand-postgres-")]
    locks = [tmp_path / "demo" / "0" / f"replica{n}" / "lock" for n in (1, 2)]
    assert [one.read_text() for one in locks] == ["", ""], "each has ended"
    assert not any(name in words for words in command_lines())


def test_without_postgresql_the_demo_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.simulation.postgres.programs", lambda: None)
    with pytest.raises(SettingsError, match="apt install postgresql"), LocalPostgres.running():
        pass


async def test_one_object_for_a_script(tmp_path: Path) -> None:
    environment = {**os.environ, "FORGEHAND_DATA_DIR": str(tmp_path)}
    command = (sys.executable, "-m", "bot", "demo", "--scenario", "ask", "--json")
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(LONG_SECONDS):
        out, err = await process.communicate()
    found = json.loads(out)
    assert process.returncode == 0 and found["as_expected"] and found["outcomes"] == ["answered"]
    assert err == b"", "the service's log has a file of its own"


async def test_a_plan_is_approved_on_the_dashboard(tmp_path: Path) -> None:
    story = await played(tmp_path / "demo", PLAYS["dashboard"])
    assert story.dashboard is not None and not story.dashboard.comments
    assert story.pull is not None
