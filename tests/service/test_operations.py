"""What an operator has at hand: the switch, the state of health, figures, and log lines that tell a session's story."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message

from bot import checkup
from bot.models import Step
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github import Fault
from bot.store import audit
from bot.store.base import Store
from bot.web.webhooks import CountedAnswers
from tests.webhooks.test_delivery_log import POLL, until
from tests.world import World, work_under_way
from tests.world.command_line import forgehand
from tests.world.plain_http import plain_client
from tests.world.work_under_way import WRITE

TOKEN = "scrape-me"


@asynccontextmanager
async def served(world: World, **changes: str) -> AsyncIterator[httpx.AsyncClient]:
    """Seen by a Prometheus that has the token."""
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        world.bot(FORGEHAND_METRICS_TOKEN=TOKEN, **changes) as service,
        plain_client(base_url=service.url, timeout=10, headers=bearer) as client,
    ):
        yield client


def figure(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert found, f"{name} is not in\n{text}"
    return float(found[1])


async def test_paused_nothing_new_begins_and_all_see_it_until_it_is_resumed(world: World) -> None:
    world.model.default(Script([Say("Done.")]))
    async with served(world) as client:
        assert (await forgehand(world.environment, "pause")).out.startswith("Nothing new starts")
        world.say("/claude fix this")
        await world.github.changed(lambda: "Paused by the operator" in "".join(o.body for o in world.replies()), 20)
        ready = await client.get("/readyz")
        assert "forgehand resume" in ready.json()["troubles"]["switch"]
        assert ready.status_code == 200, "webhooks and running agents still need us"
        text = (await client.get("/metrics")).text
        assert figure(text, "forgehand_paused") == figure(text, 'forgehand_turns{state="queued"}') == 1
    async with served(world) as client:
        assert "switch" in (await client.get("/readyz")).json()["troubles"], "it outlives a restart"
        assert not world.model.requests
        assert (await forgehand(world.environment, "resume", "--json")).json["done"]
        assert await world.outcome() == "no_change"
        assert (await client.get("/readyz")).json()["troubles"] == {}
    store = await Store.open_reader(world.database)
    acts = [one.action for one in await audit.listing(store)]
    await store.close()
    assert [one for one in acts if one in ("pause", "resume")] == ["resume", "pause"]


async def test_the_operator_reads_who_did_what_and_is_reminded_of_a_pause(world: World) -> None:
    async with served(world):
        for words, stdin in ((["keys", "set", "ANTHROPIC_API_KEY", "--no-check"], "canary-of-a-key"), (["pause"], "")):
            assert (await forgehand(world.environment, *words, stdin=stdin)).code == 0
        well = await checkup.examine_folder(world.root / "data", world.database)
        assert (await forgehand(world.environment, "resume")).code == 0
        await forgehand(world.environment, "keys", "remove", "ANTHROPIC_API_KEY")
        told = (await forgehand(world.environment, "audit", "--json")).json
        lines = (await forgehand(world.environment, "audit", "--limit", "3")).out.splitlines()
    [paused] = [one for one in well if one.name == "paused"]
    assert paused.level == "warning" and "forgehand resume" in paused.fix
    acts = [(one["actor"], one["action"], one["subject"]) for one in told if one["actor"] == "operator"]
    assert [one[1] for one in acts] == ["key forgotten", "resume", "pause", "key stored"], "newest first"
    assert acts[0] == ("operator", "key forgotten", "ANTHROPIC_API_KEY")
    assert lines[0].split() == ["WHEN", "WHO", "WHAT"]
    assert len(lines) == 4 and "operator  key forgotten: ANTHROPIC_API_KEY" in lines[1]
    assert "canary" not in str(told)


async def test_pause_with_stop_ends_what_runs_and_keeps_what_waits(world: World) -> None:
    async with served(world):
        await work_under_way.begun(world, "/claude first")
        world.say("/claude --queue second")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
        world.model.default(Script([Say("Done.")]))
        ran = await forgehand(world.environment, "pause", "--stop")
        assert "1 turn is being stopped" in ran.out
        assert await world.outcome(timeout=20) == "stopped"
        assert "operator has paused" in world.replies()[0].body and "refs/forgehand/" in world.replies()[0].body
        assert world.states()[1]["state"] == "queued"
        await forgehand(world.environment, "resume")
        assert await world.outcome(2) is not None


async def test_the_operator_repeats_a_turn_in_the_name_of_who_asked_for_it(world: World) -> None:
    world.model.default(Script([Wait("stuck"), Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("stuck", timeout=60)
        session = str(world.states()[0]["session"])
        early = await forgehand(world.environment, "sessions", "retry", session)
        assert early.code == 1 and early.err.strip() == "It is still under way."
        world.model.release("stuck")
        assert await world.outcome() == "no_change"
        world.model.default(Script([Say("Still nothing.")]))
        asked = await forgehand(world.environment, "sessions", "retry", session, "--json")
        assert asked.json == {"asked_for": True, "message": "Another turn will start."}
        assert await world.outcome(2) == "no_change"
        world.repo.grant("alice", "read")
        refused = await forgehand(world.environment, "sessions", "retry", session)
        assert refused.code == 1 and "write access" in refused.err, refused
    assert len(world.states()) == 2
    told = [one for one in (await forgehand(world.environment, "audit")).out.splitlines() if "retry" in one]
    assert len(told) == 1 and f"operator  retry on the command line: {session} (for alice)" in told[0]


async def test_a_command_says_so_when_nobody_answers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from bot.cli import service

    async with world.bot():
        pass
    monkeypatch.setattr(service, "ANSWER_SECONDS", 0.1)
    done, words = await service.ask(world.root / "data" / "state.db", "pause", {})
    assert not done and "may not be running" in words


async def test_readyz_names_what_does_not_work(world: World) -> None:
    world.github.faults.add(Fault("GET /app", "fail", status=401, times=None))
    async with served(world) as client:
        found = await client.get("/readyz")
        assert found.status_code == 200 and "401" in found.json()["troubles"]["github"]
        assert (await client.get("/healthz")).status_code == 200


async def test_readyz_knows_whether_the_log_is_read(world: World) -> None:
    held = world.github.faults.add(Fault("GET /app/hook/deliveries", "hold", times=1))
    async with served(world, **POLL) as client:
        await held.reached.wait()
        assert "was not read yet" in (await client.get("/readyz")).json()["troubles"]["delivery_log"]
        held.release.set()

        async def ready() -> bool:
            return not (await client.get("/readyz")).json()["troubles"]

        await until(ready)


async def test_a_loop_that_fails_goes_on_and_metrics_and_one_line_tell_of_it(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.github.faults.add(Fault("GET /app/hook/deliveries", "fail", status=503, times=None))
    async with served(world, **POLL) as client:

        async def failures() -> float:
            return figure((await client.get("/metrics")).text, 'forgehand_loop_failures_total{loop="delivery_log"}')

        async def well_at(name: str) -> float:
            text = (await client.get("/metrics")).text
            return figure(text, f'forgehand_loop_last_success_timestamp_seconds{{loop="{name}"}}')

        async def has_failed_twice() -> bool:
            return await failures() >= 2

        async def works() -> bool:
            return await well_at("delivery_log") > 0

        await until(has_failed_twice)
        assert not await works()
        assert await well_at("admission") > 0, "the others do not mind"
        world.github.faults.clear()
        await until(works)
        assert await failures() >= 2
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    said = [line for line in lines if line["from"] == "bot.loops"]
    assert [(line["level"], line["loop"]) for line in said] == [("warning", "delivery_log"), ("info", "delivery_log")]
    assert "503" in said[0]["error"] and said[1]["failures"] >= 2


FOREIGN = """\
import os, urllib.request
for path, method in (("/v1/files", "POST"), ("/v1/messages", "GET"), ("/%2e%2e/v1/files", "POST")):
    try:
        urllib.request.urlopen(urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + path, method=method))
    except OSError as error:
        print(error)
"""


@pytest.mark.acceptance("D14")
async def test_what_the_gateway_refuses_an_agent_is_counted_by_reason(world: World) -> None:
    world.model.default(Script([Call("Bash", {"command": f"python3 - <<'E'\n{FOREIGN}E"}), Say("Done.")]))
    async with served(world) as client:
        world.say("/claude look")
        assert await world.outcome() == "no_change"
        text = (await client.get("/metrics")).text
    assert figure(text, 'forgehand_gateway_refusals_total{reason="path"}') == 3


async def test_webhooks_that_are_refused_are_counted_and_said_once_a_minute(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where the secret here is not the App's: nothing else would tell of it."""
    async with served(world) as client:
        world.app.webhook_secret = "changed at GitHub alone"
        for _ in range(3):
            world.say("/claude fix this")
        await world.github.idle()
        assert (await client.post("/webhook", content=b"{}")).status_code == 401
        text = (await client.get("/metrics")).text
    assert figure(text, 'forgehand_webhooks_total{status="401"}') == 4
    assert figure(text, 'forgehand_webhooks_total{status="202"}') == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    [said] = [line for line in lines if line["from"] == "bot.web.webhooks"]
    assert (said["level"], said["status"], said["times"]) == ("warning", 401, 1)
    assert "FORGEHAND_WEBHOOK_SECRET is not the App's" in said["why"]


async def test_what_was_not_said_is_told_with_the_next_line(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]

    async def send(message: Message) -> None:
        assert message["type"]

    async def receive() -> Message:
        return {"type": "http.request"}

    answered = CountedAnswers(PlainTextResponse("no", 401), lambda _: None, lambda: now[0])
    for now[0] in (0.0, 1.0, 59.0, 61.0):
        await answered({"type": "http", "method": "POST"}, receive, send)
    assert [vars(record)["times"] for record in caplog.records] == [1, 3]


async def test_metrics_tell_how_late_the_event_loop_is(world: World) -> None:
    async with served(world) as client, asyncio.timeout(10):

        async def late(least: str) -> float:
            text = (await client.get("/metrics")).text
            of_all = figure(text, "forgehand_loop_late_seconds_count")
            return of_all - figure(text, f'forgehand_loop_late_seconds_bucket{{le="{least}"}}')

        before = await late("0.5")
        time.sleep(1.0)  # so long nobody is answered
        while await late("0.5") == before:
            await asyncio.sleep(0.05)


async def test_metrics_tell_of_a_session_and_name_nobody(world: World) -> None:
    world.model.default(Script([WRITE, Say("Done.")]))
    async with served(world) as client:
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        await world.github.idle()
        answer = await client.get("/metrics")
    text = answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    assert figure(text, 'forgehand_turns_ended_total{outcome="pull_request"}') == 1
    assert figure(text, "forgehand_queue_wait_seconds_count") == 1
    assert figure(text, 'forgehand_step_seconds_count{step="work"}') == 1
    assert figure(text, "forgehand_spend_usd_total") > 0
    assert figure(text, 'forgehand_tokens_total{kind="input"}') > 0
    assert figure(text, 'forgehand_model_requests_total{status="2xx"}') >= 2
    assert figure(text, "forgehand_sandboxes") == 1, "the one that is kept"
    assert figure(text, 'forgehand_log_records_total{level="error"}') == 0
    assert figure(text, 'forgehand_deliveries{state="acted"}') >= 1
    names = ("alice", "octo", "shop", world.states()[0]["session"])
    assert not [name for name in names if name and name in text]
    assert len(text.splitlines()) < 250, "labels are bounded"


ALONE = {"FORGEHAND_POLL_SECONDS": "60"}
WITH_TOKEN = {"FORGEHAND_METRICS_TOKEN": TOKEN}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.review("security-11")
@pytest.mark.parametrize(
    ("settings", "headers", "status"),
    [
        (ALONE, {}, 200),
        (ALONE, {"Host": "localhost:9090"}, 200),
        (ALONE, {"Host": "bot.example"}, 401),
        (ALONE, {"X-Forwarded-For": "203.0.113.7"}, 401),
        (ALONE, {"X-Forwarded-Host": "bot.example"}, 401),
        (ALONE | {"FORGEHAND_PUBLIC_URL": "https://bot.example"}, {}, 401),
        ({}, {}, 401),
        (WITH_TOKEN, {}, 401),
        (WITH_TOKEN, BEARER, 200),
        (WITH_TOKEN, BEARER | {"X-Forwarded-For": "203.0.113.7"}, 200),
        (ALONE | WITH_TOKEN, {}, 200),
        (ALONE | WITH_TOKEN, {"Authorization": "Bearer scrape"}, 401),
    ],
)
async def test_metrics_are_for_a_token_or_this_machine_where_nobody_else_comes(
    world: World, settings: dict[str, str], headers: dict[str, str], status: int
) -> None:
    """A plain proxy on this machine says nothing of whom it asks for."""
    async with world.bot(**settings) as service, plain_client(base_url=service.url, timeout=10) as client:
        assert (await client.get("/metrics", headers=headers)).status_code == status


async def test_log_lines_lead_from_the_delivery_to_the_session(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.model.default(Script([Say("Done.")]))
    world.github.faults.add(Fault("GET /repos/*/collaborators/*", "fail", status=502, times=3))
    prepared = Fault("GET /repos/*/contents/*", "fail", status=502, times=3)
    world.github.faults.add(prepared)
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "no_change"
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    session = world.states()[0]["session"]
    guid = next(one.guid for one in world.app.deliveries if one.event == "issue_comment")
    assert any(line.get("delivery") == guid and line["from"] == "bot.handlers.intake" for line in lines)
    assert any(line.get("session") == session and line["from"] == "bot.sessions.flow" for line in lines)
    started = [line for line in lines if line.get("delivery") == guid and line.get("session") == session]
    assert started, "one line names both"


async def test_log_lines_tell_a_session_where_nothing_goes_wrong(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the webhook to the sandbox and the outcome, by the ids that pages and commands show."""
    world.declare_checks()
    told: list[dict[str, str]] = []

    async def all_is_told() -> bool:
        told.extend(json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{"))
        return any(one["message"] == "a turn has ended" for one in told)

    async with world.bot(FORGEHAND_KEEP_MINUTES="0"):
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        await until(all_is_told)
        session = str(world.states()[0]["session"])
    lines = [one for one in told if one.get("session") == session]
    assert all(one["turn"] == f"turn:{session}:1" for one in lines if one["from"].startswith("bot.sessions"))
    done = [one["step"] for one in lines if one["message"] == "a step is done"]
    assert list(dict.fromkeys(done)) == [step.value for step in Step]
    made = [one["sandbox"] for one in lines if one["message"] == "a sandbox is there"]
    ended = [one["sandbox"] for one in lines if one["message"] == "a sandbox was ended"]
    assert f"{session}-1" in made and len(made) == 2, "the agent's, and the one of the checks"
    assert set(ended) == set(made)
    assert [one["outcome"] for one in lines if one["message"] == "a turn has ended"] == ["pull_request"]


async def test_figures_are_asked_while_nothing_has_happened(world: World) -> None:
    async with served(world) as client:
        both = await asyncio.gather(client.get("/metrics"), client.get("/metrics"))
    assert all(one.status_code == 200 for one in both)
