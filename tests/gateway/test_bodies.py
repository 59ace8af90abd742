"""What agents send, at its worst: one of them neither stalls the others nor fills the memory, and is cut off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.simulation.anthropic import Say, Script, Wait
from bot.web.gateway import Tuning
from bot.web.gateway import clients as bodies
from bot.web.gateway.clients import MOST_MISUSES
from tests.world.gateway import COUNT, MESSAGES, Rig, body, headers, kind, rigged

LISTS = b'{"messages":[' + b'{"a":1},' * (11 << 17) + b"1]}"
"""11 MB of tiny dicts."""
URL = {"type": "url", "url": "https://evil.example/?d=1"}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path / "data", tuning=Tuning(check_seconds=0.02)) as found:
        yield found


async def lag(seconds: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        before = loop.time()
        await asyncio.sleep(0.005)
        seconds.append(loop.time() - before - 0.005)


@pytest.mark.review("security-5")
async def test_eight_that_post_nothing_but_tiny_dicts_stall_nobody(tmp_path: Path) -> None:
    """Client and gateway share this loop, so what is measured is more than what others wait for."""
    async with rigged(tmp_path / "data") as rig:
        token, _ = await rig.token()
        waits: list[float] = []
        watching = asyncio.create_task(lag(waits))
        answers = [
            await asyncio.gather(*(rig.client.post(MESSAGES, headers=headers(token), content=LISTS) for _ in range(2)))
            for _ in range(4)
        ]
        watching.cancel()
        assert {answer.status_code for both in answers for answer in both} <= {413, 429}
        assert max(waits) < 0.5
        assert rig.refusals["too_large"] >= 4


@pytest.mark.review("security-5")
async def test_no_body_is_read_of_a_request_that_is_one_too_many(rig: Rig) -> None:
    token, _ = await rig.token(concurrency=2)
    other, _ = await rig.token(concurrency=2)
    held = [await opened(rig, token) for _ in range(2)]
    try:
        assert kind(await rig.ask(token, path=COUNT)) == (429, "rate_limit_error")
        assert (await rig.ask(other)).status_code == 200, "whoever is beside it goes on"
        assert rig.refusals == {"concurrency": 1}
    finally:
        for line in held:
            line.close()
    async with asyncio.timeout(10):
        while (await rig.ask(token)).status_code != 200:
            pass


@pytest.mark.review("security-5")
async def test_one_installation_leaves_room_to_others(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_OF_INSTALLATION", 2)
    tokens = [(await rig.token())[0] for _ in range(3)]
    held = [await opened(rig, token) for token in tokens[:2]]
    answer = await rig.ask(tokens[2])
    assert kind(answer) == (429, "rate_limit_error")
    assert "installation" in answer.json()["error"]["message"]
    for line in held:
        line.close()
    async with asyncio.timeout(10):
        while (await rig.ask(tokens[2])).status_code != 200:
            pass


async def opened(rig: Rig, token: str) -> asyncio.StreamWriter:
    """A request of which the body does not come; once the gateway has let it in."""
    _, line = await asyncio.open_connection("127.0.0.1", rig.port)
    head = f"POST {MESSAGES} HTTP/1.1\r\nHost: x\r\nX-Api-Key: {token}\r\nContent-Length: 100\r\n\r\n{{"
    room = rig.app.state.gateway._room
    before = sum(share.requests for share in room._shares.values())
    line.write(head.encode())
    async with asyncio.timeout(10):
        while sum(share.requests for share in room._shares.values()) == before:
            await rig.store.write(lambda db: None)
    return line


@pytest.mark.review("security-5")
async def test_a_body_takes_no_memory_while_its_answer_comes(rig: Rig) -> None:
    token, _ = await rig.token()
    rig.model.script("held", Script([Say("a" * 300, hold="middle")]))
    room = rig.app.state.gateway._room
    async with rig.stream(token, "[[scenario:held]]", system="x" * 1_000_000) as answer:
        await rig.model.reached("middle")
        assert room.held == 0
        rig.model.release("middle")
        await answer.aread()


@pytest.mark.review("security-5")
async def test_what_all_send_at_once_is_bounded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_OF_ALL", 150_000)
    monkeypatch.setattr(bodies, "ALWAYS_OF_ONE", 50_000)
    token, _ = await rig.token()
    other, _ = await rig.token()
    rig.model.script("slow", Script([Wait("go"), Say("x")]))
    first = asyncio.create_task(rig.ask(token, "[[scenario:slow]]", system="x" * 130_000))
    await rig.model.reached("go")
    assert (await rig.ask(other, system="x" * 30_000)).status_code == 200, "a little always passes"
    answer = await rig.ask(other, system="x" * 100_000)
    assert kind(answer) == (429, "rate_limit_error")
    assert answer.headers["retry-after"] == "1"
    rig.model.release("go")
    assert (await first).status_code == 200
    assert (await rig.ask(other, system="x" * 100_000)).status_code == 200


@pytest.mark.review("security-5")
async def test_a_token_with_dozens_of_bad_requests_is_cut_off(tmp_path: Path) -> None:
    async with rigged(tmp_path / "data") as rig:
        token, _ = await rig.token()
        other, _ = await rig.token()
        for n in range(MOST_MISUSES):
            answer = await rig.client.post(MESSAGES, headers=headers(token), content=b"{")
            assert kind(answer) == (400, "invalid_request_error"), n
        for sent in (b"{", json.dumps(body("hi")).encode()):
            answer = await rig.client.post(MESSAGES, headers=headers(token), content=sent)
            assert kind(answer) == (403, "permission_error")
            assert "cut off" in answer.json()["error"]["message"]
            assert answer.headers["x-should-retry"] == "false"
        assert rig.refusals == {"malformed": MOST_MISUSES, "storm": 2}
        assert (await rig.ask(other)).status_code == 200


@pytest.mark.review("security-5")
async def test_one_bad_request_less_and_it_goes_on(rig: Rig) -> None:
    token, _ = await rig.token()
    for _ in range(MOST_MISUSES - 1):
        await rig.client.post(MESSAGES, headers=headers(token), content=b"{")
    assert (await rig.ask(token)).status_code == 200


def wrapped(source: dict[str, Any]) -> list[dict[str, Any]]:
    """Blocks that hold it, where the provider has a place for one and where it may get one."""
    document = {"type": "document", "source": source}
    return [
        document,
        {"type": "tool_result", "tool_use_id": "t", "content": [document]},
        {
            "type": "web_fetch_tool_result",
            "tool_use_id": "t",
            "content": {"type": "web_fetch_result", "content": document},
        },
        {"type": "tool_result", "tool_use_id": "t", "content": {"a": [[{"b": document}]]}},
        {"type": "document", "source": {"type": "content", "content": [[document]]}},
        {"type": "anything", "some": {"other": {"key": [source]}}},
    ]


@pytest.mark.review("security-8")
@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("source", [URL, {"type": "file", "file_id": "f"}], ids=["url", "file"])
async def test_an_address_is_found_wherever_it_stands(rig: Rig, source: dict[str, Any], place: int) -> None:
    token, _ = await rig.token()
    block = wrapped(source)[place]
    for asked in ({"messages": [{"role": "user", "content": [block]}]}, {"system": [block]}):
        assert kind(await rig.ask(token, **asked)) == (403, "permission_error")
    upload = {"type": "container_upload", "file_id": "f"}
    assert kind(await rig.ask(token, messages=[{"role": "user", "content": {"a": upload}}])) == (
        403,
        "permission_error",
    )
    assert rig.model.requests == []


@pytest.mark.review("security-8")
@pytest.mark.parametrize("place", range(6))
async def test_a_file_is_reserved_for_wherever_it_stands(rig: Rig, place: int) -> None:
    token, key = await rig.token()
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    said = {"role": "user", "content": [wrapped(PDF)[place], {"type": "text", "text": "[[scenario:slow]]"}]}
    if wrapped(PDF)[place]["type"] == "tool_result":
        used = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
        before = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [used]}]
    else:
        before = []
    asking = asyncio.create_task(rig.ask(token, messages=[*before, said]))
    await rig.model.reached("never")
    asking.cancel()
    cost = await rig.settled(key)
    assert cost.unconfirmed_usd > 1_000_000 * 2 / 1e6


@pytest.mark.review("security-8")
@pytest.mark.parametrize(
    "hidden",
    [
        {"role": "user", "content": {"tool": {"type": "web_fetch_20250910", "name": "f"}}},
        {"role": "user", "content": [{"type": "x", "changes": {"add": [{"type": "code_execution_20250825"}]}}]},
        {"role": "user", "content": [{"type": "web_search_20250305", "name": "s", "max_uses": 9}]},
    ],
)
async def test_a_tool_of_the_providers_is_found_wherever_it_stands(rig: Rig, hidden: dict[str, Any]) -> None:
    token, _ = await rig.token()
    assert kind(await rig.ask(token, messages=[{"role": "user", "content": "hi"}, hidden])) == (403, "permission_error")


async def test_pictures_are_counted_by_the_piece_and_what_only_says_to_be_one_is_not(rig: Rig) -> None:
    token, key = await rig.token()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 400_000}}
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    text = {"type": "text", "text": "[[scenario:slow]]"}
    asking = asyncio.create_task(rig.ask(token, messages=[{"role": "user", "content": [picture, text]}]))
    await rig.model.reached("never")
    asking.cancel()
    assert (await rig.settled(key)).unconfirmed_usd < 10_000 * 2 / 1e6


@pytest.mark.review("security-8")
@pytest.mark.parametrize("place", ["called with", "described by"])
async def test_a_picture_where_the_provider_reads_text_is_no_picture(rig: Rig, place: str) -> None:
    """What a tool is called with is read letter by letter: a million of them are no picture of 5,000 tokens."""
    token, key = await rig.token()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A " * 500_000}}
    used = {"type": "tool_use", "id": "t", "name": "Bash", "input": picture if place == "called with" else {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "done"}
    said = {"role": "user", "content": [result, {"type": "text", "text": "[[scenario:slow]]"}]}
    tools = [{"name": "Bash", "input_schema": {"type": "object", "x": picture if place == "described by" else 1}}]
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [used]}, said]
    asking = asyncio.create_task(rig.ask(token, messages=messages, tools=tools))
    await rig.model.reached("never")
    asking.cancel()
    assert (await rig.settled(key)).unconfirmed_usd > 1_000_000 * 2 / 1e6
