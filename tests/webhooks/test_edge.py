"""The webhook's edge over the real wire: what is stored, what is refused, and that nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.store import deliveries, writer
from bot.store.base import Store
from bot.store.deliveries import DeliveryState
from tests.world import stored
from tests.world.plain_http import plain_client
from tests.world.stored import file_of
from tests.world.webhooks import BODY, SECRET, Edge, running, signed

# What is stored


async def test_a_delivery_is_stored_before_it_is_acknowledged(edge: Edge) -> None:
    answer = await edge.post(BODY, signed(BODY))
    assert (answer.status_code, answer.json()) == (202, {"status": "added"})
    row = await deliveries.get(edge.store, "g-1")
    assert row is not None
    assert (row.event, row.action, row.repo_id, row.number, row.sender) == ("issue_comment", "created", 7, 5, "alice")
    assert row.body == BODY.decode()
    assert edge.nudges == [1]


@pytest.mark.acceptance("A03")
async def test_a_thousand_of_the_same_at_once_are_one(edge: Edge) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in signed(BODY).items())
    request = f"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\n{head}\r\n".encode() + BODY

    async def post() -> bytes:
        reader, wire = await edge.connect()
        wire.write(request)
        line = await reader.readline()
        wire.close()
        await wire.wait_closed()
        return line.split()[1]

    assert set(await asyncio.gather(*(post() for _ in range(1000)))) == {b"202"}
    assert [row.guid for row in await edge.rows()] == ["g-1"]
    assert edge.nudges == [1]


@pytest.mark.acceptance("A04")
async def test_the_same_guid_with_another_body_is_a_conflict(edge: Edge) -> None:
    other = BODY.replace(b"alice", b"mallory")
    assert (await edge.post(BODY, signed(BODY))).status_code == 202
    assert (await edge.post(other, signed(other))).status_code == 409
    (row,) = await edge.rows()
    assert row.sender == "alice"


@pytest.mark.acceptance("A12")
@pytest.mark.parametrize(
    ("event", "body", "reason"),
    [
        ("ping", b'{"zen":"x"}', "Forgehand does not act on `ping`."),
        ("issues", b'{"action":"pinned"}', "Forgehand does not act on `issues` (pinned)."),
        ("something_new", b"{}", "Forgehand does not act on `something_new`."),
        ("projects_v2_item", b'{"action":"edited"}', "Forgehand does not act on `projects_v2_item` (edited)."),
    ],
)
async def test_what_we_do_not_act_upon_is_noted_without_its_body(
    edge: Edge, event: str, body: bytes, reason: str
) -> None:
    assert (await edge.post(body, signed(body, event=event))).status_code == 202
    row = await deliveries.get(edge.store, "g-1")
    assert row is not None
    assert (row.state, row.reason, row.body) == (DeliveryState.IGNORED, reason, None)
    assert edge.nudges == []


async def test_an_action_may_be_handled_by_itself(edge: Edge) -> None:
    body = b'{"action":"opened"}'
    assert (await edge.post(body, signed(body, event="issues"))).status_code == 202
    assert edge.nudges == [1]


@pytest.mark.acceptance("A16")
async def test_both_secrets_count_while_one_replaces_the_other(edge: Edge) -> None:
    for guid, secret in (("a", SECRET), ("b", "second secret")):
        assert (await edge.post(BODY, signed(BODY, guid=guid, secret=secret))).status_code == 202
    assert (await edge.post(BODY, signed(BODY, guid="c", secret="third"))).status_code == 401


# What is refused


@pytest.mark.acceptance("A01")
@pytest.mark.parametrize(
    "signatures",
    [
        [],
        [("X-Hub-Signature", "sha1=" + "0" * 40)],
        [("X-Hub-Signature-256", "sha256=" + "0" * 63)],
        [("X-Hub-Signature-256", "sha256=" + "x" * 64)],
        [("X-Hub-Signature-256", "sha256=" + "0" * 64)],
        [("X-Hub-Signature-256", signed(b"[")["X-Hub-Signature-256"])] * 2,
    ],
)
async def test_without_one_good_signature_nothing_is_parsed(edge: Edge, signatures: list[tuple[str, str]]) -> None:
    headers = [("X-GitHub-Delivery", "g-1"), ("X-GitHub-Event", "issue_comment"), *signatures]
    assert (await edge.post(b"[", headers)).status_code == 401
    assert await edge.rows() == []


@pytest.mark.acceptance("A02")
async def test_altered_and_encoded_bodies(edge: Edge) -> None:
    headers = signed(BODY)
    assert (await edge.post(BODY.replace(b"5", b"6"), headers)).status_code == 401
    assert (await edge.post(BODY + b"\n", headers)).status_code == 401
    assert (await edge.post(BODY, {**headers, "Content-Encoding": "gzip"})).status_code == 415
    assert (await edge.post(BODY, {**headers, "Content-Encoding": "identity"})).status_code == 202


@pytest.mark.parametrize("name", ["X-GitHub-Delivery", "X-GitHub-Event"])
@pytest.mark.parametrize("value", [None, "", "a b", "x" * 200, "<script>"])
async def test_the_headers_of_github_must_be_there(edge: Edge, name: str, value: str | None) -> None:
    headers = {key: text for key, text in signed(BODY).items() if key != name}
    if value is not None:
        headers[name] = value
    assert (await edge.post(BODY, headers)).status_code == 400
    assert await edge.rows() == []


@pytest.mark.acceptance("A10")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b"[]",
        b'{"a":NaN}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"number":1' + b"0" * 400 + b"}",
        b'{"action":"\\ud800"}',
        b'{"action":"\\u0000","sender":{"login":"a\\u0000b"}}',
        '{"action":"x"}'.encode("utf-16"),
        b"\xef\xbb\xbf{}",
        b'{"action":"a","action":"b"}',
        b'{"x":"\xff"}',
        b"payload=%7B%7D",
    ],
)
async def test_odd_bodies_are_refused_or_ignored(edge: Edge, body: bytes) -> None:
    for guid, event in (("a", "issue_comment"), ("b", "push")):
        assert (await edge.post(body, signed(body, guid=guid, event=event))).status_code in (202, 400)


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "login", "number"]), inner),
    max_leaves=5,
)
_FIELDS = ("action", "installation", "repository", "issue", "pull_request", "sender", "number", "comment")


@pytest.mark.acceptance("A11")
@given(payload=st.dictionaries(st.sampled_from(_FIELDS), _anything), event=st.sampled_from(["issue_comment", "push"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_payload_is_answered(tmp_path_factory: pytest.TempPathFactory, payload: Any, event: str) -> None:
    loop, edge = _shared(tmp_path_factory)
    body = json.dumps(payload).encode()
    answer = loop.run_until_complete(edge.post(body, signed(body, guid=hashlib.sha256(body).hexdigest(), event=event)))
    assert answer.status_code in (202, 400, 409)


_running: list[tuple[asyncio.AbstractEventLoop, Edge, Any]] = []


def _shared(factory: pytest.TempPathFactory) -> tuple[asyncio.AbstractEventLoop, Edge]:
    """One edge for all examples, in a loop of its own: hypothesis calls a plain function many times."""
    if not _running:
        loop = asyncio.new_event_loop()
        context = running(factory.mktemp("edge"))
        _running.append((loop, loop.run_until_complete(context.__aenter__()), context))
    loop, edge, _ = _running[0]
    return loop, edge


@pytest.fixture(scope="module", autouse=True)
def stop_shared() -> Any:
    yield
    for loop, _, context in _running:
        loop.run_until_complete(context.__aexit__(None, None, None))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    _running.clear()


async def test_other_methods_and_paths(edge: Edge) -> None:
    assert (await edge.client.get("/webhook")).status_code == 405
    assert (await edge.client.post("/webhook/x")).status_code == 404


# When the store cannot


@pytest.mark.acceptance("A13")
async def test_a_locked_database_is_a_503_and_the_next_try_succeeds(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BUDGET_SECONDS", 0.3)
    other = sqlite3.connect(file_of(edge.store), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = await edge.post(BODY, signed(BODY))
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "30"
    assert (await edge.client.get("/healthz")).status_code == 200
    other.execute("COMMIT")
    other.close()
    assert (await edge.post(BODY, signed(BODY))).json() == {"status": "added"}


@pytest.mark.acceptance("A13")
async def test_a_full_disk_is_a_503_and_passes(edge: Edge) -> None:
    pages = await edge.store.write(lambda db: db.execute("PRAGMA page_count").fetchone()[0])
    await edge.store.write(lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    body = b'{"x":"' + b"y" * 100_000 + b'"}'
    assert (await edge.post(body, signed(body))).status_code == 503
    await edge.store.write(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone())
    assert (await edge.post(body, signed(body))).status_code == 202


SERVING = """
import asyncio, sys
from pathlib import Path
from starlette.applications import Starlette
from bot.settings import Secret
from bot.store.base import Store
from bot.web.server import Server, tcp_socket
from bot.web.webhooks import webhook_routes

async def main():
    store = await Store.open(Path(sys.argv[1]))
    routes = webhook_routes(store, [Secret(sys.argv[2])], handled=["issue_comment"], on_stored=lambda: None)
    async with Server(Starlette(routes=routes), tcp_socket("127.0.0.1", 0)) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.acceptance("F04")
async def test_a_kill_right_after_the_answer_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVING, str(path), SECRET, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()
    async with plain_client(base_url=url) as client:
        headers = [signed(BODY, guid=str(n)) for n in range(20)]
        answers = await asyncio.gather(*(client.post("/webhook", content=BODY, headers=one) for one in headers))
        os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    assert {answer.status_code for answer in answers} == {202}
    store = await Store.open(path)
    kept = [row for row in await stored.newest_deliveries(store) if row.state is deliveries.DeliveryState.RECEIVED]
    assert {row.guid for row in kept} == {str(n) for n in range(20)}
    await store.close()
