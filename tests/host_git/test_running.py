"""git as a command: no token in sight, no time without end, no output without bound."""

from __future__ import annotations

import asyncio
import os

import pytest

from bot.git.errors import (
    GitFailed,
    GitTimedOut,
    PushRefused,
)
from bot.git.quarantine import Quarantine
from bot.git.run import Io, RemoteAccess, run_git
from bot.settings import Secret
from tests.host_git.bench import (
    REPO,
    TOKEN,
    Bench,
    command_lines,
)
from tests.world.git_remote import ENV


@pytest.mark.acceptance("E14")
async def test_the_token_is_in_no_argument_text_or_environment_of_ours(
    bench: Bench, base: str, quarantine: Quarantine, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_TRACE", "GIT_CURL_VERBOSE", "GIT_TRACE_CURL", "GIT_TRACE_PACKET", "GIT_TRACE_SETUP"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("GIT_TRACE_REDACT", "0")
    header = bench.access.header().rpartition(" ")[2]
    bench.remote.hold = asyncio.Event()
    push = asyncio.create_task(quarantine.push(bench.access, work, "b", expect=None))
    await asyncio.wait_for(bench.remote.arrived.wait(), 10)
    running = list(command_lines())
    assert any(b"push" in line and b"--porcelain" in line for line in running)
    assert not any(TOKEN.encode() in line or header.encode() in line for line in running)
    assert TOKEN not in str(os.environ)
    bench.remote.hold.set()
    await push

    bench.remote.hook("calc", f"echo 'you sent {TOKEN} as {header}' >&2; exit 1")
    with pytest.raises(PushRefused) as refused:
        await quarantine.push(bench.access, work, "c", expect=None)
    told = f"{refused.value!r} {refused.value} {refused.value.words} {bench.access!r}"
    assert TOKEN not in told and header not in told and "[redacted]" in told


@pytest.mark.acceptance("E14")
async def test_failures_of_git_carry_no_token(bench: Bench) -> None:
    with pytest.raises(GitFailed) as failed:
        await run_git(["ls-remote", f"{bench.remote.url('calc')}/{TOKEN}"], access=bench.access)
    assert TOKEN not in f"{failed.value!r}{failed.value.words}"
    with pytest.raises(ValueError, match="must not carry credentials") as refused:
        RemoteAccess(f"https://x-access-token:{TOKEN}@github.com/o/r", Secret(TOKEN))
    assert TOKEN not in str(refused.value)
    for url in ("http://github.com/o/r", "ssh://github.com/o/r", "ext::sh -c x", "--upload-pack=x", "https://a/ b"):
        with pytest.raises(ValueError, match=r"address of a remote|reached by"):
            RemoteAccess(url, Secret(TOKEN))


async def test_a_command_over_its_time_is_gone_with_its_helpers(bench: Bench, base: str) -> None:
    bench.remote.hold = asyncio.Event()
    mirror = bench.cache._root / f"{REPO}.git"
    argv = ["push", bench.remote.url("calc"), f"{base}:refs/heads/late"]
    with pytest.raises(GitTimedOut):
        await run_git(argv, mirror, access=bench.access, timeout=1.5)
    assert not any(b"refs/heads/late" in line for line in command_lines())
    bench.remote.hold.set()


async def test_a_cancelled_command_is_gone(bench: Bench, base: str) -> None:
    bench.remote.hold = asyncio.Event()
    mirror = bench.cache._root / f"{REPO}.git"
    argv = ["push", bench.remote.url("calc"), f"{base}:refs/heads/dropped"]
    task = asyncio.create_task(run_git(argv, mirror, access=bench.access))
    await asyncio.wait_for(bench.remote.arrived.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(b"refs/heads/dropped" in line for line in command_lines())
    bench.remote.hold.set()


@pytest.mark.acceptance("E14")
async def test_output_is_bounded_and_the_environment_is_bare(
    bench: Bench, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'alias.x=!env'")
    monkeypatch.setenv("CANARY", "1")
    mirror = bench.cache._root / f"{REPO}.git"
    cut = await run_git(["cat-file", "blob", f"{base}:calc.py"], mirror, io=Io(cap=5))
    assert (cut.stdout, cut.truncated) == (b"def a", True)
    shown = (await run_git(["-c", "alias.e=!env", "e"], mirror)).text
    assert "CANARY" not in shown and "'alias.x" not in shown and TOKEN not in shown
    hooks = await run_git(["config", "core.hooksPath"], mirror)
    assert hooks.text == "/dev/null"
    missing = {**ENV, "PATH": "/nonexistent"}
    monkeypatch.setenv("PATH", missing["PATH"])
    with pytest.raises(GitFailed, match="could not be started"):
        await run_git(["version"])
