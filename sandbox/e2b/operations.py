"""Builds commands for the hands inside, and reads their answers."""

from __future__ import annotations

import base64
import json
import shlex
import zlib
from typing import Any

from sandbox.e2b.inside import places
from sandbox.errors import EnvironmentBusy, NotThere, SandboxError, TooLarge
from sandbox.runner.safe_files import FileStat

MOST_BYTES = 64 << 20
PYTHON = "/usr/bin/python3"
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    **dict.fromkeys(("BASH_ENV", "ENV", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD"), ""),
}
"""These replace a template's variables. Root's login shell looks up programs before it sets its own PATH, and the
template's PATH may begin with folders of the agent."""
BOOT = f'import sys; sys.path.insert(0, "{places.CODE}"); from sandbox.e2b.inside.hands import main; main()'


def command(operation: str, request: dict[str, Any]) -> str:
    """Encode a request in base64, so that the shell has nothing to interpret."""
    said = base64.urlsafe_b64encode(json.dumps(request).encode()).decode("ascii")
    return f"exec {PYTHON} -I -S -c {shlex.quote(BOOT)} {operation} {said}"


def opened(answer: str, operation: str) -> dict[str, Any]:
    """Read an answer as data, although it comes from root inside."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        raise SandboxError(f"{operation} gave no answer") from None
    if not isinstance(found, dict):
        raise SandboxError(f"{operation} gave no answer")
    if "error" in found:
        kinds: dict[Any, type[SandboxError]] = {"absent": NotThere, "large": TooLarge, "busy": EnvironmentBusy}
        raise kinds.get(found["error"], SandboxError)(str(found.get("words"))[:1000])
    return found


def data_of(found: dict[str, Any]) -> bytes:
    raw = base64.b64decode(found["data"])
    return zlib.decompressobj().decompress(raw, MOST_BYTES) if found["packed"] else raw


def entry_of(found: dict[str, Any]) -> FileStat:
    return FileStat(str(found["name"]), int(found["size"]), found["folder"] is True)
