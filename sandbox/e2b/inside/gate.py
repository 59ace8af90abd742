"""Starts the switchboard if needed, and gives it the key by which it recognises the host."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sandbox.runner import family

from . import places
from .hands import Refused, replace

BOOT = (
    f"import sys; sys.path.insert(0, sys.argv[1]); from {__package__}.switchboard import main; main(int(sys.argv[2]))"
)


def gate(request: dict[str, Any]) -> dict[str, Any]:
    """Return the port for the host. After a lost answer the host asks again; then the key is already stored."""
    blob = Path(places.INCOMING, request["blob"])
    with contextlib.suppress(FileNotFoundError):
        blob.chmod(0o600)
        blob.replace(places.GATE_KEY)
    found = _running()
    return {"port": found[1] if found else _started()}


def shut(request: dict[str, Any]) -> dict[str, Any]:
    if found := _running():
        family.send([found[0]], 9)
    for path in (places.GATE, places.GATE_KEY, places.GATE_SOCKET):
        Path(path).unlink(missing_ok=True)
    return {}


def _running() -> tuple[int, int] | None:
    """Return the switchboard's process and port, if it runs."""
    with contextlib.suppress(OSError, ValueError):
        pid, born, port = json.loads(Path(places.GATE).read_bytes())
        if family.born(pid) == born:
            return pid, int(port)
    return None


def _started() -> int:
    near, far = os.pipe()
    with open(places.GATE_LOG, "wb") as log:  # noqa: PTH123 - one call of a short-lived process
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", BOOT, places.CODE, str(far)],
            cwd="/",
            env=places.environment({}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(far,),
            start_new_session=True,
        )
    os.close(far)
    with os.fdopen(near, "rb") as told:
        port = told.readline().strip()
    if not port:
        raise Refused("busy", "the way to the gateway could not be opened")
    replace(Path(places.GATE), json.dumps([process.pid, family.born(process.pid), int(port)]))
    return int(port)
