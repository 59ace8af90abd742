"""Trouble that the stand-in makes on order, as E2B's own SDK tells of it."""

from __future__ import annotations

import asyncio
import os

import httpx
import pytest
from connectrpc.errors import ConnectError
from e2b import AsyncSandbox
from e2b.exceptions import (
    SandboxException,
    SandboxNotRunningException,
    SandboxUnreachableException,
    ServiceBusyException,
)

from tests.e2b_stand_in import E2BStandIn, Fault
from tests.e2b_stand_in.conftest import until

SLOW = "echo first; sleep 60"


async def test_the_nth_call_fails(e2b: E2BStandIn) -> None:
    fault = e2b.faults.add(Fault("POST /v2/sandboxes", "fail", skip=1))
    await AsyncSandbox.create("claude")
    with pytest.raises(SandboxException, match="500: Internal error"):
        await AsyncSandbox.create("claude")
    await AsyncSandbox.create("claude")
    assert (len(e2b.sandboxes), fault.hits, fault.seen) == (2, 1, 3)
    e2b.faults.add(Fault("POST /v2/sandboxes", "fail", status=503, times=None))
    with pytest.raises(ServiceBusyException):
        await AsyncSandbox.create("claude", retries=1)
    assert [call.status for call in e2b.calls] == [201, 500, 201, 503, 503]


async def test_a_lost_answer_leaks_a_sandbox_unless_it_has_a_key(e2b: E2BStandIn) -> None:
    e2b.faults.add(Fault("POST /v2/sandboxes", "lose", times=2))
    with pytest.raises(httpx.TransportError):
        await AsyncSandbox.create("claude")
    with pytest.raises(httpx.TransportError):
        await AsyncSandbox.create("claude", idempotency_key="job-2")
    assert len(e2b.sandboxes) == 2
    again = await AsyncSandbox.create("claude", idempotency_key="job-2")
    assert again.sandbox_id == e2b.sandboxes[1].id
    e2b.faults.add(Fault("DELETE /sandboxes/*", "fail_after"))
    with pytest.raises(SandboxException):
        await again.kill()
    assert e2b.sandbox(again.sandbox_id).state == "killed"


async def test_before_the_effect(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    e2b.faults.add(Fault("POST /sandboxes/*/pause", "reset"))
    with pytest.raises(httpx.TransportError):
        await box.pause()
    assert await box.is_running()
    held = e2b.faults.add(Fault("POST /sandboxes/*/timeout", "hold"))
    waiting = asyncio.ensure_future(box.set_timeout(1000))
    await held.reached.wait()
    assert not waiting.done()
    held.release.set()
    await waiting
    e2b.faults.add(Fault("GET /sandboxes/*/metrics", "fail", status=200, body="[]"))
    assert await box.get_metrics() == []


async def test_a_stream_that_is_cut_is_a_failure_and_the_process_lives(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    e2b.faults.add(Fault("POST /process.Process/Start", "cut", after=1))
    e2b.faults.add(Fault("POST /process.Process/Start", "rst", after=1))
    ended, reset = [await box.commands.run(SLOW, background=True, timeout=0) for _ in range(2)]
    with pytest.raises(SandboxUnreachableException):
        await ended.wait()
    with pytest.raises(ConnectError):
        await reset.wait()
    assert [each.pid for each in await box.commands.list()] == [ended.pid, reset.pid]


async def test_an_envd_that_died_is_unreachable(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    e2b.sandbox(box.sandbox_id).machine.link.close()
    with pytest.raises(SandboxUnreachableException):
        await box.commands.run("true")


async def test_a_stream_that_stalls_is_silent(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    fault = e2b.faults.add(Fault("POST /process.Process/Start", "stall", after=1))
    handle = await box.commands.run("echo said", background=True, timeout=0)
    waiting = asyncio.ensure_future(handle.wait())
    done, _ = await asyncio.wait({waiting}, timeout=0.2)
    assert not done
    fault.release.set()
    assert (await waiting).stdout == "said\n"


async def test_no_end_event_and_no_json(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    e2b.faults.add(Fault("POST /process.Process/Start", "no_end"))
    with pytest.raises(Exception, match="without an end event"):
        await box.commands.run("true")
    e2b.faults.add(Fault("POST /process.Process/Start", "garbage"))
    with pytest.raises(SandboxException):
        await box.commands.run("echo x")


async def test_killed_under_a_running_command(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    e2b.faults.add(Fault("POST /process.Process/Start", "kill", after=1))
    with pytest.raises(SandboxNotRunningException):
        await box.commands.run(SLOW, timeout=0)
    assert e2b.sandbox(box.sandbox_id).state == "killed"


async def test_killed_and_paused_by_the_world_under_a_running_command(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    other = await AsyncSandbox.create("claude")
    handles = [await each.commands.run(SLOW, background=True, timeout=0) for each in (box, other)]
    await e2b.kill(box.sandbox_id)
    await other.pause()
    for handle in handles:
        with pytest.raises(SandboxNotRunningException):
            await handle.wait()


async def test_a_download_that_breaks_off(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.files.write("big", os.urandom(250_000).hex())
    e2b.faults.add(Fault("GET /files", "cut", after=2))
    with pytest.raises(httpx.TransportError):
        await box.files.read("big")
    assert len(await box.files.read("big")) == 500_000


async def test_an_upload_that_breaks_off(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    token = e2b.sandbox(box.sandbox_id).access_token
    port = int(e2b.sandbox_url.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /files?path=half HTTP/1.1\r\nhost: x\r\ne2b-sandbox-id: {box.sandbox_id}\r\nx-access-token: {token}\r\n"
    )
    writer.write(f"{head}content-type: application/octet-stream\r\ncontent-length: 1000\r\n\r\n12345".encode())

    async def arrived() -> bool:
        return await box.files.exists("half") and await box.files.read("half") == "12345"

    await until(arrived)
    writer.close()
    await writer.wait_closed()


async def test_calls_are_recorded(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.commands.run("echo secret-word")
    start = next(call for call in e2b.calls if call.path == "/process.Process/Start")
    assert (start.sandbox, start.status) == (box.sandbox_id, 200)
    assert b"secret-word" in start.body
    assert [call for call in e2b.calls if b"no-such-word" in call.body] == []
