"""Run, given variables and input, found again, killed, outlived."""

from __future__ import annotations

import asyncio

import pytest
from e2b import AsyncSandbox, CommandExitException, NotFoundException, TimeoutException

from tests.e2b_stand_in import E2BStandIn
from tests.e2b_stand_in.conftest import until


@pytest.mark.parametrize("text", ["Hello, World!", "Hello,\nWorld!", "ä ☃ 語", "!@#%^&*()_+"])
async def test_what_is_printed_comes_back(box: AsyncSandbox, text: str) -> None:
    done = await box.commands.run(f"printf '%s' '{text}'")
    assert (done.exit_code, done.stdout, done.stderr) == (0, text, "")


async def test_broken_letters_are_replaced(box: AsyncSandbox) -> None:
    done = await box.commands.run("printf '" + "a" * 8191 + "\\xe2'")
    assert done.stdout == "a" * 8191 + "\ufffd"


async def test_a_code_that_is_not_zero_is_an_exception_with_all_that_was_said(box: AsyncSandbox) -> None:
    with pytest.raises(CommandExitException) as caught:
        await box.commands.run("echo out; echo err >&2; exit 3")
    assert (caught.value.exit_code, caught.value.stdout, caught.value.stderr) == (3, "out\n", "err\n")
    with pytest.raises(CommandExitException) as missing:
        await box.commands.run("no-such-command")
    assert missing.value.exit_code == 127


async def test_time_limits_are_kept_from_both_sides(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    assert (await box.commands.run("echo soon", timeout=10)).stdout == "soon\n"
    with pytest.raises(TimeoutException):
        await box.commands.run("sleep 10", timeout=0.5)


async def test_variables_of_the_sandbox_and_of_a_command(e2b: E2BStandIn) -> None:
    box = await AsyncSandbox.create("base", timeout=600, envs={"FOO": "bar"})
    assert (await box.commands.run("echo $FOO")).stdout == "bar\n"
    assert (await box.commands.run("echo $FOO", envs={"FOO": "baz"})).stdout == "baz\n"
    assert (await box.commands.run("export X=1; echo $X; sh -c 'echo $X'")).stdout == "1\n1\n"
    assert (await box.commands.run("echo :$X:")).stdout == "::\n"


async def test_who_and_where(box: AsyncSandbox) -> None:
    assert (await box.commands.run("whoami; pwd")).stdout == "user\n/home/user\n"
    assert (await box.commands.run("pwd", cwd="/tmp")).stdout == "/tmp\n"


async def test_in_the_background_it_is_listed_found_and_killed(box: AsyncSandbox) -> None:
    handle = await box.commands.run("sleep 300", background=True)
    assert handle.pid in [one.pid for one in await box.commands.list()]
    found = await box.commands.connect(handle.pid)
    assert found.pid == handle.pid
    assert await box.commands.kill(handle.pid)

    async def gone() -> bool:
        return handle.pid not in [one.pid for one in await box.commands.list()]

    await until(gone)
    assert not await box.commands.kill(handle.pid)
    with pytest.raises(NotFoundException):
        await box.commands.connect(999999)


async def test_input_reaches_it_and_ends(box: AsyncSandbox) -> None:
    handle = await box.commands.run("cat", background=True, stdin=True)
    for text in ("words ", b"bytes ", "!@#$%\nlines"):
        await box.commands.send_stdin(handle.pid, text)
    await box.commands.close_stdin(handle.pid)
    assert (await handle.wait()).stdout == "words bytes !@#$%\nlines"


async def test_a_sandbox_that_is_killed_takes_its_command_along(box: AsyncSandbox) -> None:
    running = asyncio.ensure_future(box.commands.run("sleep 60"))
    await asyncio.sleep(0.2)
    await box.kill()
    with pytest.raises(TimeoutException, match=r"(?i)sandbox"):
        await running
