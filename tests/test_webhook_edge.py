"""The webhook's edge over the real wire: what is stored, what is refused, and that nobody can make it fall over."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.settings import Secret
from bot.store import deliveries, writer
from bot.store.base import Store
from bot.store.deliveries import DeliveryState
from bot.web.bodies import BodyLimits
from bot.web.health import health_routes
from bot.web.protocol import HeadLimits
from bot.web.server import Server, tcp_socket
from bot.web.webhooks import webhook_routes

SECRET = "first secret"
HANDLED = ("issue_comment", "issues.opened")
BODY = b'{"action":"created","issue":{"number":5},"repository":{"id":7},"sender":{"login":"alice"}}'
MEGABYTE = 1024 * 1024


def signed(body: bytes, *, guid: str = "g-1", event: str = "issue_comment", secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-GitHub-Delivery": guid, "X-GitHub-Event": event, "X-Hub-Signature-256": f"sha256={digest}"}


@dataclass
class Edge:
    """A running edge, its store, and how often it asked for work to be done."""

    store: Store
    server: Server
    client: httpx.AsyncClient
    nudges: list[int] = field(default_factory=list)

    async def post(self, body: bytes, headers: dict[str, str] | list[tuple[str, str]]) -> httpx.Response:
        return await self.client.post("/webhook", content=body, headers=headers)

    async def rows(self) -> list[deliveries.Delivery]:
        return await deliveries.recent(self.store)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        url = httpx.URL(self.server.url)
        return await asyncio.open_connection(url.host, url.port)


@asynccontextmanager
async def running(
    folder: Path, *, limits: BodyLimits | None = None, head_limits: HeadLimits | None = None
) -> AsyncIterator[Edge]:
    store = await Store.open(folder / "state.db")
    nudges: list[int] = []
    secrets = [Secret(SECRET), Secret("second secret")]
    routes = webhook_routes(
        store, secrets, handled=HANDLED, on_stored=lambda: nudges.append(1), limits=limits or BodyLimits()
    )
    app = Starlette(routes=[*routes, *health_routes({})])
    server = Server(app, tcp_socket("127.0.0.1", 0), head_limits=head_limits or HeadLimits(), grace_seconds=1)
    async with server, httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        yield Edge(store, server, client, nudges)
    await store.close()


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    async with running(tmp_path) as running_edge:
        yield running_edge


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
        ("ping", b'{"zen":"x"}', "Nothing is done upon `ping`."),
        ("issues", b'{"action":"pinned"}', "Nothing is done upon `issues` (pinned)."),
        ("something_new", b"{}", "Nothing is done upon `something_new`."),
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


# Too large, too slow, too many


@pytest.mark.acceptance("A07")
async def test_the_cap_holds_for_declared_and_for_chunked_bodies(edge: Edge) -> None:
    whole = b'{"action":"' + b"x" * (25 * MEGABYTE - 13) + b'"}'
    assert len(whole) == 25 * MEGABYTE
    assert (await edge.post(whole, signed(whole, event="push"))).status_code == 202
    assert (await edge.post(whole + b" ", signed(whole + b" "))).status_code == 413

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1024):
            yield b"x" * MEGABYTE

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = await edge.client.post("/webhook", content=endless(), headers=signed(b"x"))
    assert answer.status_code == 413
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 * 1024
    assert [row.event for row in await edge.rows()] == ["push"]


@pytest.mark.acceptance("A07")
async def test_a_lying_length(edge: Edge) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in signed(BODY).items())
    for length, body in ((len(BODY) - 10, BODY), (27 * MEGABYTE, BODY)):
        reader, wire = await edge.connect()
        wire.write(f"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{head}\r\n".encode() + body)
        line = await asyncio.wait_for(reader.readline(), 10)
        assert line.split()[1] in (b"400", b"401", b"413")
        wire.close()
    assert await edge.rows() == []


async def test_what_all_bodies_hold_together_is_bounded_and_the_largest_makes_room(tmp_path: Path) -> None:
    """A stranger, whose signature is looked at last, fills what there is but for a byte: GitHub still gets through."""
    limits = BodyLimits(all_bytes=3 * MEGABYTE, linger_seconds=0.1)
    big = b'{"a":"' + b"x" * (3 * MEGABYTE - 9) + b'"}'
    async with running(tmp_path, limits=limits) as edge:
        head = "".join(f"{name}: {value}\r\n" for name, value in signed(big, secret="not ours").items())
        reader, held = await edge.connect()
        held.write(f"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: {len(big)}\r\n{head}\r\n".encode() + big[:-1])
        await held.drain()
        refused = asyncio.create_task(asyncio.wait_for(reader.read(), 10))
        while not refused.done():  # until all of the large one has arrived, there is room
            assert (await edge.post(BODY, signed(BODY, guid="small"))).status_code == 202
        answer = refused.result()
        assert answer.startswith(b"HTTP/1.1 503 ") and b"retry-after" in answer
        held.close()
        await held.wait_closed()
    async with running(tmp_path, limits=limits) as edge:
        assert (await edge.post(big, signed(big, guid="third"))).status_code == 202


@pytest.mark.acceptance("A08")
async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    limits = BodyLimits(seconds=0.2, linger_seconds=0.1)
    async with running(tmp_path, limits=limits) as edge:
        reader, wire = await edge.connect()
        head = "".join(f"{name}: {value}\r\n" for name, value in signed(BODY).items())
        wire.write(f"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n{head}\r\nx".encode())
        answer = await asyncio.wait_for(reader.read(), 10)
        assert answer.startswith(b"HTTP/1.1 408 ")
        wire.close()


@pytest.mark.acceptance("A08")
async def test_heads_that_do_not_come_are_closed_and_do_not_hinder_others(tmp_path: Path) -> None:
    async with running(tmp_path, head_limits=HeadLimits(seconds=0.5)) as edge:
        idle = [await edge.connect() for _ in range(250)]
        slow = [await edge.connect() for _ in range(50)]
        for _, wire in slow:
            wire.write(b"POST /webhook HTTP/1.1\r\nX-Slow")
        started = time.monotonic()
        assert (await edge.post(BODY, signed(BODY))).status_code == 202
        assert time.monotonic() - started < 1
        async with asyncio.timeout(10):
            for reader, wire in idle + slow:
                await _ended(reader)
                wire.close()
        assert (await edge.post(BODY, signed(BODY))).status_code == 202


@pytest.mark.acceptance("A08")
async def test_too_many_that_wait_make_room(tmp_path: Path) -> None:
    async with running(tmp_path, head_limits=HeadLimits(waiting=3, patience=0)) as edge:
        first, wire = await edge.connect()
        others = [await edge.connect() for _ in range(3)]
        await asyncio.wait_for(_ended(first), 10)
        assert (await edge.post(BODY, signed(BODY))).status_code == 202
        for _, other in [*others, (first, wire)]:
            other.close()


async def test_a_kept_connection_has_the_same_deadline(tmp_path: Path) -> None:
    async with running(tmp_path, head_limits=HeadLimits(seconds=0.3)) as edge:
        reader, wire = await edge.connect()
        wire.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await asyncio.wait_for(reader.readline(), 10)).split()[1] == b"200"
        wire.write(b"GET /healthz HT")
        await asyncio.wait_for(_ended(reader), 10)
        wire.close()


@pytest.mark.acceptance("A09")
@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 10_000 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 1_000_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 1_000_000,
        b"GET /" + b"a" * 65_536 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /" + b"a" * 200_000,
        b"\x16\x03\x01\x02\x00" + b"\x00" * 500,
    ],
)
async def test_oversized_heads_are_refused(edge: Edge, head: bytes) -> None:
    reader, wire = await edge.connect()
    wire.write(head)
    try:
        answer = await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        answer = b""
    assert answer == b"" or answer.split()[1].startswith(b"4")
    wire.close()
    assert (await edge.client.get("/healthz")).status_code == 200


async def _ended(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(1000):
            pass
    except ConnectionError:
        return


# When the store cannot


@pytest.mark.acceptance("A13")
async def test_a_locked_database_is_a_503_and_the_next_try_succeeds(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BUDGET_SECONDS", 0.3)
    other = sqlite3.connect(edge.store.path, isolation_level=None)
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
    async with httpx.AsyncClient(base_url=url) as client:
        headers = [signed(BODY, guid=str(n)) for n in range(20)]
        answers = await asyncio.gather(*(client.post("/webhook", content=BODY, headers=one) for one in headers))
        os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    assert {answer.status_code for answer in answers} == {202}
    store = await Store.open(path)
    assert {row.guid for row in await deliveries.waiting(store)} == {str(n) for n in range(20)}
    await store.close()


# The server itself


async def test_a_unix_socket_is_open_to_whoever_sees_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    app = Starlette(routes=health_routes({}))
    for _ in range(2):  # the second time over what the first one left
        async with Server(app, path, grace_seconds=1):
            assert path.stat().st_mode & 0o777 == 0o666
            transport = httpx.AsyncHTTPTransport(uds=str(path))
            async with httpx.AsyncClient(transport=transport, base_url="http://unix") as client:
                assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_stopping_lets_answers_end_and_cuts_what_does_not(tmp_path: Path) -> None:
    release, entered = asyncio.Event(), asyncio.Queue[str]()

    async def slow(request: Request) -> Response:
        entered.put_nowait("slow")
        await release.wait()
        return Response("done")

    async def endless(request: Request) -> Response:
        entered.put_nowait("endless")
        await asyncio.Event().wait()
        return Response()

    server = Server(
        Starlette(routes=[Route("/slow", slow), Route("/endless", endless)]),
        tcp_socket("127.0.0.1", 0),
        grace_seconds=0.5,
    )
    async with server, httpx.AsyncClient(base_url=server.url, timeout=10) as client:
        ends, cut = asyncio.ensure_future(client.get("/slow")), asyncio.ensure_future(client.get("/endless"))
        assert {await entered.get(), await entered.get()} == {"slow", "endless"}
        stopping = asyncio.ensure_future(server.stop())
        release.set()
        assert (await ends).text == "done"
        with pytest.raises(httpx.RemoteProtocolError):
            await cut
        await asyncio.wait_for(stopping, 5)


async def test_a_port_in_use_is_said(edge: Edge) -> None:
    from bot.errors import SettingsError

    url = httpx.URL(edge.server.url)
    with pytest.raises(SettingsError, match="used by another program"):
        tcp_socket(url.host, url.port or 0)


async def test_readiness_names_what_is_wrong() -> None:
    async def well() -> str | None:
        return None

    async def ill() -> str | None:
        return "GitHub does not answer"

    async def hangs() -> str | None:
        await asyncio.Event().wait()
        return None

    async def breaks() -> str | None:
        raise LookupError("a secret")

    routes = health_routes({"well": well, "ill": ill, "hangs": hangs, "breaks": breaks}, timeout=0.1)
    transport = httpx.ASGITransport(app=Starlette(routes=routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["troubles"] == {
        "ill": "GitHub does not answer",
        "hangs": "no answer in time",
        "breaks": "broken (LookupError)",
    }


def test_limits_can_be_narrowed() -> None:
    assert replace(BodyLimits(), seconds=1).most_bytes == 25 * MEGABYTE
