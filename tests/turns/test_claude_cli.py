"""The real Claude Code binary in the execution, against the scripted model."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bot.sessions.money.budget import Prices, canonical, full_name
from bot.simulation.anthropic import Call, Say, Script, SimulatedAnthropic, Wait
from sandbox.agents.base import AgentRun, turn_folder
from sandbox.agents.claude import Claude
from sandbox.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentSaid,
    ModelAnswered,
    PermissionAsked,
    Retrying,
    SessionStarted,
    ToolCalled,
    ToolReturned,
)
from sandbox.execution import ExecutionEnvironment, RunState
from sandbox.plain import PlainProvider, PlainSettings
from sandbox.primitives import EnvironmentSpec
from tests import slices

SDK = find_spec("claude_agent_sdk")
BINARY = Path(SDK.origin or "").parent / "_bundled" / "claude" if SDK else Path("absent")
pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="the Claude Code binary is not installed")
TOKEN = "fht_turn-token"
FEW_MODELS = ("opus", "sonnet", "haiku", "haiku[1m]", "claude-opus-4-5")
"""FORGEHAND_TESTS=all tries every name that has a price."""


class StraightToTheModel(Claude):
    """The scripted model stands where the gateway would be."""

    gateway_path = ""


@asynccontextmanager
async def relayed(socket: Path, url: str) -> AsyncIterator[None]:
    """The model's TCP port as a Unix socket."""
    far = urlsplit(url)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection(far.hostname, far.port)
        await asyncio.gather(copy(reader, to_writer), copy(to_reader, writer))

    server = await asyncio.start_unix_server(serve, socket)
    yield
    server.close()


class Cli:
    def __init__(self, model: SimulatedAnthropic, execution: ExecutionEnvironment) -> None:
        self.model = model
        self.execution = execution
        self.work = Path(execution.primitives.layout.work)
        self.session = str(uuid.uuid4())

    def run(self, prompt: str) -> AgentRun:
        return AgentRun(
            turn=1,
            prompt=prompt,
            model="claude-sonnet-5-5",
            token=TOKEN,
            agent_session_id=self.session,
            resume=False,
            max_turns=20,
            budget_usd=2.0,
            timeout_seconds=60,
            instructions="The house rule is: be brief.",
            allowed_tools=("Read", "Bash(echo *)"),
            denied_tools=("Bash(rm -rf *)",),
        )

    async def events(self, run: AgentRun) -> list[AgentEvent]:
        await self.execution.start(run)
        decoder = self.execution.agent.decoder()
        found: list[AgentEvent] = []
        async for chunk in self.execution.follow(run.turn, 0):
            for line in chunk.lines:
                found += decoder.feed(line)
        return found


@pytest.fixture
async def cli(tmp_path: Path) -> AsyncIterator[Cli]:
    sockets = tmp_path / "s"
    sockets.mkdir()
    settings = PlainSettings(tmp_path / "e", sockets, BINARY)
    async with SimulatedAnthropic.running(api_key=TOKEN) as model, relayed(sockets / "gateway.sock", model.url):
        primitives = await PlainProvider(settings).create("cli", EnvironmentSpec(labels={}, public_repository=False))
        found = Cli(model, ExecutionEnvironment(primitives, StraightToTheModel()))
        yield found
        await found.execution.close()


def of(events: list[AgentEvent], kind: type) -> list:  # type: ignore[type-arg]
    return [event for event in events if isinstance(event, kind)]


async def test_a_turn_with_tools_and_the_next_one_resumed(cli: Cli) -> None:
    cli.model.default(
        Script(
            [
                Call("Bash", {"command": "echo made > made.txt", "description": "Make"}),
                Say("It is made."),
            ]
        )
    )
    run = cli.run("/context make @made.txt")
    events = await cli.events(run)
    status = await cli.execution.status(1)
    assert (status.state, status.exit_code) == (RunState.EXITED, 0), _stderr(cli, 1)
    assert of(events, SessionStarted)[0].agent_session_id == cli.session
    assert [call.title for call in of(events, ToolCalled)] == ["echo made > made.txt"]
    assert of(events, ToolReturned)[0].ok
    assert of(events, AgentSaid)[-1].text == "It is made."
    assert [(end.ok, end.reason) for end in of(events, AgentEnded)] == [(True, "completed")]
    assert (cli.work / "made.txt").read_text() == "made\n"
    sent = str(cli.model.requests[0].body)
    assert "/context make @made.txt" in sent
    assert "The house rule is: be brief." in sent
    assert "Co-Authored-By" not in sent

    transcript = await cli.execution.transcript(cli.session)
    assert transcript and b"It is made." in transcript
    cli.model.default(Script([Say("Still there.")]))
    again = replace(run, turn=2, resume=True, prompt="And now?", instructions="The new rule is: be kind.")
    events = await cli.events(again)
    assert [end.text for end in of(events, AgentEnded)] == ["Still there."], _stderr(cli, 2)
    last = str(cli.model.requests[-1].body)
    assert "It is made." in last
    assert "The new rule is: be kind." in last
    assert "house rule" not in last


async def test_a_word_in_between_is_heard_in_the_same_run(cli: Cli) -> None:
    cli.model.default(
        Script([Wait("told"), Call("Bash", {"command": "echo one", "description": "One"}), Say("Kept small.")])
    )
    run = cli.run("Do it")
    following = asyncio.create_task(cli.events(run))
    await cli.model.reached("told", timeout=60)
    assert await cli.execution.steer(1, "comment-1", "By the way, keep it small.")
    cli.model.release("told")
    events = await following
    assert of(events, AgentEnded)[-1].text == "Kept small."
    assert "By the way, keep it small." in str(cli.model.requests[-1].body)
    assert await cli.execution.steer(1, "comment-2", "Too late") is False


async def test_permission_is_asked_for_and_answered(cli: Cli) -> None:
    calls = [Call("Bash", {"command": f"touch {name}", "description": name}) for name in ("yes", "no")]
    cli.model.default(Script([*calls, Say("Asked twice.")]))
    run = replace(cli.run("Go"), permission="ask", allowed_tools=())
    await cli.execution.start(run)
    decoder = cli.execution.agent.decoder()
    ends: list[AgentEnded] = []
    async for chunk in cli.execution.follow(1, 0):
        for event in [event for line in chunk.lines for event in decoder.feed(line)]:
            if isinstance(event, PermissionAsked) and event.title == "touch yes":
                assert await cli.execution.permit(1, event.request_id)
            elif isinstance(event, PermissionAsked):
                assert await cli.execution.forbid(1, event.request_id, "Not that.")
            elif isinstance(event, AgentEnded):
                ends.append(event)
    assert [end.text for end in ends] == ["Asked twice."]
    assert (cli.work / "yes").exists()
    assert not (cli.work / "no").exists()
    assert "Not that." in str(cli.model.requests[-1].body)


async def test_deny_rules_hold_though_nothing_is_asked(cli: Cli) -> None:
    (cli.work / "kept").mkdir()
    cli.model.default(
        Script(
            [
                Call("Bash", {"command": "rm -rf kept"}),
                Call("Bash", {"command": "git push origin HEAD:main"}),
                Say("Refused."),
            ]
        )
    )
    events = await cli.events(cli.run("Go"))
    assert [back.ok for back in of(events, ToolReturned)] == [False, False]
    assert (cli.work / "kept").exists()
    assert of(events, AgentEnded)[-1].ok


async def test_a_structured_answer(cli: Cli) -> None:
    schema = {"type": "object", "properties": {"verdict": {"enum": ["approve", "comment"]}}, "required": ["verdict"]}
    cli.model.default(Script([Call("StructuredOutput", {"verdict": "comment"}), Say("Given.")]))
    events = await cli.events(replace(cli.run("Review"), schema=schema, max_turns=None, permission="plan"))
    assert of(events, AgentEnded)[-1].structured == {"verdict": "comment"}, _stderr(cli, 1)


async def test_a_stopped_run_can_be_resumed(cli: Cli) -> None:
    cli.model.default(Script([Call("Bash", {"command": "echo begun > begun; tail -f /dev/null"})]))
    run = cli.run("Go")
    following = asyncio.create_task(cli.events(run))
    async with asyncio.timeout(30):
        while not (cli.work / "begun").exists():
            await asyncio.sleep(0.02)
    await cli.execution.stop(1, grace=10)
    events = await following
    status = await cli.execution.status(1)
    assert (status.exit_code, status.stopped) == (143, True)
    assert of(events, AgentEnded) == []
    cli.model.default(Script([Say("Gone on.")]))
    events = await cli.events(replace(run, turn=2, resume=True, prompt="Go on"))
    assert of(events, AgentEnded)[-1].ok, _stderr(cli, 2)
    assert "echo begun" in str(cli.model.requests[-1].body)


async def test_a_dead_token_shows_as_a_retry_at_once(cli: Cli) -> None:
    run = replace(cli.run("Go"), token="fht_revoked")
    await cli.execution.start(run)
    decoder = cli.execution.agent.decoder()
    async for chunk in cli.execution.follow(1, 0):
        retries = of([event for line in chunk.lines for event in decoder.feed(line)], Retrying)
        if retries:
            break
    assert retries[0].status == 401
    await cli.execution.stop(1, grace=5)


def _stderr(cli: Cli, turn: int) -> str:
    path = Path(cli.execution.primitives.layout.out) / f"turn-{turn}" / "stderr.log"
    return path.read_text() if path.exists() else "(no stderr)"


async def test_what_no_turn_needs_is_not_sent_with_each_request(cli: Cli) -> None:
    """The tools and skills that are switched off made 42 % of a request, which is paid for at every step."""
    cli.model.default(Script([Say("Done.")]))
    await cli.events(cli.run("Do it"))
    [asked] = [one for one in cli.model.requests if one.body.get("tools")]
    names = {tool["name"] for tool in asked.body["tools"]}
    assert {"Agent", "Bash", "Edit", "Read", "Write"} <= names
    assert not names & {"Workflow", "Skill", "ReportFindings", "ListAgents", "SendMessage", "ScheduleWakeup"}
    assert not any(word in str(asked.body) for word in ("deep-research", "code-review", "plugin-authoring"))
    assert len(json.dumps(asked.body)) < 26_000


@pytest.mark.parametrize("name", FEW_MODELS if not slices.EVERY else Prices().names)
async def test_each_model_is_asked_for_by_its_own_name(cli: Cli, name: str) -> None:
    """A name that the program takes for another model would be refused by the gateway, turn after turn. The meter of
    the context window knows its size as the program does."""
    cli.model.default(Script([Say("Done.")]))
    events = await cli.events(replace(cli.run("Hello"), model=full_name(name)))
    assert {canonical(one.body["model"]) for one in cli.model.requests} == {canonical(name)}
    stream = Path(turn_folder(cli.execution.primitives.layout, 1)) / "stream.jsonl"
    used = json.loads(stream.read_text(encoding="utf-8").splitlines()[-1])["modelUsage"]
    assert {one.window for one in of(events, ModelAnswered)} == {one["contextWindow"] for one in used.values()}
