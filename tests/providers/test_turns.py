"""Whole turns with the real CLI behind each provider, with an agent that looks for the provider's secrets."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.cli.sweep import credentials_in
from bot.models import Outcome, SessionId, TurnKey
from bot.simulation.anthropic import Call, Calls, Cut, Fail, Say, Script
from bot.store import spend
from bot.store.base import Store
from tests.providers.bedrock_stand_in import KEY_ID, ROLE_TOKEN, SimulatedBedrock
from tests.providers.foreign import ForeignModel
from tests.providers.standing import Standing, standing
from tests.world import World
from tests.world.command_line import forgehand

LOOK = (
    "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'",
    "find / \\( -path /proc -o -path /sys -o -path /usr \\) -prune -o -type f -size -64k -print0 2>/dev/null "
    "| xargs -0 -r grep -lE 'canary|PRIVATE KEY|ya29|AKIA|ASIA' 2>/dev/null | head; true",
)


def behind(world: World, stand: Standing) -> None:
    """Put the world's service in front of another provider."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        world.environment.pop(name)
    world.environment.update(stand.values)
    world.model = stand.model


@pytest.mark.parametrize("name", ["bedrock", "vertex"])
async def test_a_turn_works_is_paid_and_leaves_no_secret(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with World.running(tmp_path) as world, standing(name) as stand:
        behind(world, stand)
        stand.model.default(
            Script(
                [
                    Calls([Call("Bash", {"command": command, "description": "Look"}) for command in LOOK]),
                    Cut(),
                    Fail(429, times=1),
                    Call("Bash", {"command": "echo done > done.txt", "description": "Work"}),
                    Say("It is done."),
                ]
            )
        )
        async with world.bot():
            world.say("/claude write done.txt")
            assert await world.outcome() == Outcome.PULL_REQUEST
        assert isinstance(stand.model, ForeignModel)
        assert stand.model.refused == [], "the real client's requests are all in the provider's form"
        store = await Store.open(world.database)
        cost = await spend.turn_cost(store, TurnKey(SessionId(str(world.states()[0]["session"])), 1))
        await store.close()
        assert cost.usd > 0 and cost.open == 0, "the torn stream is paid, too"
        bodies = [body for one in world.issue.comments for _, body in one.history]
        said = [request.body for request in stand.model.requests]
        assert "FORGEHAND" in json.dumps(said, default=str) or "fht_" in json.dumps(said, default=str), "it has looked"
        assert credentials_in(stand.secrets, said, bodies, world.root / "data" / "state.db") == []
        log = capfd.readouterr().err
        assert not [secret for secret in stand.secrets if secret in log]


async def test_an_expired_key_is_named_in_the_thread_and_by_doctor(tmp_path: Path) -> None:
    async with World.running(tmp_path) as world, standing("bedrock") as stand:
        behind(world, stand)
        assert isinstance(stand.model, SimulatedBedrock)
        stand.model.tokens[KEY_ID] = ROLE_TOKEN, datetime.now(UTC) - timedelta(minutes=1)
        world.environment["FORGEHAND_BEDROCK_TOKEN"] = ROLE_TOKEN
        async with world.bot() as service:
            world.say("/claude fix this")
            assert await world.outcome() == Outcome.FAILED
            [comment] = world.replies()
            assert "The operator's key for the model's provider has expired." in comment.body
            port = service.url.rpartition(":")[2]
            ran = await forgehand({**world.environment, "FORGEHAND_PORT": port}, "doctor", "--json")
        found = next(one for one in ran.json if one["name"] == "model key")
        assert found["level"] == "bad" and "the key has expired" in found["words"]
        assert len(stand.model.refused) == 2, "one request by the agent, one by doctor: it does not try again"
        assert not [one for one in (*stand.secrets, ROLE_TOKEN) if one in ran.out + comment.body]
