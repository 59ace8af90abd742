"""How an operation of the hands inside is asked for, and how its answer is read."""

from __future__ import annotations

import base64
import json
import shlex
from typing import Any

from sandbox.e2b.inside import places
from sandbox.errors import EnvironmentBusy, NotThere, SandboxError, TooLarge

PYTHON = "/usr/bin/python3"
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    **dict.fromkeys(("BASH_ENV", "ENV", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD"), ""),
}
"""In the place of a template's own variables: root's login shell looks up programs before it has set its own PATH, and
a template may name folders of the agent's first."""
BOOT = f'import sys; sys.path.insert(0, "{places.CODE}"); from sandbox.e2b.inside.hands import main; main()'


def command(operation: str, request: dict[str, Any]) -> str:
    """No shell sees anything but the alphabet of base64."""
    said = base64.urlsafe_b64encode(json.dumps(request).encode()).decode("ascii")
    return f"exec {PYTHON} -I -S -c {shlex.quote(BOOT)} {operation} {said}"


def opened(answer: str, operation: str) -> dict[str, Any]:
    """It comes out of the sandbox: root's own words, but read as data."""
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
