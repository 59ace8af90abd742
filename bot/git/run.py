"""The only place that starts git: a bare environment, safe configuration, limits of time and size, no visible token."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from bot.git.errors import GitFailed, GitTimedOut, HostFull
from bot.settings import LOOPBACK, Secret
from sandbox.runner import family


@dataclass(frozen=True)
class RemoteAccess:
    """A remote repository; the address never holds a user or a password."""

    url: str
    token: Secret

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.username is not None or parts.password is not None or "@" in parts.netloc:
            raise ValueError("the address of a remote must not carry credentials")
        if any(ord(character) < 33 or ord(character) == 127 for character in self.url):
            raise ValueError("the address of a remote must not hold blanks or control characters")
        plain = parts.scheme == "http" and parts.hostname in LOOPBACK
        if not (parts.scheme in ("https", "file") or plain):
            raise ValueError("a remote is reached by https (or http on loopback, or a file address)")

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme

    def header(self) -> str:
        return f"Authorization: Basic {self._basic()}"

    def redact(self, text: str) -> str:
        """Replace the token in every form in which git or curl could repeat it."""
        token = self.token.reveal()
        for form in (self._basic(), token, quote(token, safe="")):
            text = text.replace(form, "[redacted]") if form else text
        return text

    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token.reveal()}".encode()).decode()


STDERR_BYTES = 32 * 1024
PASSED_ON = (
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
"""Variables that lead out of the operator's network. Commands that talk to a remote get these of our environment."""

SAFE = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.useReplaceRefs": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.bigFileThreshold": "8m",  # larger blobs are streamed and not diffed: memory stays bounded
    "core.logAllRefUpdates": "false",
    "credential.helper": "",
    "diff.external": "",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",  # a fetch is one file, so a size limit covers all of it
    "gc.auto": "0",
    "http.followRedirects": "false",  # git would send the header to wherever it is sent
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "60",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "protocol.allow": "never",
    "protocol.version": "2",
    "push.recurseSubmodules": "no",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
}


@dataclass(frozen=True)
class Io:
    """The input, output and limits of a command."""

    stdin: bytes | int = b""
    """Bytes, or an open file descriptor that is read from its current position."""
    stdout: int | None = None
    """A file descriptor to write to; None: captured up to `cap`."""
    cap: int = 1 << 20
    """More captured output ends the command and marks the result as truncated."""
    each: Callable[[bytes], bool] | None = None
    """Receives the output part by part, so that we hold none of it; False ends the command, as truncated."""
    env: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    """Settings for this command beside the safe ones."""
    max_file_bytes: int | None = None
    max_memory: int = 4 << 30
    """More ends the command with an error. Files that it maps do not count."""


@dataclass(frozen=True)
class GitResult:
    exit_code: int
    stdout: bytes
    stderr: str
    truncated: bool = False

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace").strip()


def environment(git_dir: Path | None, access: RemoteAccess | None, io: Io) -> dict[str, str]:
    """Build the whole environment of git. It inherits only the PATH and, for remotes, `PASSED_ON`."""
    config = {**SAFE, **io.config}
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_ALLOC_LIMIT": str(io.max_memory),  # for one piece; the limit of all comes when git has started
    }
    if git_dir is not None:
        env["GIT_DIR"] = str(git_dir)
    if access is not None:
        env.update({name: os.environ[name] for name in PASSED_ON if name in os.environ})
        config[f"protocol.{access.scheme}.allow"] = "always"
        if access.scheme != "file":
            config["http.extraHeader"] = access.header()
    env["GIT_CONFIG_COUNT"] = str(len(config))
    for number, (key, value) in enumerate(config.items()):
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = key, value
    return {**env, **io.env}


async def run_git(
    argv: Sequence[str],
    git_dir: Path | None = None,
    *,
    access: RemoteAccess | None = None,
    io: Io | None = None,
    timeout: float = 60.0,
    accept: Sequence[int] = (0,),
) -> GitResult:
    """Run one command. An exit code that is not in `accept` raises; truncated output never does."""
    io = io or Io()
    process = await _start(argv, git_dir, access, io)
    try:
        async with asyncio.timeout(timeout):
            result = await _converse(process, io)
    except TimeoutError:
        raise GitTimedOut(argv[0], timeout) from None
    finally:
        await _end(process)
    words = access.redact(result.stderr) if access else result.stderr
    result = GitResult(result.exit_code, result.stdout, words, result.truncated)
    if result.exit_code in accept or result.truncated:
        return result
    if "No space left on device" in words or "Disk quota exceeded" in words:
        raise HostFull("the host's disk has no room left for a git repository")
    raise GitFailed(argv[0], result.exit_code, words)


async def init_bare(place: Path) -> None:
    await run_git(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(place)])


async def _start(
    argv: Sequence[str], git_dir: Path | None, access: RemoteAccess | None, io: Io
) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            "git",
            *argv,
            stdin=asyncio.subprocess.PIPE if isinstance(io.stdin, bytes) else io.stdin,
            stdout=asyncio.subprocess.PIPE if io.stdout is None else io.stdout,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env=environment(git_dir, access, io),
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # In asyncio of 3.11, a start that is cancelled half-way may never end: let it finish, then stop the process.
        await _end(await starting)
        raise
    except OSError as error:
        # From None: the frames of the original hold the environment, and with it the token.
        raise GitFailed(argv[0], 127, f"git could not be started: {error.strerror}") from None
    for limit, most in ((resource.RLIMIT_FSIZE, io.max_file_bytes), (resource.RLIMIT_DATA, io.max_memory)):
        if most is not None:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process.pid, limit, (most, most))
    return process


async def _converse(process: asyncio.subprocess.Process, io: Io) -> GitResult:
    async with asyncio.TaskGroup() as tasks:
        out = tasks.create_task(_capture(process, io))
        err = tasks.create_task(_tail(process.stderr))
        if process.stdin is not None:
            assert isinstance(io.stdin, bytes)
            tasks.create_task(_feed(process.stdin, io.stdin))
    data, truncated = out.result()
    return GitResult(await process.wait(), data, err.result(), truncated)


async def _feed(stdin: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(data)
        await stdin.drain()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.close()
        await stdin.wait_closed()


async def _capture(process: asyncio.subprocess.Process, io: Io) -> tuple[bytes, bool]:
    held = bytearray()
    while process.stdout is not None and (part := await process.stdout.read(1 << 16)):
        if io.each is None:
            held += part[: io.cap + 1 - len(held)]
        if len(held) > io.cap or (io.each is not None and not io.each(part)):
            family.kill_group(process.pid)
            while await process.stdout.read(1 << 16):  # without a reader the process could not be reaped
                pass
            return bytes(held[: io.cap]), True
    return bytes(held), False


async def _tail(stream: asyncio.StreamReader | None) -> str:
    held = bytearray()
    while stream is not None and (part := await stream.read(1 << 14)):
        held += part
        del held[:-STDERR_BYTES]
    return held.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill git with all its helpers if it still runs, after a time-out or a cancelled task."""
    if process.returncode is None:
        family.kill_group(process.pid)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), 5.0)
