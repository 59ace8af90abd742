"""Finds the Claude Code binary on this host: the tested one of the wheel, or a newer one by `claude update`."""

from __future__ import annotations

import asyncio
import os
import re
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sandbox.agents.base import clean
from sandbox.errors import IsolationMissing
from sandbox.runner import family

FLOOR = (2, 1, 300)  # older ones lack flags that we use


def version_in(text: str) -> tuple[int, ...]:
    """Return the first version in a text, or ()."""
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(map(int, match.groups())) if match else ()


def find() -> Path:
    """Return the binary; IsolationMissing says how to get it."""
    spec = find_spec("claude_agent_sdk")
    folder = Path(spec.origin).parent / "_bundled" if spec and spec.origin else None
    if folder is None or not (folder / "claude").is_file():
        raise IsolationMissing(
            "The Claude Code binary is not installed: pip install 'forgehand[local]' brings it "
            "(its wheels are for glibc Linux and macOS; there is none for Alpine)."
        )
    try:
        version = version_in((folder / "claude.version").read_text(encoding="utf-8"))
    except OSError:
        version = ()
    if version < FLOOR:
        found, least = (".".join(map(str, one)) for one in (version, FLOOR))
        raise IsolationMissing(
            f"Claude Code {found} is too old: pip install -U 'forgehand[local]' brings {least} or newer."
        )
    return folder / "claude"


UPDATE_SECONDS = 120.0
VERSION_SECONDS = 30.0
LAST_LINES, MOST_SAID = 3, 300
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
PASSED_ON = {*_PROXIES, *map(str.upper, _PROXIES), "NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE"}
"""The only variables of our own environment that the updater sees, because others hold credentials."""


@dataclass(frozen=True)
class Newest:
    program: Path
    failure: str = ""  # why it may not be the newest


async def newest(home: Path, tested: Path) -> Newest:
    """Let the program update itself in `home`. If that fails, return the present program and the reason."""
    await asyncio.to_thread(home.mkdir, mode=0o700, parents=True, exist_ok=True)
    try:
        code, said = await _run(await present(home, tested), "update", home=home, seconds=UPDATE_SECONDS)
        failure = said or f"exit code {code}" if code else ""
    except TimeoutError:
        failure = f"it took more than {UPDATE_SECONDS:g} seconds"
    except OSError as error:
        failure = str(error.strerror)
    return Newest(await present(home, tested), failure)


async def present(home: Path, tested: Path) -> Path:
    """Return the updated program, or the tested one if that is newer or the updated one does not start."""
    brought = home / ".local/bin/claude"
    if not await asyncio.to_thread(brought.is_file):
        return tested
    found = await _answered_version(brought, home)
    return brought.resolve() if found >= max(FLOOR, await _answered_version(tested, home)) else tested


async def _answered_version(program: Path, home: Path) -> tuple[int, ...]:
    try:
        _, said = await _run(program, "--version", home=home, seconds=VERSION_SECONDS)
    except (OSError, TimeoutError):
        return ()
    return version_in(said) if said[:1].isdecimal() else ()


async def _run(program: Path, word: str, *, home: Path, seconds: float) -> tuple[int, str]:
    """Return the exit code and the last words. No process is left running, however it ends."""
    env = {name: value for name, value in os.environ.items() if name in PASSED_ON}
    env |= {"HOME": str(home), "PATH": os.defpath, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    process = await asyncio.create_subprocess_exec(
        *(program, word), stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env=env, cwd=home, start_new_session=True
    )
    try:
        async with asyncio.timeout(seconds):
            out, _ = await process.communicate()
    finally:
        family.kill_group(process.pid)
        await process.wait()
    lines = [line.strip() for line in clean(out.decode("utf-8", "replace")).splitlines() if line.strip()]
    return process.returncode or 0, " ".join(lines[-LAST_LINES:])[:MOST_SAID]
