"""The opt-in by which E2B puts the model's key into requests: never a key inside, and said loudly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.errors import SettingsError
from bot.settings import read_e2b
from sandbox.e2b.secret import Unmetered
from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentSpec
from sandbox.runner import web
from tests.e2b_stand_in import Fault
from tests.world.e2b import e2b_spine, e2b_world
from tests.world.environments import short_folder, small_agent

KEY = "sk-ant-canary-key-of-the-operator"
GOOD = {
    "FORGEHAND_SANDBOX": "e2b",
    "E2B_API_KEY": "e2b_secret",
    "FORGEHAND_E2B_UNMETERED": "1",
    "ANTHROPIC_API_KEY": KEY,
}
SPEC = EnvironmentSpec(labels={}, public_repository=True)
UNMETERED = Unmetered(KEY, "model.example", path="/gateway/anthropic")


@pytest.fixture
def root() -> Iterator[Path]:
    with short_folder() as found:
        yield found


def changed() -> dict[str, Any]:
    return {"gateway_url": "https://model.example", "unmetered": UNMETERED}


async def test_the_key_is_e2bs_secret_and_never_inside(root: Path) -> None:
    async with e2b_world(root, small_agent(root)) as world:
        for version in (1, 2):
            provider = world.provider(**changed())
            env = await provider.create(f"k-{version}", SPEC)
            done = await env.exec(["env"], network=True)
            assert KEY.encode() not in done.stdout
            assert world.e2b.registry.secrets == {"forgehand-test": [KEY] * version}
            await provider.close()
        for sandbox in world.e2b.sandboxes:
            rule = {"transform": {"headers": {"x-api-key": "${e2b.secrets.forgehand-test}"}}}
            assert sandbox.network["rules"] == {"model.example": [rule]}
            assert sandbox.network["allowOut"] == ["model.example"]
            inside = b"".join(path.read_bytes() for path in sandbox.folder.rglob("*") if path.is_file())
            assert KEY.encode() not in inside
        told = [call for call in world.e2b.calls if KEY.encode() in call.body or KEY in call.query]
        assert {call.path.split("/")[1] for call in told} == {"secrets"}


async def test_an_account_without_secrets_is_told_to_leave_it_out(root: Path) -> None:
    async with e2b_world(root, small_agent(root)) as world:
        said = f'{{"code": 403, "message": "not enabled: {KEY}"}}'
        world.e2b.faults.add(Fault("POST /secrets*", "fail", status=403, body=said, times=None))
        with pytest.raises(SandboxError, match="FORGEHAND_E2B_UNMETERED") as error:
            await world.provider(**changed()).create("one", SPEC)
        assert KEY not in str(error.value)
        assert not world.e2b.sandboxes


async def test_the_start_warns_that_no_budget_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = {"FORGEHAND_E2B_UNMETERED": "1", "ANTHROPIC_BASE_URL": "https://model.example"}
    async with e2b_spine(tmp_path, **changes) as (world, _), world.bot():
        pass
    assert "NO BUDGET" in capsys.readouterr().err


def test_requests_lose_the_gateways_own_path() -> None:
    target = web.Target.of("https://model.example", {})._replace(strip="/gateway/anthropic")
    head, _ = web.renamed(b"POST /gateway/anthropic/v1/messages HTTP/1.1\r\nHost: a\r\n\r\n", target)
    assert head.startswith(b"POST /v1/messages HTTP/1.1\r\n")
    head, _ = web.renamed(b"POST /gateway/anthropicx HTTP/1.1\r\nHost: a\r\n\r\n", target)
    assert head.startswith(b"POST /gateway/anthropicx HTTP/1.1\r\n")


def test_it_is_off_unless_it_is_asked_for_and_shows_no_key() -> None:
    found = read_e2b(GOOD)
    assert found is not None
    assert found.unmetered == Unmetered(KEY, "api.anthropic.com", path="/gateway/anthropic")
    assert KEY not in repr(found)
    metered = read_e2b({**GOOD, "FORGEHAND_E2B_UNMETERED": "0"})
    assert metered is not None
    assert metered.unmetered is None


@pytest.mark.parametrize("changes", [{"ANTHROPIC_API_KEY": ""}, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}])
def test_what_it_needs_is_said(changes: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="FORGEHAND_E2B_UNMETERED=1 needs"):
        read_e2b({**GOOD, **changes})
