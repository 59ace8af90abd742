"""The gateway over the wire: what it lets through and what it refuses."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from bot.models import TokenUsage
from bot.settings import Secret
from bot.simulation.anthropic import NO_CREDIT, Fail, Say, Script
from bot.store import gateway as rows
from bot.web.gateway import Credential, Tuning
from tests.world.gateway import (
    MESSAGES,
    MODEL,
    OAUTH,
    REAL_KEY,
    TOOL,
    Rig,
    body,
    headers,
    kind,
    odd_upstream,
    rigged,
)
from tests.world.stored import file_of


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path / "data", tuning=Tuning(check_seconds=0.02)) as found:
        yield found


async def test_the_provider_gets_the_real_credential_and_the_rest_of_the_request(rig: Rig) -> None:
    token, key = await rig.token()
    sent = {
        **headers(token),
        "anthropic-beta": "effort-2025-11-24,cache-keepalive-2026-09-03",
        "x-stainless-lang": "js",
        "connection": "keep-alive, x-hop",
        "x-hop": "1",
    }
    sent |= {"x_api_key": "sk-foreign", "x-goog-api-key": "foreign", "X-Amz-Authorization": "foreign"}
    sent |= {"cookie": "c=1", "x-forwarded-for": "1.2.3.4", "accept-encoding": "gzip", "proxy-authorization": "Basic x"}
    asked = body("Say it [[scenario:x]]", metadata={"user_id": "u"}, thinking={"type": "adaptive"})
    rig.model.script("x", Script([Say("it", usage=TokenUsage(1000, 100, 2000, 300))]))
    answer = await rig.client.post(MESSAGES + "?beta=true", headers=sent, json=asked)
    assert answer.json()["content"] == [{"type": "text", "text": "it"}]
    [got] = rig.model.requests
    assert got.path == "/v1/messages"
    assert got.body == asked
    assert got.headers["x-api-key"] == REAL_KEY
    assert got.headers["accept-encoding"] == "identity"
    assert {got.headers[name] for name in ("anthropic-beta", "x-stainless-lang", "user-agent")} == {
        "effort-2025-11-24",
        "js",
        "claude-cli/2.1.326",
    }
    assert not {"authorization", "cookie", "x-forwarded-for", "x-hop", "proxy-authorization"} & set(got.headers)
    assert token not in json.dumps(dict(got.headers)) and "foreign" not in json.dumps(dict(got.headers))
    cost = await rig.settled(key)
    assert cost.usage == TokenUsage(1000, 100, 2000, 300)
    assert cost.usd == pytest.approx((1000 * 2 + 100 * 10 + 2000 * 0.1 + 300 * 2.5) / 1e6)


async def test_an_oauth_token_goes_as_bearer_with_its_beta(rig: Rig) -> None:
    token, _ = await rig.token()
    rig.credential[:] = [Credential(Secret(OAUTH), is_oauth=True)]
    sent = {**headers(token), "anthropic-beta": "effort-2025-11-24"}
    assert (await rig.client.post(MESSAGES, headers=sent, json=body("hi"))).status_code == 200
    [got] = rig.model.requests
    assert got.headers["authorization"] == f"Bearer {OAUTH}"
    assert got.headers["anthropic-beta"] == "effort-2025-11-24,oauth-2025-04-20"
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
    rig.model.default(Script([Say("héllo " * 50, usage=TokenUsage(10, 20))]))
    async with rig.stream(token) as answer:
        through = await answer.aread()
    async with httpx.AsyncClient(base_url=rig.model.url, verify=False) as direct:
        plain = await direct.post("/v1/messages", headers=headers(REAL_KEY), json=body("hi", stream=True))
    assert through.replace(b"01", b"02") == plain.content.replace(b"01", b"02")
    assert (await rig.settled(key)).usage == TokenUsage(10, 20)


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


@pytest.mark.acceptance("C15")
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


def brought(**definition: Any) -> dict[str, Any]:
    """A tool that a message adds."""
    tool = {"type": "tool_definition", "definition": definition}
    added = {"role": "system", "content": [{"type": "tool_addition", "tool": tool}]}
    return {"messages": [{"role": "user", "content": "hi"}, added]}


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
        ({"tools": [TOOL, {"type": "bash_code_execution_20250825", "name": "c"}]}, (403, "permission_error")),
        ({"tools": [TOOL, {"type": "custom_remote", "name": "c"}]}, (403, "permission_error")),
        ({"tools": [{"type": "web_search_20250305", "name": "s"}]}, (403, "permission_error")),
        ({"tools": [{"type": "web_search_20250305", "name": "s", "max_uses": 100}]}, (403, "permission_error")),
        ({"tools": [{"type": "web_search_20250305", "name": "s", "max_uses": 5}] * 2}, (403, "permission_error")),
        (brought(type="web_fetch_20250910", name="web_fetch"), (403, "permission_error")),
        (brought(type="web_search_20250305", name="s"), (403, "permission_error")),
        ({"inference_geo": "mars"}, (403, "permission_error")),
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


async def test_tools_of_the_clients_own_may_come_in_a_message_and_other_models_stay_behind(rig: Rig) -> None:
    token, _ = await rig.token()
    added = brought(**TOOL)
    added["tools"] = [{**TOOL, "input_schema": {"type": "object", "properties": {"tool": {"type": "string"}}}}]
    added["messages"][1]["content"].append({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "x"}})
    assert (await rig.ask(token, **added, fallbacks=[{"model": "claude-opus-4-1"}])).status_code == 200
    [got] = rig.model.requests
    assert got.body == body("hi", **added)


@pytest.mark.acceptance("C15")
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
    [got] = rig.model.requests
    assert (got.model, got.body["speed"]) == (MODEL, None)
    assert int(got.headers["content-length"]) == len(msgspec.json.encode(got.body)), "nothing stands in it twice"


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
@pytest.mark.parametrize("where", ["nobody", "redirect", "html", "html_error", "flood", "encoded"])
async def test_what_is_not_the_provider_is_told_in_the_apis_form(tmp_path: Path, where: str) -> None:
    hits = []

    async def odd(request: Any) -> Response:
        hits.append(request.url.path)
        if where == "redirect":
            return RedirectResponse("/elsewhere", 307)
        if where == "flood":
            return Response(b"{" + b" " * (33 << 20), 200, media_type="application/json")
        if where == "encoded":
            return Response(b"{}", 200, {"content-encoding": "gzip"}, "application/json")
        return PlainTextResponse("<html>", 200 if where == "html" else 503, media_type="text/html")

    async with odd_upstream(odd) as url:
        address = "http://127.0.0.1:9" if where == "nobody" else url
        async with rigged(tmp_path / "data", upstream=address) as rig:
            token, key = await rig.token()
            answer = await rig.ask(token)
            assert kind(answer) == (503 if where == "html_error" else 502, "api_error")
            cost = await rig.settled(key)
    assert len(hits) == (0 if where == "nobody" else 1), "no redirect is followed and nothing is sent twice"
    assert (cost.counted_usd == 0) == (where in ("nobody", "redirect", "html_error"))


@pytest.mark.acceptance("F15")
async def test_no_secret_in_store_or_log(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token, _ = await rig.token()
    await rig.ask(token)
    await rig.ask(REAL_KEY)
    await rig.store.close()
    stored = b"".join(path.read_bytes() for path in file_of(rig.store).parent.iterdir() if path.is_file())
    for secret in (token, REAL_KEY):
        assert secret.encode() not in stored
        assert secret not in caplog.text
