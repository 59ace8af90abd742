"""The real Claude Code CLI behind the gateway: it works there, and it ends at once where we say that it must."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.models import InstallationId, SessionId, TurnKey
from bot.settings import Secret
from bot.simulation.anthropic import Call, Cut, Fail, Say, Script, SimulatedAnthropic, Step
from bot.simulation.loopback import serving
from bot.store import gateway as rows
from bot.store import spend
from bot.store.base import Store
from bot.web.gateway import AnthropicApi, Credential, Gateway, dialect
from tests.world.gateway import gateway_app

REAL_KEY = "sk-ant-api03-canary-of-the-installation"
MODEL = "claude-sonnet-5-5"
KEY = TurnKey(SessionId("s0000001"), 1)
FLAGS = ["-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose", "--model", MODEL]
FLAGS += ["--setting-sources", "", "--strict-mcp-config"]
FREE = ("--dangerously-skip-permissions",)
QUIET = {"IS_SANDBOX": "1", "DISABLE_UPDATES": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def claude() -> Path:
    found = importlib.util.find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        pytest.skip("the `local` extra, which brings the CLI, is not installed")
    return Path(found.origin).parent / "_bundled" / "claude"


class Rig:
    def __init__(self, model: SimulatedAnthropic, store: Store, served: tuple[int, Gateway], folder: Path) -> None:
        self.model, self.store, self.folder = model, store, folder
        self.port, self.gateway = served
        (folder / "home").mkdir()
        (folder / "work").mkdir()

    async def mint(self, **terms: Any) -> str:
        given = {"model": MODEL, "budget_usd": 5.0, "expires_at": self.store.now() + 600, **terms}
        return (await rows.mint(self.store, KEY, InstallationId(7), **given)).reveal()

    async def run(self, token: str, prompt: str, *flags: str) -> tuple[int | None, list[dict[str, Any]]]:
        environment = {
            **QUIET,
            "HOME": str(self.folder / "home"),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": token,
        }
        environment["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{self.port}/gateway/anthropic"
        process = await asyncio.create_subprocess_exec(
            claude(),
            *FLAGS,
            *(flags or FREE),
            cwd=self.folder / "work",
            env=environment,
            stdin=-1,
            stdout=-1,
            stderr=-1,
        )
        message = {"type": "user", "message": {"role": "user", "content": prompt}, "client_composed": True}
        try:
            async with asyncio.timeout(60):
                out, _ = await process.communicate(json.dumps(message).encode() + b"\n")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, [json.loads(line) for line in out.splitlines()]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    store = await Store.open(tmp_path / "data" / "state.db")

    async def credential(_: InstallationId) -> Credential:
        return Credential(Secret(REAL_KEY))

    async with SimulatedAnthropic.running(REAL_KEY) as model:
        app = gateway_app(Gateway(store, AnthropicApi(model.url, credential)))
        async with serving(app) as port:
            yield Rig(model, store, (port, app.state.gateway), tmp_path)
        await app.state.gateway.close()
    await store.close()


async def test_it_reads_edits_tests_and_says_so(rig: Rig) -> None:
    path = rig.folder / "work" / "calc.py"
    path.write_text("def add(a, b):\n    return a - b\n", encoding="utf-8")
    change = {"file_path": str(path), "old_string": "a - b", "new_string": "a + b"}
    steps: list[Step] = [
        Call("Read", {"file_path": str(path)}, text="I look at it."),
        Cut(),
        Call("Edit", change),
        Call(
            "Bash",
            {"command": "python3 -c 'import calc; print(calc.add(1, 2)); print(sorted(__import__(\"os\").environ))'"},
        ),
        lambda request: Say(f"Fixed. {request.tool_results[-1].text}"),
    ]
    rig.model.script("fix", Script(steps))
    code, lines = await rig.run(await rig.mint(), "Fix it [[scenario:fix]]")
    assert (code, lines[-1]["type"], lines[-1]["is_error"]) == (0, "result", False)
    assert lines[-1]["result"].startswith("Fixed. 3")
    assert "a + b" in path.read_text(encoding="utf-8")
    assert all(request.headers["x-api-key"] == REAL_KEY for request in rig.model.requests)
    cost = await spend.turn_cost(rig.store, KEY)
    assert cost.counted_usd >= lines[-1]["total_cost_usd"] > 0, (
        "the torn stream was paid too, and the client forgets it"
    )
    assert REAL_KEY not in json.dumps(lines)
    assert not rig.gateway.refusals


@pytest.mark.acceptance("D14")
@pytest.mark.parametrize(
    ("case", "words"),
    [("budget", "Credit balance is too low"), ("revoked", "Invalid API key"), ("requests", "403")],
)
@pytest.mark.parametrize("flags", [(), (*FREE, "--fallback-model", "claude-haiku-5-5")], ids=["alone", "levers"])
async def test_it_ends_at_once_when_we_refuse(rig: Rig, case: str, words: str, flags: tuple[str, ...]) -> None:
    terms: dict[str, dict[str, Any]] = {"budget": {"budget_usd": 0.0}, "requests": {"max_requests": 0}}
    token = await rig.mint(fallback="claude-haiku-5-5", **terms.get(case, {}))
    if case == "revoked":
        await rows.revoke(rig.store, KEY)
    code, lines = await rig.run(token, "Fix it", *flags)
    assert code == 1
    assert words in lines[-1]["result"]
    assert not [line for line in lines if line.get("subtype") == "api_retry"]
    assert rig.model.requests == []


@pytest.mark.acceptance("F14")
async def test_a_dead_credential_makes_no_storm(rig: Rig) -> None:
    rig.model.default(Script([Fail(401)]))
    code, lines = await rig.run(await rig.mint(), "Fix it")
    assert (code, lines[-1]["api_error_status"]) == (1, 401)
    assert len(rig.model.requests) == 1


@pytest.mark.review("security-2")
@pytest.mark.review("suspected-7")
@pytest.mark.parametrize(
    ("flags", "without"),
    [
        (FREE, {}),
        ((*FREE, "--effort", "max"), {}),
        ((*FREE, "--fallback-model", "claude-haiku-5-5", "--task-budget", "50000"), {}),
        ((*FREE, "--json-schema", '{"type":"object","properties":{"a":{"type":"string"}}}'), {}),
        ((*FREE, "--thinking", "disabled"), {}),
        ((*FREE, "--betas", "context-1m-2025-08-07"), {}),
        (("--permission-mode", "plan"), {"beta", "field"}),
    ],
    ids=["work", "effort", "levers", "schema", "no thinking", "long context", "plan"],
)
async def test_all_that_it_sends_is_known(rig: Rig, flags: tuple[str, ...], without: set[str]) -> None:
    """A newer one that sends more shows here what the lists must get."""
    calls: list[Step] = [
        Call("ToolSearch", {"query": "select:WebSearch", "max_results": 5}),
        Call("Agent", {"description": "d", "prompt": "look", "subagent_type": "general-purpose"}),
        Call("WebSearch", {"query": "what is it"}),
        Say("Done."),
    ]
    rig.model.script("all", Script(calls))
    code, lines = await rig.run(await rig.mint(), "Go [[scenario:all]]", *flags)
    assert code == 0, lines[-1]
    assert len(rig.model.requests) >= 4
    assert not rig.gateway.refusals
    assert set(rig.gateway.left_out) == set(without)
    sent = {beta for request in rig.model.requests for beta in request.headers["anthropic-beta"].split(",")}
    assert sent <= dialect.BETAS


@pytest.mark.review("security-2")
async def test_it_ends_at_once_at_a_field_that_nobody_knows(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "FIELDS", dialect.FIELDS - {"metadata"})
    code, lines = await rig.run(await rig.mint(), "Fix it")
    assert code == 1
    assert "naming metadata in FORGEHAND_GATEWAY_ALLOW" in lines[-1]["result"]
    assert not [line for line in lines if line.get("subtype") == "api_retry"]
    assert set(rig.gateway.refusals) == {"field"}
    assert rig.gateway.refusals["field"] < 10, "it tries without what it knows to be new, and gives up"
    assert await rows.last_refusal(rig.store, KEY) == "field"


@pytest.mark.review("security-5")
async def test_it_ends_at_once_when_its_token_was_cut_off(rig: Rig) -> None:
    token = await rig.mint()
    await rows.note_refusal(rig.store, rows.digest(token), "storm", last="storm")
    code, lines = await rig.run(token, "Fix it")
    assert code == 1
    assert "its token was cut off" in lines[-1]["result"]
    assert rig.model.requests == []
