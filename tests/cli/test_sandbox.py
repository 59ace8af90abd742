"""`forgehand sandbox …` beside a service that runs and without one, the same on this host and in E2B's cloud."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.e2b_stand_in import E2BStandIn, Fault
from tests.world import World
from tests.world.command_line import Ran, forgehand
from tests.world.e2b import e2b_spine

WORK = Script([Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"}), Wait("go"), Say("Done.")])
QUICK = Script([Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"}), Say("Done.")])


@pytest.fixture(params=["local", "e2b"])
async def either(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A turn can wait in the middle of its work, on this host or in the cloud."""
    if request.param == "e2b":
        async with e2b_spine(tmp_path, FORGEHAND_KEEP_MINUTES="0") as (world, _):
            world.model.default(WORK)
            yield world
    else:
        async with World.running(tmp_path, FORGEHAND_KEEP_MINUTES="0") as world:
            world.model.default(WORK)
            yield world


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[tuple[World, E2BStandIn]]:
    async with e2b_spine(tmp_path, FORGEHAND_KEEP_MINUTES="0") as found:
        yield found


async def sandbox(world: World, *arguments: str, **changes: str) -> Ran:
    return await forgehand({**world.environment, **changes}, "sandbox", *arguments)


async def rested(world: World, state: str) -> dict[str, Any]:
    """The only one, once it is at rest."""
    async with asyncio.timeout(30):
        while True:
            found: list[dict[str, Any]] = (await sandbox(world, "list", "--json")).json
            if [row["state"] for row in found] == [state]:
                return found[0]


async def works(world: World) -> str:
    """A turn is in the middle of its work; its session."""
    world.say("/claude add a line")
    await world.model.reached("go", timeout=60)
    return str(world.states()[0]["session"])


async def test_beside_the_service_each_sandbox_is_listed_with_its_session(either: World) -> None:
    async with either.bot():
        session = await works(either)
        made = (await sandbox(either, "create")).out.strip()
        rows = {row["id"]: row for row in (await sandbox(either, "list", "--json")).json}
        assert rows.keys() == {f"{session}-1", made}
        used, by_hand = rows[f"{session}-1"], rows[made]
        assert used | {"since": 0, "age_seconds": 0} == {
            "id": f"{session}-1",
            "kind": either.environment.get("FORGEHAND_SANDBOX", "local"),
            "state": "running",
            "made_for": "session",
            "session": session,
            "turn": 1,
            "repo": either.repo.full_name,
            "since": 0,
            "age_seconds": 0,
            "needed": True,
            "kept_until": None,
        }
        assert 0 < used["age_seconds"] < 120
        assert (by_hand["session"], by_hand["repo"], by_hand["needed"]) == (None, None, False)
        text = (await sandbox(either, "list")).out
        assert text.split("\n")[0].split() == ["ID", "KIND", "STATE", "AGE", "REPOSITORY", "SESSION", "TURN", "NEED"]
        assert re.search(rf"{either.repo.full_name} +{session} +1  needed\n", text)
        assert re.search(r"made by hand +not needed\n", text)
        idle = (await sandbox(either, "list", "--repo", "octo-org/other", "--json")).json
        assert idle == [], "a filter applies to JSON too"
        status = (await sandbox(either, "status", f"{session}-1", "--json")).json
        assert status["metrics"]["memory_bytes"] > 1_000_000
        assert (status["sandbox_usd"] > 0) == ("FORGEHAND_SANDBOX" in either.environment)
        assert "which works in it\nuses CPU" in (await sandbox(either, "status", f"{session}-1")).out
        ended = (await sandbox(either, "terminate", "--all", "--json")).json
        assert {row["id"]: row["terminated"] for row in ended} == {f"{session}-1": False, made: True}
        either.model.release("go")
        assert await either.outcome() == "pull_request", either.replies()[0].body


async def test_a_kept_one_is_shown_as_that_with_all_turns_that_it_has_served(either: World) -> None:
    """And it is ended without being woken; the next turn gets another."""
    at_rest = "paused" if "FORGEHAND_SANDBOX" in either.environment else "kept"
    either.model.default(QUICK)
    async with either.bot(FORGEHAND_KEEP_MINUTES="30"):
        for turn in (1, 2):
            either.say("/claude add a line")
            assert await either.outcome(turn) in ("pull_request", "pushed"), either.replies()[-1].body
            kept = await rested(either, at_rest)
            assert (kept["turn"], kept["needed"], kept["id"]) == (turn, False, f"{kept['session']}-1")
            assert 29 * 60 < kept["kept_until"] - time.time() <= 30 * 60
        first = str(kept["id"])
        text = (await sandbox(either, "list")).out
        assert f"{at_rest}  " in text
        assert re.search(rf"{kept['session']} +2  kept until 20", text)
        status = await sandbox(either, "status", first)
        assert "turn 2, which has ended\nkept until 20" in status.out
        both = [json.loads(line) for line in (await sandbox(either, "logs", first, "--json")).out.splitlines()]
        assert {row["turn"] for row in both} == {1, 2}
        assert (await sandbox(either, "terminate", first)).out == f"{first}: ended\n"
        either.say("/claude add a line")
        assert await either.outcome(3) == "pushed", either.replies()[-1].body
        assert (await rested(either, at_rest))["id"] != first
    gone = [json.loads(line) for line in (await sandbox(either, "logs", first, "--json")).out.splitlines()]
    assert {1} <= {row["turn"] for row in gone} <= {1, 2}


async def test_logs_follow_the_agent_to_the_end_of_its_turn_and_what_was_made_by_hand_is_left_alone(
    either: World,
) -> None:
    made = (await sandbox(either, "create")).out.strip()
    async with either.bot():
        session = await works(either)
        following = asyncio.create_task(sandbox(either, "logs", f"{session}-1", "--follow", "--json"))
        so_far = await sandbox(either, "logs", f"{session}-1", "--json")
        assert "echo '# more'" in so_far.out
        assert '\\"type\\":\\"result\\"' not in so_far.out
        assert not following.done()
        either.model.release("go")
        await either.outcome()
        followed = await following
    assert made in [row["id"] for row in (await sandbox(either, "list", "--json")).json]
    rows = await forgehand(either.environment, "sessions", "logs", session, "--json")
    told = await forgehand(either.environment, "sessions", "logs", session)
    assert "✓ Bash echo '# more' >> shop.py" in told.out and '"type"' not in told.out
    assert (await sandbox(either, "logs", f"{session}-1")).out == told.out
    assert '\\"type\\":\\"result\\"' in followed.out
    assert followed.out == rows.out
    assert (await sandbox(either, "logs", f"{session}-1", "--json")).out == rows.out, "also when it is gone"


async def test_one_that_a_turn_works_in_is_ended_only_by_force(either: World) -> None:
    async with either.bot():
        session = await works(either)
        refused = await sandbox(either, "terminate", f"{session}-1")
        assert refused.code == 1
        assert f"forgehand sessions stop {session}" in refused.err
        assert "--force" in refused.err
        assert [row["id"] for row in (await sandbox(either, "list", "--json")).json] == [f"{session}-1"]
        forced = await sandbox(either, "terminate", f"{session}-1", "--force")
        assert (forced.code, forced.out) == (0, f"{session}-1: ended\n")
        assert await either.outcome() == "killed", either.replies()[0].body
        either.model.release("go")
    assert not either.pulls()


async def test_without_a_service_sandboxes_are_made_and_ended_too(either: World) -> None:
    made = await sandbox(either, "create", "--json")
    assert made.json["needed"] is False
    sandbox_id = made.json["id"]
    gone = await sandbox(either, "status", "no-such-box")
    assert (gone.code, "no sandbox 'no-such-box'" in gone.err) == (1, True)
    idle = await sandbox(either, "logs", sandbox_id)
    assert (idle.code, idle.err.strip()) == (1, f"No session has worked in {sandbox_id}.")
    assert (await sandbox(either, "terminate", sandbox_id)).code == 0
    assert (await sandbox(either, "list")).out == "There are no sandboxes.\n"
    assert (await sandbox(either, "terminate", sandbox_id)).code == 1
    assert (await sandbox(either, "terminate")).code == 2


async def test_a_paused_one_is_shown_as_that_and_not_woken(cloud: tuple[World, E2BStandIn]) -> None:
    world, e2b = cloud
    made = (await sandbox(world, "create")).out.strip()
    await e2b.clock.advance(601)
    [row] = (await sandbox(world, "list", "--json")).json
    status = (await sandbox(world, "status", made, "--json")).json
    assert (row["state"], status["state"], status["metrics"]) == ("paused", "paused", None)
    assert e2b.live[0].paused
    assert (await sandbox(world, "terminate", made)).code == 0
    assert not e2b.live


async def test_what_is_missing_is_said(cloud: tuple[World, E2BStandIn]) -> None:
    world, e2b = cloud
    no_key = await sandbox(world, "list", E2B_API_KEY="")
    assert (no_key.code, "E2B_API_KEY" in no_key.err) == (1, True)
    wrong = await sandbox(world, "list", E2B_API_KEY="e2b_wrong")
    assert (wrong.code, "E2B refuses the key" in wrong.err) == (1, True)
    e2b.registry.templates = {"other"}
    unbuilt = await sandbox(world, "create")
    assert (unbuilt.code, "forgehand sandbox template build" in unbuilt.err) == (1, True)
    assert not e2b.sandboxes


async def test_a_host_that_cannot_isolate_makes_none(world: World) -> None:
    no_namespaces = ["bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--"]
    refused = await forgehand(world.environment, "sandbox", "create", under=no_namespaces)
    assert (refused.code, "cannot isolate" in refused.err) == (1, True)
    listed = await forgehand(world.environment, "sandbox", "list", under=no_namespaces)
    assert listed.out == "There are no sandboxes.\n"


async def test_the_template_is_built_and_sandboxes_are_made_of_it(cloud: tuple[World, E2BStandIn]) -> None:
    world, e2b = cloud
    e2b.registry.templates = set()
    built = await sandbox(world, "template", "build", "--json", FORGEHAND_PUBLIC_URL="")
    assert (built.code, built.json["name"]) == (0, "forgehand"), built.err
    [build] = e2b.templates.builds
    assert (f"tpl-{build.name}", build.id) == (built.json["template_id"], built.json["build_id"])
    assert (build.cpus, build.memory_mb) == (2, 4096)
    assert "claude-code@" in built.err, "its log is shown"
    assert e2b.api_key not in str(build)
    assert (await sandbox(world, "create")).code == 0


async def test_a_build_that_fails_says_why(cloud: tuple[World, E2BStandIn]) -> None:
    world, e2b = cloud
    reason = {"message": "npm: no such version", "logEntries": []}
    told = {"templateID": "t", "buildID": "b", "status": "error", "logs": [], "logEntries": [], "reason": reason}
    e2b.faults.add(Fault("GET /templates/*/status", "fail", status=200, body=json.dumps(told), times=None))
    failed = await sandbox(world, "template", "build")
    assert (failed.code, "npm: no such version" in failed.err) == (1, True)
    odd = await sandbox(world, "template", "build", "--claude", "1.0.0")
    assert (odd.code, "too old" in odd.err) == (1, True)


async def test_only_the_cloud_has_a_template(world: World) -> None:
    refused = await sandbox(world, "template", "build")
    assert (refused.code, "FORGEHAND_SANDBOX=e2b" in refused.err) == (1, True)
