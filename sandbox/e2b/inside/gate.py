"""Sees to it that the switchboard runs, and gives it the key by which it knows the host."""

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
from .hands import Refused

BOOT = (
    f"import sys; sys.path.insert(0, sys.argv[1]); from {__package__}.switchboard import main; main(int(sys.argv[2]))"
)


def gate(request: dict[str, Any]) -> dict[str, Any]:
    """The port at which the host is awaited. Asked again after a lost answer, the key is in its place already."""
    blob = Path(places.INCOMING, request["blob"])
    with contextlib.suppress(FileNotFoundError):
        blob.chmod(0o600)
        blob.replace(places.GATE_KEY)
    return {"port": _port() or _started()}


def shut(request: dict[str, Any]) -> dict[str, Any]:
    """Nothing of it is left: neither the process nor the key."""
    with contextlib.suppress(OSError, ValueError):
        pid, born, _ = json.loads(Path(places.GATE).read_bytes())
        if family.born(pid) == born:
            family.send([pid], 9)
    for path in (places.GATE, places.GATE_KEY, places.GATE_SOCKET):
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()
    return {}


def _port() -> int:
    """0 when it does not run."""
    with contextlib.suppress(OSError, ValueError):
        pid, born, port = json.loads(Path(places.GATE).read_bytes())
        if family.born(pid) == born:
            return int(port)
    return 0


def _started() -> int:
    near, far = os.pipe()
    with open(places.GATE_LOG, "wb") as log:  # noqa: PTH123 - one call, and nothing of it is kept
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
    document = json.dumps([process.pid, family.born(process.pid), int(port)])
    partial = Path(places.GATE + ".part")
    partial.write_text(document, encoding="ascii")
    partial.replace(places.GATE)
    return int(port)
