"""From comment to pull request in E2B's sandboxes: the real SDK, the real Claude CLI, a stand-in for the cloud."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bot.models import Step
from bot.sessions import flow
from bot.sessions.publish.rescue import EVERY_SECONDS
from bot.sessions.setbacks import MOST_RESUMPTIONS
from bot.simulation.anthropic import Call, ModelRequest, Say, Script, SimulatedAnthropic, Wait
from bot.simulation.github import Fault as GitHubFault
from bot.store import conversation, sessions
from bot.store.base import Store
from bot.words import endings
from tests.e2b_stand_in import E2BStandIn
from tests.e2b_stand_in.sandbox import Sandbox
from tests.environments.test_kept import Ahead
from tests.world import MODEL_KEY, WEBHOOK_SECRET, World
from tests.world.e2b import e2b_spine
from tests.world.environments import until
from tests.world.plain_http import plain_client

EDIT = Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"})
MORE = Call("Bash", {"command": "echo '# and more' >> shop.py", "description": "Add"})


@pytest.mark.acceptance("C14")
async def test_a_comment_becomes_a_pull_request_and_no_credential_is_inside(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        world.declare_checks()
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        [pull] = world.pulls()
        assert pull.draft
        assert "max(" in world.repo.diff("main", pull.head)
        assert len(e2b.sandboxes) == 2, "the agent's, and the one in which its work was checked"
        secrets = [MODEL_KEY, WEBHOOK_SECRET, e2b.api_key, world.app.private_key_pem.splitlines()[1]]
        sent = b"".join(call.body + call.query.encode() for call in e2b.calls)
        inside = sent + b"".join(
            path.read_bytes() for one in e2b.sandboxes for path in one.folder.rglob("*") if path.is_file()
        )
        assert b"FORGEHAND_GATEWAY" in inside
        assert not [secret for secret in secrets if secret.encode() in inside]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 401),
        ({"FORGEHAND_SANDBOX": "local"}, 403),
        ({"FORGEHAND_PUBLIC_URL": ""}, 403),
        ({"FORGEHAND_E2B_UNMETERED": "1", "ANTHROPIC_BASE_URL": "https://model.example"}, 403),
    ],
    ids=["in the cloud", "on this host", "connected to from here", "past the gateway"],
)
async def test_the_gateway_is_at_the_public_address_only_for_sandboxes_that_come_there(
    tmp_path: Path, changes: dict[str, str], status: int
) -> None:
    async with e2b_spine(tmp_path, **changes) as (world, _), world.bot() as running, plain_client() as client:
        for path in ("messages", "messages/count_tokens"):
            answer = await client.post(f"{running.url}/gateway/anthropic/v1/{path}", headers={"x-api-key": "fht_any"})
            assert answer.status_code == status, answer.text


async def test_a_restarted_bot_goes_on_where_it_was(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        world.model.default(Script([EDIT, Wait("go"), Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await world.model.reached("go", timeout=60)
        async with world.bot():
            world.model.release("go")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        assert len(agents(e2b)) == 1
        assert len(world.pulls()) == 1
        assert len(world.replies()) == 1


async def test_a_bot_that_stays_away_finds_the_agent_frozen_and_the_turn_goes_on(tmp_path: Path) -> None:
    """The sandbox pauses by itself; what was frozen in it is ended on return, and begun anew with its memory."""
    async with e2b_spine(tmp_path) as (world, e2b):
        async with world.bot():
            await begun(world, "go")
        await stay_away(e2b)
        world.model.default(Script([MORE, Wait("anew"), Say("Went on."), Say("unreachable")]))
        async with world.bot():
            await world.model.until(
                lambda model: "was started again just now" in str(model.requests[-1].messages), timeout=60
            )
            world.model.release("anew")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        assert not e2b.live, "where an agent was lost, no other is sent"
        last = world.model.requests[-1]
        assert "was started again just now" in str(last.messages)
        assert EDIT.input["command"] in str(last.messages), "it remembers what it did before"
        assert_both_edits(world)
        assert len(agents(e2b)) == len(world.replies()) == 1
        assert await notes(world) == [endings.goes_on()]


@pytest.mark.slow
async def test_what_is_lost_again_and_again_ends_with_its_work_saved(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        async with world.bot():
            await begun(world, "never")
        await stay_away(e2b)
        # Also what is thawed for a moment, before it is ended, gets no further.
        world.model.default(Script([Wait("never"), Say("unreachable")] * 2))
        for times in range(1, MOST_RESUMPTIONS + 1):
            async with world.bot():
                await world.model.until(lambda model: begun_anew(model) == times, timeout=60)  # noqa: B023
            await stay_away(e2b)
        async with world.bot():
            assert await world.outcome() == "killed", world.replies()[0].body
        assert "refs/forgehand/rescue/" in world.replies()[0].body
        assert not e2b.live


def assert_both_edits(world: World) -> None:
    """What was done before the loss and what was done after it."""
    [pull] = world.pulls()
    diff = world.repo.diff("main", pull.head)
    assert ("+# more" in diff, "+# and more" in diff) == (True, True)


async def begun(world: World, held: str) -> None:
    """An agent that has edited and is held there."""
    world.model.default(Script([EDIT, Wait(held), Say("unreachable")]))
    world.say("/claude add a line")
    await world.model.reached(held, timeout=60)


def agents(e2b: E2BStandIn) -> list[Sandbox]:
    """Without those in which their work is checked."""
    return [one for one in e2b.sandboxes if one.metadata.get("purpose") != "checks"]


def begun_anew(model: SimulatedAnthropic) -> int:
    """How often the agent was told so, by what it remembers."""
    return max(str(request.messages).count("begun anew") for request in model.requests)


@pytest.mark.parametrize("saved", [True, False])
async def test_a_sandbox_that_vanishes_loses_minutes_and_not_the_turn(tmp_path: Path, saved: bool) -> None:
    """On in a new one from the last checkpoint; where that may not be, what it holds is saved."""
    clock = Ahead()
    async with e2b_spine(tmp_path) as (world, e2b):
        async with world.bot(clock):
            await begun(world, "go")
            clock.seconds = EVERY_SECONDS + 1
            await until_checkpoint(world)
            world.model.default(Script([MORE, Say("Went on.")]))
            if not saved:
                await set_resumptions(world, MOST_RESUMPTIONS)
            await e2b.kill(e2b.live[0].id)
            outcome = await world.outcome()
        if saved:
            assert outcome == "pull_request", world.replies()[0].body
            assert_both_edits(world)
            assert EDIT.input["command"] in str(world.model.requests[-1].messages)
            assert await notes(world) == [endings.goes_on_elsewhere()]
        else:
            assert outcome == "killed", world.replies()[0].body
            assert "refs/forgehand/rescue/" in world.replies()[0].body
        assert len(world.replies()) == 1


@pytest.mark.review("e2b-3")
@pytest.mark.parametrize("saved", [True, False])
async def test_a_node_that_is_lost_while_e2b_says_it_runs_is_given_up(
    tmp_path: Path, saved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "MOST_TRIES_WITH_WORK", 2)
    clock = Ahead()
    async with e2b_spine(tmp_path) as (world, e2b):
        async with world.bot(clock):
            await begun(world, "go")
            if saved:
                clock.seconds = EVERY_SECONDS + 1
                await until_checkpoint(world)
            world.model.default(Script([MORE, Say("Went on.")]))
            await e2b.registry.lose(e2b.live[0].id)
            outcome = await world.outcome()
        if saved:
            assert outcome == "pull_request", world.replies()[0].body
            assert_both_edits(world)
        else:
            assert outcome == "killed", world.replies()[0].body
        assert not [one for one in e2b.live if one.lost], "nobody pays for a ghost"


async def test_a_sandbox_that_vanishes_before_the_work_is_replaced(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        world.github.commit(world.repo, "main", {".github/forgehand.yml": "setup: [sleep 4]\n"})
        world.model.default(Script([EDIT, Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await until(lambda: _sets_up(e2b))
            await e2b.kill(e2b.live[0].id)
            assert await world.outcome() == "pull_request", world.replies()[0].body
            await until(lambda: _one_at_rest(e2b))
        assert [one.state for one in e2b.sandboxes] == ["killed", "paused"]
        assert len(world.pulls()) == len(world.replies()) == 1


async def _sets_up(e2b: E2BStandIn) -> bool:
    return any(list(one.folder.rglob("base.pack")) for one in e2b.live)


async def _one_at_rest(e2b: E2BStandIn) -> bool:
    return [one.paused for one in e2b.live] == [True]


async def stay_away(e2b: E2BStandIn) -> None:
    for _ in range(3):
        await e2b.clock.advance(600)
    assert [one.paused for one in e2b.live] == [True]


async def notes(world: World) -> list[str]:
    """What we have put among the agent's lines."""
    store = await Store.open_reader(world.database)
    try:
        [session] = await sessions.listing(store)
        rows = await conversation.events_of_session(store, session.id, 0, 10_000)
        return [json.loads(row.line)["note"] for row in rows if row.kind == "note"]
    finally:
        await store.close()


async def until_checkpoint(world: World) -> None:
    saved = world.root / "data" / "turns"
    async with asyncio.timeout(30):
        while not list(saved.glob("*/checkpoint.bundle")) or not await _noted(world):
            await asyncio.sleep(0.05)


async def _noted(world: World) -> bool:
    store = await Store.open_reader(world.database)
    try:
        return (await sessions.running(store))[0].checkpoint_at is not None
    finally:
        await store.close()


async def set_resumptions(world: World, count: int) -> None:
    store = await Store.open(world.database, migrate=False)
    try:
        [turn] = await sessions.running(store)
        await sessions.update_turn(store, turn.key, resumptions=count)
    finally:
        await store.close()


@pytest.mark.acceptance("C10")
async def test_a_sandbox_that_vanishes_ends_the_turn_with_a_sentence(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        world.model.default(Script([EDIT, Wait("go"), Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await world.model.reached("go", timeout=60)
            await e2b.kill(e2b.live[0].id)
            assert await world.outcome() == "killed", world.replies()[0].body
            world.model.release("go")
        assert "sandbox" in world.replies()[0].body
        assert not world.pulls()


@pytest.mark.acceptance("F14")
async def test_a_revoked_key_of_the_cloud_is_one_neutral_sentence_and_no_storm(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = "e2b_" + "0" * 40
    async with e2b_spine(tmp_path, E2B_API_KEY=wrong) as (world, e2b):
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "failed", world.replies()[0].body
        live = world.replies()[0].body
        assert "does not accept the key in use" in live
        assert "E2B" not in live
        log = capfd.readouterr().err
        assert "check E2B_API_KEY" in log and "traceback" not in log
        assert wrong not in live + log
        assert len(e2b.calls) < 10
        assert not world.model.requests


@pytest.mark.acceptance("C15")
async def test_files_beside_the_prompt_and_blocked_hosts_are_as_in_a_local_box(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, _):
        world.say("the beginning\n" + "words " * 9_000 + "\nthe end of it")
        for _ in range(2):
            world.say("words " * 9_000)

        def search(request: ModelRequest) -> Call:
            path = next(line[2:] for line in request.prompt.splitlines() if line.endswith("/comments.md"))
            reach = "import urllib.request as u; u.urlopen('https://a.example', timeout=5)"
            return Call("Bash", {"command": f'grep "the end of it" {path}; python3 -c "{reach}" 2>&1 | tail -1'})

        world.model.default(Script([search, Say("Nothing to do.")]))
        async with world.bot():
            world.say("/claude look")
            assert await world.outcome() == "no_change", world.replies()[0].body
        result = world.model.requests[-1].tool_results[0].text
        assert result.startswith("the end of it\n") and "403" in result
        assert "**Blocked by the network:** `a.example` ×1." in world.replies()[0].body


@pytest.mark.acceptance("C15")
async def test_a_sandbox_that_vanishes_while_its_work_is_checked_elsewhere_is_not_missed(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        world.github.commit(world.repo, "main", {".github/forgehand.yml": "checks: [sleep 3]\n"})
        world.model.default(Script([EDIT, Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await until(lambda: _is_at(world, Step.VERIFY), 60)
            await e2b.kill(agents(e2b)[0].id)
            assert await world.outcome() == "pull_request", world.replies()[0].body
            await until(lambda: _nothing_lives(e2b))


@pytest.mark.acceptance("C15")
async def test_a_sandbox_that_vanishes_while_its_work_is_checked_there_takes_nothing_of_the_work_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was no room for another one."""
    monkeypatch.setattr("bot.sessions.declared_checks.ROOM_SECONDS", 0.2)
    async with e2b_spine(tmp_path, FORGEHAND_E2B_SANDBOXES="1") as (world, e2b):
        world.github.commit(world.repo, "main", {".github/forgehand.yml": "checks: [sleep 30]\n"})
        world.model.default(Script([EDIT, Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await until(lambda: _is_checked(e2b))
            await e2b.kill(e2b.live[0].id)
            assert await world.outcome() == "pull_request", world.replies()[0].body
        [pull] = world.pulls()
        assert "+# more" in world.repo.diff("main", pull.head)
        assert "was not run" in world.replies()[0].body and "`sleep 30`" in world.replies()[0].body


async def _is_checked(e2b: E2BStandIn) -> bool:
    return any(list(one.folder.rglob("check-*.log")) for one in e2b.live)


@pytest.mark.acceptance("C15")
async def test_a_sandbox_that_vanishes_while_its_work_is_published_is_not_missed(tmp_path: Path) -> None:
    """Nor when the turn is settled and there is nothing left to keep."""
    async with e2b_spine(tmp_path) as (world, e2b):
        world.model.default(Script([EDIT, Say("Added a line.")]))
        opening = world.github.faults.add(GitHubFault("POST /repos/*/*/pulls", "hold"))
        async with world.bot():
            world.say("/claude add a line")
            async with asyncio.timeout(60):
                await opening.reached.wait()
            await e2b.kill(e2b.live[0].id)
            opening.release.set()
            assert await world.outcome() == "pull_request", world.replies()[0].body
            await until(lambda: _nothing_lives(e2b))
        assert len(world.pulls()) == len(world.replies()) == 1


async def _is_at(world: World, step: Step) -> bool:
    store = await Store.open_reader(world.database)
    try:
        return [turn.step for turn in await sessions.running(store)] == [step]
    finally:
        await store.close()


async def _nothing_lives(e2b: E2BStandIn) -> bool:
    return not e2b.live
