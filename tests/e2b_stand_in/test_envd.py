"""envd of the stand-in, through E2B's own SDK: what a process does with and without its client, and files."""

from __future__ import annotations

import asyncio
import base64
import io
from typing import Any

import pytest
from e2b import AsyncSandbox, CommandExitException
from e2b.exceptions import (
    FileNotFoundException,
    InvalidArgumentException,
    NotFoundException,
    SandboxException,
    TimeoutException,
)

from tests.e2b_stand_in import E2BStandIn
from tests.e2b_stand_in.conftest import until
from tests.world.plain_http import plain_client

# --- processes


async def test_output_and_exit_code(box: AsyncSandbox) -> None:
    assert (await box.commands.run("echo out; echo err >&2; pwd", cwd="/tmp")).stdout == "out\n/tmp\n"
    with pytest.raises(CommandExitException) as caught:
        await box.commands.run("echo err >&2; exit 7")
    assert (caught.value.exit_code, caught.value.stderr, caught.value.error) == (7, "err\n", "exit status 7")
    with pytest.raises(CommandExitException) as caught:
        await box.commands.run("kill -KILL $$")
    assert (caught.value.exit_code, caught.value.error) == (-1, "signal: killed")
    with pytest.raises(InvalidArgumentException, match="does not exist"):
        await box.commands.run("true", cwd="/none")


async def test_a_login_shell_resets_the_path(box: AsyncSandbox) -> None:
    said = await box.commands.run('echo "$PATH"; echo "$OTHER"', envs={"PATH": "/mine", "OTHER": "kept"})
    assert said.stdout.splitlines() == ["/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games", "kept"]


async def test_much_output_comes_whole(box: AsyncSandbox) -> None:
    said = await box.commands.run("head -c 3000000 /dev/zero | tr '\\0' x")
    assert said.stdout == "x" * 3_000_000


async def test_stdin_is_written_and_closed(box: AsyncSandbox) -> None:
    handle = await box.commands.run("cat; echo end", background=True, stdin=True, timeout=0)
    await handle.send_stdin("one\n")
    async with box.commands.stream_input(handle.pid) as stream:
        await stream.send("two\n")
        await stream.send("x" * 500_000)
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "one\ntwo\n" + "x" * 500_000 + "end\n"
    quiet = await box.commands.run("cat", background=True, timeout=0)
    with pytest.raises(NotFoundException):
        await box.commands.send_stdin(999_999, "x")
    assert (await quiet.wait()).stdout == ""


async def test_a_process_survives_its_client(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    handle = await box.commands.run(
        "while [ ! -e go ]; do sleep 0.01; done; echo done > done", background=True, timeout=0
    )
    await handle.disconnect()
    [listed] = await box.commands.list()
    assert (listed.pid, listed.cmd, listed.args[:2]) == (handle.pid, "/bin/bash", ["-l", "-c"])
    await box.files.write("go", "")

    async def done() -> bool:
        return await box.files.exists("done")

    await until(done)


async def test_what_nobody_hears_is_thrown_away(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    wait = "while [ ! -e {} ]; do sleep 0.01; done"
    script = f"echo one; {wait.format('a')}; echo two; echo > b; {wait.format('c')}; echo three"
    heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    handle = await box.commands.run(script, background=True, timeout=0, on_stdout=heard.set_result)
    assert await heard == "one\n"
    await handle.disconnect()
    process = e2b.sandbox(box.sandbox_id).processes.live[0]

    async def alone() -> bool:
        return not process.fan.has_readers

    await until(alone)
    await box.files.write("a", "")

    async def said_two() -> bool:
        return await box.files.exists("b")

    await until(said_two)
    again = await box.commands.connect(handle.pid, timeout=0)
    await box.files.write("c", "")
    assert (await again.wait()).stdout == "three\n"


async def test_two_clients_hear_the_same(box: AsyncSandbox) -> None:
    first = await box.commands.run("read line; echo $line", background=True, stdin=True, timeout=0)
    second = await box.commands.connect(first.pid, timeout=0)
    await first.send_stdin("both\n")
    assert [(await each.wait()).stdout for each in (first, second)] == ["both\n", "both\n"]


async def test_an_end_is_remembered_for_thirty_seconds(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    handle = await box.commands.run("exit 3", background=True, timeout=0)
    with pytest.raises(CommandExitException):
        await handle.wait()
    late = await box.commands.connect(handle.pid)
    with pytest.raises(CommandExitException) as caught:
        await late.wait()
    assert (caught.value.exit_code, caught.value.stdout) == (3, "")
    await e2b.clock.advance(31)
    with pytest.raises(NotFoundException):
        await box.commands.connect(handle.pid)


async def test_a_timeout_kills_the_one_process_on_the_server(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    script = "trap 'echo > trapped' TERM; sleep 61 & echo $! > child; wait"
    handle = await box.commands.run(script, background=True)  # 60 seconds unless told otherwise
    await handle.disconnect()

    async def started() -> bool:
        return await box.files.exists("child")

    await until(started)
    await e2b.clock.advance(61)

    async def ended() -> bool:
        return await box.commands.list() == []

    await until(ended)
    assert not await box.files.exists("trapped")
    await box.commands.run("kill -0 $(cat child)")


async def test_a_timeout_is_told_to_a_client_that_waits(box: AsyncSandbox) -> None:
    with pytest.raises(TimeoutException):
        await box.commands.run("sleep 60", timeout=0.2)


async def test_connect_with_a_timeout_ends_only_that_stream(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    handle = await box.commands.run("sleep 60", background=True, timeout=0)
    watcher = await box.commands.connect(handle.pid, timeout=0.1)
    with pytest.raises(TimeoutException):
        await watcher.wait()
    assert [each.pid for each in await box.commands.list()] == [handle.pid]


async def test_kill_is_of_one_process_and_ends_the_stream(box: AsyncSandbox) -> None:
    handle = await box.commands.run("sleep 61 & echo $! > child; wait", background=True, timeout=0)

    async def started() -> bool:
        return await box.files.exists("child") and bool(await box.files.read("child"))

    await until(started)
    assert await handle.kill() is True
    with pytest.raises(CommandExitException) as caught:
        await handle.wait()
    assert caught.value.exit_code == -1
    await box.commands.run("kill -0 $(cat child)")
    assert await box.commands.kill(999_999) is False


async def test_an_open_pipe_keeps_a_command_from_ending(box: AsyncSandbox) -> None:
    handle = await box.commands.run("sleep 60 & echo $!", background=True, timeout=0)

    async def exited() -> bool:
        return (await box.commands.run(f"ps -o pid= -p {handle.pid} || true")).stdout == "" or (
            "defunct" in (await box.commands.run(f"ps -o args= -p {handle.pid} || true")).stdout
        )

    await until(exited)
    assert [each.pid for each in await box.commands.list()] == [handle.pid]
    await box.commands.run(f"kill {handle.stdout.strip()}")
    assert (await handle.wait()).exit_code == 0


async def test_keepalives_come_and_are_not_output(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    handle = await box.commands.run("read line; echo $line", background=True, stdin=True, timeout=0)
    for _ in range(3):
        await e2b.clock.advance(51)
    await handle.send_stdin("said\n")
    assert (await handle.wait()).stdout == "said\n"


async def test_a_stuck_reader_silences_the_others_and_blocks_the_process(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    script = "while [ ! -e go ]; do sleep 0.01; done; head -c 1000000 /dev/zero; echo > wrote"
    await box.commands.run(script, background=True, timeout=0)
    e2b.sandbox(box.sandbox_id).wedge_readers()
    heard: list[str] = []
    [process] = e2b.sandbox(box.sandbox_id).processes.live
    second = await box.commands.connect(process.pid, timeout=0, on_stdout=heard.append)
    await box.files.write("go", "")

    async def blocked() -> bool:
        stack = await box.commands.run("cat /proc/$(pgrep head)/wchan 2>/dev/null || true")
        return "pipe" in stack.stdout

    await until(blocked)
    assert not await box.files.exists("wrote")
    assert sum(map(len, heard)) < 100_000
    await second.disconnect()


# --- who may


async def test_envd_wants_its_token(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    async with plain_client(base_url=e2b.sandbox_url, trust_env=False) as client:
        route = {"e2b-sandbox-id": box.sandbox_id}
        assert (await client.get("/health", headers=route)).status_code == 204
        assert (await client.post("/process.Process/List", headers=route, json={})).status_code == 401
        assert (await client.get("/files?path=x", headers=route)).status_code == 401
        token = {**route, "x-access-token": e2b.sandbox(box.sandbox_id).access_token}
        assert (await client.post("/process.Process/List", headers=token, json={})).json() == {"processes": []}
        stranger = {**token, "authorization": "Basic " + base64.b64encode(b"nobody:").decode()}
        assert (await client.post("/process.Process/List", headers=stranger, json={})).status_code == 401
        assert (await client.get("/health")).status_code == 502


# --- files


async def test_files_go_up_and_down(box: AsyncSandbox) -> None:
    binary = bytes(range(256)) * 3000
    written = await box.files.write("deep/er/file", binary)
    assert (written.path, written.name) == ("/home/user/deep/er/file", "file")
    assert bytes(await box.files.read("deep/er/file", format="bytes")) == binary
    assert bytes(await box.files.read("~/deep/er/file", format="bytes", gzip=True)) == binary
    await box.files.write("streamed", io.BytesIO(binary))
    await box.files.write("zipped", binary, gzip=True)
    assert (
        await box.commands.run("cmp streamed zipped && cmp zipped deep/er/file && stat -c %a zipped")
    ).stdout == "644\n"
    stream = await box.files.read("streamed", format="stream")
    assert b"".join([chunk async for chunk in stream]) == binary
    many: Any = [{"path": "m/one", "data": b"1\r\n--x"}, {"path": "/tmp/two", "data": "2"}]
    assert [each.path for each in await box.files.write_files(many)] == ["/home/user/m/one", "/tmp/two"]
    assert await box.files.read("m/one") == "1\r\n--x"


async def test_what_is_not_there_or_no_file(box: AsyncSandbox) -> None:
    with pytest.raises(FileNotFoundException):
        await box.files.read("none")
    with pytest.raises(FileNotFoundException):
        await box.files.list("none")
    with pytest.raises(InvalidArgumentException, match="is a directory"):
        await box.files.read("/home/user")
    with pytest.raises(InvalidArgumentException, match="not a directory"):
        await box.files.list("/etc/passwd")
    with pytest.raises(SandboxException, match="path is a file"):
        await box.files.write("/etc/passwd/x", "x")


async def test_ranges_and_signed_addresses(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.files.write("log", "0123456789")
    await box.files.write("empty", "")
    address = box.download_url("log", use_signature_expiration=60)
    async with plain_client(trust_env=False) as client:

        async def part(wanted: str, name: str = "log") -> tuple[int, str]:
            answer = await client.get(box.download_url(name), headers={"range": wanted})
            return answer.status_code, answer.text if answer.is_success else ""

        assert await part("bytes=4-") == (206, "456789")
        assert await part("bytes=4-5") == (206, "45")
        assert await part("bytes=-3") == (206, "789")
        assert await part("bytes=5-99") == (206, "56789")
        assert await part("bytes=10-") == (416, "")
        assert await part("bytes=5-", "empty") == (200, "")
        assert (await client.get(address)).text == "0123456789"
        assert (await client.get(address.replace("log", "empty"))).status_code == 502  # nobody's signature
        await e2b.clock.advance(61)
        assert (await client.get(address)).status_code == 401


async def test_a_link_is_followed_inside_only(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.commands.run("ln -s /etc/hostname link; ln -s / root; mkfifo fifo")
    assert await box.files.read("link") == "e2b.local\n"
    assert await box.files.read("root/etc/hostname") == "e2b.local\n"
    about = await box.files.get_info("link")
    assert (about.type.value if about.type else "", about.symlink_target) == ("file", "/etc/hostname")
    assert {each.name for each in await box.files.list("/home/user")} == {
        "link",
        "root",
    }  # a FIFO has no kind, a link that of what it leads to
    with pytest.raises(TimeoutException):
        await box.commands.run("cat fifo", timeout=0.1)


async def test_folders(box: AsyncSandbox) -> None:
    assert await box.files.make_dir("a/b") is True
    assert await box.files.make_dir("a/b") is False
    await box.files.write("a/b/c", "12345")
    assert [each.path for each in await box.files.list("a", depth=2)] == ["/home/user/a/b", "/home/user/a/b/c"]
    assert (await box.files.get_info("a/b/c")).size == 5
    assert (await box.files.rename("a/b/c", "x/y")).path == "/home/user/x/y"
    with pytest.raises(FileNotFoundException):
        await box.files.rename("none", "y")
    await box.files.remove("a")
    await box.files.remove("a")
    assert not await box.files.exists("a/b")
    assert await box.files.read("x/y") == "12345"


async def test_a_folder_is_watched(box: AsyncSandbox) -> None:
    seen: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    handle = await box.files.watch_dir(".", on_event=lambda event: seen.put_nowait((event.type.value, event.name)))
    async with asyncio.timeout(5):
        await box.files.write("new", "1")
        assert (await seen.get())[1] == "new"
        await box.files.remove("new")
        while await seen.get() != ("remove", "new"):
            pass
    await handle.stop()  # type: ignore[no-untyped-call]
