"""The gateway over the wire: what it lets through, what it refuses, and what it counts."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from bot.errors import BotError
from bot.models import InstallationId, SessionId, TurnKey, Usage
from bot.settings import Secret
from bot.simulation.anthropic import NO_CREDIT, Cut, Fail, Say, Script, SimulatedAnthropic, Wait
from bot.simulation.anthropic.loopback import serving
from bot.store import gateway as rows
from bot.store.base import Store
from bot.web.gateway import Ceilings, Credential, Tuning, gateway_app

REAL_KEY = "sk-ant-api03-canary-of-the-installation"
OAUTH = "sk-ant-oat01-canary-of-the-subscription"
MODEL = "claude-sonnet-5-5"
MESSAGES = "/gateway/anthropic/v1/messages"
COUNT = "/gateway/anthropic/v1/messages/count_tokens"
INSTALLATION = InstallationId(7)
TOOL = {"name": "Bash", "input_schema": {"type": "object"}}


class Time:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Rig:
    """Gateway, upstream, store and a client, as an environment sees them."""

    model: SimulatedAnthropic
    store: Store
    client: httpx.AsyncClient
    app: Starlette
    port: int
    time: Time
    credential: list[Credential] = field(default_factory=lambda: [Credential(Secret(REAL_KEY))])
    turns: int = 0

    async def token(self, **terms: Any) -> tuple[str, TurnKey]:
        self.turns += 1
        key = TurnKey(SessionId("s0000001"), self.turns)
        given = {"model": MODEL, "budget_usd": 5.0, "expires_at": self.time.now + 600, **terms}
        return (await rows.mint(self.store, key, INSTALLATION, **given)).reveal(), key

    async def ask(self, token: str, words: str = "hi", path: str = MESSAGES, **more: Any) -> httpx.Response:
        return await self.client.post(path, headers=headers(token), json=body(words, **more))

    def stream(self, token: str, words: str = "hi", **more: Any) -> Any:
        return self.client.stream("POST", MESSAGES, headers=headers(token), json=body(words, stream=True, **more))

    async def settled(self, key: TurnKey) -> rows.Cost:
        """Once nothing is under way any more."""
        async with asyncio.timeout(10):
            while (cost := await rows.turn_cost(self.store, key)).open:
                await self.store.write(lambda db: None)
        return cost

    @property
    def refusals(self) -> dict[str, int]:
        return dict(self.app.state.gateway.refusals)


def headers(token: str) -> dict[str, str]:
    return {"x-api-key": token, "anthropic-version": "2023-06-01", "user-agent": "claude-cli/2.1.326"}


def body(words: str, **more: Any) -> dict[str, Any]:
    base = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": words}], "tools": [TOOL]}
    return {**base, **more}


@asynccontextmanager
async def rigged(folder: Path, *, upstream: str | None = None, **settings: Any) -> AsyncIterator[Rig]:
    clock = Time()
    store = await Store.open(folder / "state.db", clock=clock)
    credentials: list[Credential] = [Credential(Secret(REAL_KEY))]

    async def credential(installation: InstallationId) -> Credential:
        if not credentials:
            raise BotError("no credential is stored")
        return credentials[0]

    async with SimulatedAnthropic.running(REAL_KEY, oauth_token=OAUTH) as model:
        app = gateway_app(store, credential, upstream or model.url, clock, **settings)
        async with (
            serving(Starlette(routes=[Mount("/gateway", app=app)])) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, verify=False) as client,
        ):
            try:
                yield Rig(model, store, client, app, port, clock, credentials)
            finally:
                await app.state.gateway.close()
                await store.close()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path / "data", tuning=Tuning(check_seconds=0.02)) as found:
        yield found


@asynccontextmanager
async def odd_upstream(endpoint: Callable[..., Any]) -> AsyncIterator[str]:
    app = Starlette(routes=[Route("/{path:path}", endpoint, methods=["POST", "GET"])])
    async with serving(app) as port:
        yield f"http://127.0.0.1:{port}"


def kind(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["type"]


async def test_the_provider_gets_the_real_credential_and_the_rest_of_the_request(rig: Rig) -> None:
    token, key = await rig.token()
    sent = {
        **headers(token),
        "anthropic-beta": "a,b",
        "x-stainless-lang": "js",
        "connection": "keep-alive, x-hop",
        "x-hop": "1",
    }
    sent |= {"cookie": "c=1", "x-forwarded-for": "1.2.3.4", "accept-encoding": "gzip", "proxy-authorization": "Basic x"}
    asked = body("Say it [[scenario:x]]", metadata={"user_id": "u"}, thinking={"type": "adaptive"})
    rig.model.script("x", Script([Say("it", usage=Usage(1000, 100, 2000, 300))]))
    answer = await rig.client.post(MESSAGES + "?beta=true", headers=sent, json=asked)
    assert answer.json()["content"] == [{"type": "text", "text": "it"}]
    [got] = rig.model.requests
    assert got.path == "/v1/messages"
    assert got.body == asked
    assert got.headers["x-api-key"] == REAL_KEY
    assert got.headers["accept-encoding"] == "identity"
    assert {got.headers[name] for name in ("anthropic-beta", "x-stainless-lang", "user-agent")} == {
        "a,b",
        "js",
        "claude-cli/2.1.326",
    }
    assert not {"authorization", "cookie", "x-forwarded-for", "x-hop", "proxy-authorization"} & set(got.headers)
    assert token not in json.dumps(dict(got.headers))
    cost = await rig.settled(key)
    assert cost.usage == Usage(1000, 100, 2000, 300)
    assert cost.usd == pytest.approx((1000 * 2 + 100 * 10 + 2000 * 0.1 + 300 * 2.5) / 1e6)


async def test_an_oauth_token_goes_as_bearer_with_its_beta(rig: Rig) -> None:
    token, _ = await rig.token()
    rig.credential[:] = [Credential(Secret(OAUTH), is_oauth=True)]
    sent = {**headers(token), "anthropic-beta": "a"}
    assert (await rig.client.post(MESSAGES, headers=sent, json=body("hi"))).status_code == 200
    [got] = rig.model.requests
    assert got.headers["authorization"] == f"Bearer {OAUTH}"
    assert got.headers["anthropic-beta"] == "a,oauth-2025-04-20"
    assert "x-api-key" not in got.headers


async def test_a_token_may_come_as_bearer_or_in_both_headers_alike(rig: Rig) -> None:
    token, _ = await rig.token()
    bearer = {"authorization": f"Bearer {token}", "anthropic-version": "2023-06-01"}
    assert (await rig.client.post(MESSAGES, headers=bearer, json=body("hi"))).status_code == 200
    both = {**bearer, "x-api-key": token}
    assert (await rig.client.post(MESSAGES, headers=both, json=body("hi"))).status_code == 200


async def test_every_piece_arrives_before_the_next_is_made(rig: Rig) -> None:
    token, _ = await rig.token()
    rig.model.script("held", Script([Say("a" * 200, hold="middle")]))
    async with rig.stream(token, "[[scenario:held]]") as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        pieces = answer.aiter_text()
        seen = ""
        while "text_delta" not in seen:
            seen += await anext(pieces)
        assert "message_stop" not in seen
        await rig.model.reached("middle")
        rig.model.release("middle")
        async for piece in pieces:
            seen += piece
    assert seen.endswith('data: {"type":"message_stop"}\n\n')


async def test_the_stream_is_the_providers_byte_for_byte(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.default(Script([Say("héllo " * 50, usage=Usage(10, 20))]))
    async with rig.stream(token) as answer:
        through = await answer.aread()
    async with httpx.AsyncClient(base_url=rig.model.url, verify=False) as direct:
        plain = await direct.post("/v1/messages", headers=headers(REAL_KEY), json=body("hi", stream=True))
    assert through.replace(b"01", b"02") == plain.content.replace(b"01", b"02")
    assert (await rig.settled(key)).usage == Usage(10, 20)


async def test_counting_tokens_costs_nothing(rig: Rig) -> None:
    token, key = await rig.token(max_requests=1)
    assert (await rig.ask(token, path=COUNT)).json()["input_tokens"] > 0
    assert (await rig.settled(key)).usd == 0
    assert kind(await rig.ask(token, path=COUNT)) == (403, "permission_error")


async def test_the_socket_of_local_boxes_serves_it_without_the_mount(rig: Rig) -> None:
    token, _ = await rig.token()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(rig.app), base_url="http://gateway") as local:
        for path in (MESSAGES, MESSAGES.removeprefix("/gateway")):
            assert (await local.post(path, headers=headers(token), json=body("hi"))).status_code == 200


@pytest.mark.acceptance("D14")
@pytest.mark.parametrize("case", ["missing", "unknown", "expired", "revoked", "provider_key", "not_bearer"])
async def test_who_shows_no_living_token_is_not_let_in(rig: Rig, case: str) -> None:
    token, key = await rig.token()
    if case == "revoked":
        await rows.revoke(rig.store, key)
    if case == "expired":
        rig.time.now += 601
    shown = {
        "missing": {},
        "not_bearer": {"authorization": f"Basic {token}"},
        "unknown": {"x-api-key": "fht_" + "x" * 43},
    }
    shown |= {"provider_key": {"x-api-key": REAL_KEY}}
    answer = await rig.client.post(MESSAGES, headers=shown.get(case, headers(token)), json=body("hi"))
    assert kind(answer) == (401, "authentication_error")
    assert answer.headers["x-should-retry"] == "false"
    assert REAL_KEY not in answer.text
    assert rig.model.requests == []
    assert sum(rig.refusals.values()) == 1


@pytest.mark.acceptance("D14")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/gateway/anthropic/v1/files", 404),
        ("POST", "/gateway/anthropic/v1/messages/batches", 404),
        ("POST", "/gateway/anthropic/v1/messages/", 404),
        ("GET", MESSAGES, 404),
        ("GET", "/gateway/anthropic/v1/models", 404),
        ("POST", "/gateway/anthropic/v1/..%2fv1%2ffiles", 400),
        ("POST", "/gateway/anthropic/v1%2Fmessages", 400),
        ("POST", MESSAGES + "?x=%0d%0aX-Api-Key:1", 400),
    ],
)
async def test_only_two_paths_exist(rig: Rig, method: str, path: str, status: int) -> None:
    token, _ = await rig.token()
    answer = await rig.client.request(method, path, headers=headers(token))
    assert answer.status_code == status
    assert answer.json()["type"] == "error"
    assert rig.model.requests == []


async def raw(rig: Rig, lines: list[str], payload: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
    head = "\r\n".join([*lines, "Host: x", f"Content-Length: {len(payload)}", "Connection: close", "", ""])
    writer.write(head.encode("latin-1") + payload)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.acceptance("D14")
@pytest.mark.parametrize(
    ("lines", "statuses"),
    [
        ([f"POST {MESSAGES} HTTP/1.1", "X-Api-Key: TOKEN", "x-api-key: TOKEN"], (400,)),
        ([f"POST {MESSAGES} HTTP/1.1", "X-Api-Key: TOKEN", "x-api-key: sk-ant-x"], (400,)),
        ([f"POST {MESSAGES} HTTP/1.1", "Authorization: Bearer TOKEN", "Authorization: Bearer TOKEN"], (400,)),
        ([f"POST {MESSAGES} HTTP/1.1", "X-Api-Key: TOKEN", "Authorization: Bearer sk-ant-api03-x"], (401,)),
        ([f"POST {MESSAGES} HTTP/1.1", "X-Api-Key: TOKEN\rX-Api-Key: b"], (400,)),
        ([f"POST {MESSAGES} HTTP/1.1", "X-Api-Key: TOKEN\x00"], (400,)),
        ([f"POST {MESSAGES} HTTP/1.1", "X-Api-Key: TOKEN", "X-Folded: a", " X-Api-Key: b", "X-Api-Key: b"], (400,)),
        (["POST http://api.anthropic.com/v1/messages HTTP/1.1", "X-Api-Key: TOKEN"], (404,)),
        ([f"POST /gateway/anthropic/../anthropic{MESSAGES} HTTP/1.1", "X-Api-Key: TOKEN"], (400, 404)),
        ([f"POST {MESSAGES}\\..\\files HTTP/1.1", "X-Api-Key: TOKEN"], (400, 404)),
        ([f"POST {MESSAGES} HTTP/1.1", "X-Api-Key: TOKEN", "Transfer-Encoding: chunked"], (400,)),
    ],
)
async def test_smuggling_reaches_nobody(rig: Rig, lines: list[str], statuses: tuple[int, ...]) -> None:
    token, _ = await rig.token()
    payload = json.dumps(body("hi")).encode()
    answer = await raw(rig, [line.replace("TOKEN", token) for line in lines], payload)
    assert int(answer.split()[1]) in statuses
    assert token.encode() not in answer
    assert rig.model.requests == []


@pytest.mark.acceptance("D14")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"model": "claude-opus-5-5"}, (403, "permission_error")),
        ({"model": ["claude-sonnet-5-5"]}, (403, "permission_error")),
        ({"mcp_servers": [{"type": "url", "url": "https://evil.example"}]}, (403, "permission_error")),
        ({"container": "c1"}, (403, "permission_error")),
        ({"speed": "fast"}, (403, "permission_error")),
        ({"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}, (403, "permission_error")),
        ({"tools": [TOOL, {"type": "code_execution_20250825", "name": "c"}]}, (403, "permission_error")),
        ({"max_tokens": "many"}, (400, "invalid_request_error")),
    ],
)
async def test_a_request_that_goes_around_the_limits_is_not_made(
    rig: Rig, change: dict[str, Any], expected: tuple[int, str]
) -> None:
    token, key = await rig.token()
    assert kind(await rig.ask(token, **change)) == expected
    assert rig.model.requests == []
    assert (await rig.settled(key)).usd == 0


@pytest.mark.parametrize(
    "source", [{"type": "url", "url": "https://evil.example/?d=1"}, {"type": "file", "file_id": "f"}]
)
async def test_the_provider_fetches_nothing_for_the_agent(rig: Rig, source: dict[str, Any]) -> None:
    token, _ = await rig.token()
    image = {"type": "image", "source": source}
    for content in ([image], [{"type": "tool_result", "tool_use_id": "t", "content": [image]}]):
        answer = await rig.ask(token, messages=[{"role": "user", "content": content}])
        assert kind(answer) == (403, "permission_error")
    assert rig.model.requests == []


async def test_two_parsers_cannot_read_two_requests(rig: Rig) -> None:
    token, _ = await rig.token()
    text = json.dumps(body("hi")).replace("{", '{"model":"claude-opus-5-5","speed":"fast",', 1)
    twice = text[:-1] + ',"speed":null}'
    assert (await rig.client.post(MESSAGES, headers=headers(token), content=twice)).status_code == 200
    assert rig.model.requests[0].model == MODEL
    assert rig.model.requests[0].body["speed"] is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"a":' * 100_000, b'{"model":"\\ud800"}', b"NaN"])
async def test_what_is_not_a_request_is_refused(rig: Rig, content: bytes) -> None:
    token, _ = await rig.token()
    answer = await rig.client.post(MESSAGES, headers=headers(token), content=content)
    assert answer.status_code in (400, 403)
    assert rig.model.requests == []


async def test_a_body_that_is_too_large_or_encoded_is_refused(rig: Rig) -> None:
    token, _ = await rig.token()
    lying = await raw(rig, [f"POST {MESSAGES} HTTP/1.1", f"X-Api-Key: {token}", "Content-Encoding: gzip"], b"x")
    assert lying.split()[1] == b"415"

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(33):
            yield b" " * (1 << 20)

    answer = await rig.client.post(MESSAGES, headers=headers(token), content=endless())
    assert kind(answer) == (413, "request_too_large")
    assert rig.model.requests == []


async def test_a_model_without_a_price_is_refused(rig: Rig) -> None:
    token, _ = await rig.token(model="claude-sonnet-99")
    assert kind(await rig.ask(token, model="claude-sonnet-99")) == (403, "permission_error")
    assert rig.model.requests == []


async def test_without_a_credential_the_operator_is_told_once(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    token, _ = await rig.token()
    rig.credential.clear()
    for _ in range(3):
        assert kind(await rig.ask(token)) == (403, "permission_error")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        "no credential for the model (installation 7): no credential is stored"
    ]


@pytest.mark.acceptance("D14")
async def test_at_the_budget_the_answer_is_the_providers_credit_error(rig: Rig) -> None:
    token, key = await rig.token(budget_usd=0.001)
    rig.model.default(Script([], after=Say("x", usage=Usage(100, 100))))
    assert (await rig.ask(token)).status_code == 200
    refused = await rig.ask(token)
    assert kind(refused) == (400, "invalid_request_error")
    assert refused.json()["error"]["message"].startswith("Your credit balance is too low to access the Anthropic API")
    assert len(rig.model.requests) == 1
    await rows.raise_budget(rig.store, key, 1.0)
    assert (await rig.ask(token)).status_code == 200


@pytest.mark.acceptance("D14")
@pytest.mark.parametrize("patience", [0.0, 20.0])
async def test_requests_in_parallel_pass_the_budget_by_one_reserve_at_most(tmp_path: Path, patience: float) -> None:
    """I6: each costs all that it had reserved; those that come too late hear of the credit, or are asked to wait."""
    limit, reserve = 0.01, (100 * 10 + 400 * 2) / 1e6
    async with rigged(tmp_path / "data", tuning=Tuning(patience_seconds=patience)) as rig:
        token, key = await rig.token(budget_usd=limit, concurrency=50)
        rig.model.default(Script([], after=Say("x", usage=Usage(400, 100))))
        answers = await asyncio.gather(*(rig.ask(token, "y" * 1000) for _ in range(20)))
        cost = await rig.settled(key)
        statuses = {answer.status_code for answer in answers}
        assert 200 in statuses
        assert statuses <= ({200, 400} if patience else {200, 400, 429})
        assert len(rig.model.requests) == sum(answer.status_code == 200 for answer in answers)
        assert cost.usd <= limit + reserve
        if patience:
            assert cost.usd >= limit, "nothing of the budget is left over because of reserves"


@pytest.mark.acceptance("B14")
async def test_the_installations_day_ends_a_turn_that_has_budget_left(tmp_path: Path) -> None:
    async with rigged(tmp_path / "data", ceilings=Ceilings(day_usd=0.0015, month_usd=10)) as rig:
        rig.model.default(Script([], after=Say("x", usage=Usage(100, 100))))
        first, _ = await rig.token()
        second, _ = await rig.token()
        assert (await rig.ask(first)).status_code == 200
        assert (await rig.ask(second)).status_code == 200
        assert kind(await rig.ask(second)) == (400, "invalid_request_error")
        rig.time.now += 86_400
        fresh, _ = await rig.token()
        assert (await rig.ask(fresh)).status_code == 200


async def test_too_many_at_once_are_asked_to_come_back(rig: Rig) -> None:
    token, key = await rig.token(concurrency=1)
    rig.model.script("slow", Script([Wait("go"), Say("x")]))
    first = asyncio.create_task(rig.ask(token, "[[scenario:slow]]"))
    await rig.model.reached("go")
    answer = await rig.ask(token)
    assert kind(answer) == (429, "rate_limit_error")
    assert answer.headers["retry-after"] == "1"
    rig.model.release("go")
    assert (await first).status_code == 200
    assert (await rig.settled(key)).open == 0


async def test_a_long_answer_reserves_again_and_goes_on(rig: Rig) -> None:
    token, key = await rig.token(budget_usd=5)
    rig.model.default(Script([Say("z" * 90_000, usage=Usage(10, 30_000))]))
    async with rig.stream(token, max_tokens=32_000) as answer:
        text = (await answer.aread()).decode()
    assert "message_stop" in text
    assert (await rig.settled(key)).usd == pytest.approx((10 * 2 + 30_000 * 10) / 1e6)


async def test_a_stream_is_cut_when_its_bytes_pass_the_budget(rig: Rig) -> None:
    token, key = await rig.token(budget_usd=0.02)
    rig.model.default(Script([], after=Say("z" * 200_000, usage=Usage(10, 60_000))))
    async with rig.stream(token, max_tokens=64_000) as answer:
        text = (await answer.aread()).decode()
    assert "message_stop" not in text
    assert "credit balance is too low" in text.splitlines()[-2]
    cost = await rig.settled(key)
    assert 0.02 <= cost.usd < 0.03
    assert kind(await rig.ask(token)) == (400, "invalid_request_error")
    await rig.model.until(lambda model: model.gone == 1)


async def test_when_the_client_leaves_the_provider_is_let_go_and_what_was_seen_is_paid(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("held", Script([Say("a" * 300, hold="middle", usage=Usage(1000, 900))]))
    async with rig.stream(token, "[[scenario:held]]") as answer:
        await anext(answer.aiter_bytes())
        await rig.model.reached("middle")
    await rig.model.until(lambda model: model.gone == 1)
    cost = await rig.settled(key)
    assert cost.usage.input_tokens == 1000
    assert 1 <= cost.usage.output_tokens < 100


async def test_a_client_that_leaves_before_the_first_byte_pays_for_the_input(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    asking = asyncio.create_task(rig.ask(token, "[[scenario:slow]]"))
    await rig.model.reached("never")
    asking.cancel()
    await rig.model.until(lambda model: model.gone == 1)
    assert (await rig.settled(key)).usd > 0


async def test_revoking_cuts_a_stream_under_way(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("held", Script([Say("a" * 300, hold="middle")]))
    async with rig.stream(token, "[[scenario:held]]") as answer:
        await rig.model.reached("middle")
        await rows.revoke(rig.store, key)
        text = (await answer.aread()).decode()
    assert "authentication_error" in text
    assert "message_stop" not in text
    await rig.model.until(lambda model: model.gone == 1)


async def test_revoking_ends_a_request_that_has_no_answer_yet(rig: Rig) -> None:
    token, key = await rig.token()
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    asking = asyncio.create_task(rig.ask(token, "[[scenario:slow]]"))
    await rig.model.reached("never")
    await rows.revoke(rig.store, key)
    assert kind(await asking) == (401, "authentication_error")


@pytest.mark.acceptance("D13")
@pytest.mark.parametrize(
    ("fail", "expected"),
    [
        (Fail(429, {"retry-after": "7", "anthropic-organization-id": "o"}), (429, "rate_limit_error")),
        (Fail(529), (529, "overloaded_error")),
        (Fail(500), (500, "api_error")),
        (Fail(403), (403, "permission_error")),
        (Fail(401), (401, "authentication_error")),
        (Fail(400, message=NO_CREDIT), (400, "invalid_request_error")),
        (Fail(400, message=f"what is {REAL_KEY}?"), (400, "invalid_request_error")),
    ],
)
async def test_the_providers_errors_pass_and_cost_nothing(
    rig: Rig, fail: Fail, expected: tuple[int, str], caplog: pytest.LogCaptureFixture
) -> None:
    token, key = await rig.token()
    rig.model.default(Script([fail]))
    answer = await rig.ask(token, stream=True)
    assert kind(answer) == expected
    assert answer.headers.get("retry-after") == fail.headers.get("retry-after")
    assert "anthropic-organization-id" not in answer.headers
    assert REAL_KEY not in answer.text + str(answer.headers) + caplog.text
    assert (await rig.settled(key)).usd == 0


@pytest.mark.acceptance("F14")
@pytest.mark.parametrize("fail", [Fail(401), Fail(400, message=NO_CREDIT)])
async def test_a_dead_credential_is_one_message_to_the_operator(
    rig: Rig, fail: Fail, caplog: pytest.LogCaptureFixture
) -> None:
    token, _ = await rig.token()
    rig.model.default(Script([fail]))
    for _ in range(3):
        await rig.ask(token)
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "installation 7" in errors[0]


@pytest.mark.acceptance("D13")
@pytest.mark.parametrize("cut", [Cut(), Cut(error="overloaded_error")])
async def test_a_torn_stream_ends_with_an_error_and_is_paid_as_seen(rig: Rig, cut: Cut) -> None:
    token, key = await rig.token()
    rig.model.default(Script([cut, Say("b" * 400, usage=Usage(50, 500))]))
    async with rig.stream(token) as answer:
        text = (await answer.aread()).decode()
    assert text.rstrip().splitlines()[-2] == "event: error"
    assert (cut.error or "api_error") in text
    cost = await rig.settled(key)
    assert cost.usage.input_tokens == 50
    assert 0 < cost.usage.output_tokens < 500


@pytest.mark.acceptance("D13")
@pytest.mark.parametrize("where", ["nobody", "redirect", "html", "html_error", "flood"])
async def test_what_is_not_the_provider_is_told_in_the_apis_form(tmp_path: Path, where: str) -> None:
    hits = []

    async def odd(request: Any) -> Response:
        hits.append(request.url.path)
        if where == "redirect":
            return RedirectResponse("/elsewhere", 307)
        if where == "flood":
            return Response(b"{" + b" " * (33 << 20), 200, media_type="application/json")
        return PlainTextResponse("<html>", 200 if where == "html" else 503, media_type="text/html")

    async with odd_upstream(odd) as url:
        address = "http://127.0.0.1:9" if where == "nobody" else url
        async with rigged(tmp_path / "data", upstream=address) as rig:
            token, key = await rig.token()
            answer = await rig.ask(token)
            assert kind(answer) == (503 if where == "html_error" else 502, "api_error")
            cost = await rig.settled(key)
    assert len(hits) == (0 if where == "nobody" else 1), "no redirect is followed and nothing is sent twice"
    assert (cost.usd == 0) == (where in ("nobody", "redirect", "html_error"))


async def test_what_was_under_way_when_the_service_died_is_counted_in_full(rig: Rig) -> None:
    token, key = await rig.token()
    claim = rows.Claim("c1", rows.digest(token), 0.5)
    await rows.reserve(rig.store, claim, lambda standing: None)
    assert (await rows.turn_cost(rig.store, key)).reserved_usd == 0.5
    assert await rows.abandon_open(rig.store) == 1
    cost = await rows.turn_cost(rig.store, key)
    assert (cost.usd, cost.reserved_usd) == (0.5, 0)
    await rows.settle(rig.store, "c1", rows.Settlement(0.1, Usage(), 200))
    assert (await rows.session_cost(rig.store, key.session)).usd == 0.5


async def test_deadlines_move_and_dead_tokens_are_swept(rig: Rig) -> None:
    token, key = await rig.token()
    await rows.extend(rig.store, key, rig.time.now + 5_000)
    rig.time.now += 700
    assert (await rig.ask(token)).status_code == 200
    rig.time.now += 5_000
    assert await rows.revoke_all_dead(rig.store) == 1
    await rows.extend(rig.store, key, rig.time.now + 5_000)
    assert (await rig.ask(token)).status_code == 401
    assert await rows.sweep(rig.store, rig.time.now + 1) == 1
    assert await rows.grant(rig.store, rows.digest(token)) is None


async def test_no_secret_in_store_or_log(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token, _ = await rig.token()
    await rig.ask(token)
    await rig.ask(REAL_KEY)
    await rig.store.close()
    stored = b"".join(path.read_bytes() for path in rig.store.path.parent.iterdir() if path.is_file())
    for secret in (token, REAL_KEY):
        assert secret.encode() not in stored
        assert secret not in caplog.text
