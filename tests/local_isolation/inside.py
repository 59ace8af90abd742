"""Local environments for the tests of their isolation, and what is tried inside them."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sandbox.errors import IsolationMissing
from sandbox.local.environment import LocalEnvironment
from sandbox.local.launcher import BoxLimits
from sandbox.local.provider import LocalProvider
from sandbox.primitives import EnvironmentSpec, ExecResult
from tests.world.environments import small_agent

SPEC = EnvironmentSpec({"session": "one"}, public_repository=True)
CANARY = "canary-93b1f2"
REPOSITORY = Path(__file__).parents[2]
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: each environment has a user of its own then")


@asynccontextmanager
async def running(
    root: Path, *, limits: BoxLimits | None = None, agent: Path | None = None
) -> AsyncIterator[LocalProvider]:
    provider = LocalProvider(root / "env", agent or small_agent(root), limits=limits)
    try:
        await provider.start()
    except IsolationMissing as error:
        pytest.skip(str(error))
    try:
        yield provider
    finally:
        for environment in await provider.find({}):
            await environment.terminate()
        await provider.close()


async def created(provider: LocalProvider, key: str = "one") -> LocalEnvironment:
    found = await provider.create(key, SPEC)
    assert isinstance(found, LocalEnvironment)
    return found


async def python(env: LocalEnvironment, script: str, *arguments: str, network: bool = False) -> ExecResult:
    return await env.exec([env.layout.python, "-c", script, *arguments], network=network, timeout=30)


async def tried(env: LocalEnvironment, **attempts: str) -> dict[str, str]:
    """Each attempt is an expression; the answer is its value or the error's name."""
    script = (
        "import ctypes, fcntl, json, os, socket, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def call(*a):\n"
        "    if libc.syscall(*a) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))\n"
        "    return 'done'\n"
        "def dial(family, kind, to, data=b'x'):\n"
        "    with socket.socket(family, kind) as s:\n"
        "        s.settimeout(3); s.connect(to); s.send(data); return 'sent'\n"
        "out = {}\n"
        "for name, text in json.loads(sys.argv[1]).items():\n"
        "    try: out[name] = str(eval(text))\n"
        "    except BaseException as e: out[name] = type(e).__name__ + ': ' + str(e)\n"
        "print(json.dumps(out))\n"
    )
    result = await python(env, script, json.dumps(attempts))
    found: dict[str, str] = json.loads(result.stdout)
    return found
