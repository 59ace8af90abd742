"""Runs the agent once for a turn: takes the turn's lock, supervises the agent, and writes `exit.json` at its end."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from . import clients, documents, family
from .supervisor import Supervisor

CANNOT_START = 127
STOPPED_BEFORE = 143


def main(arguments: list[str]) -> int:
    spec_path = Path(arguments[0])
    folder = spec_path.parent
    try:
        (folder / "lock").mkdir()
    except FileExistsError:
        return 0  # another process runs this turn, or has run it
    started = time.monotonic()
    try:
        ending = _run(folder, spec_path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        ending = _ending(CANNOT_START, error=f"The agent could not be run: {error}")
        ending["duration_seconds"] = time.monotonic() - started
    documents.write_atomically(folder / "exit.json", ending)
    return 0


def _run(folder: Path, spec_path: Path) -> dict[str, Any]:
    spec = json.loads(spec_path.read_bytes())
    spec_path.unlink()  # it contains the turn's token
    (folder / "stream.jsonl").touch()
    if (folder / "stop").exists():
        return _ending(STOPPED_BEFORE, stopped=True)
    family.adopt_orphans()
    with clients.configured(spec.get("clients"), os.environ) as variables:
        supervisor = Supervisor(folder, spec, {**_environment(spec), **variables})
        for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(sign, supervisor.request_stop)
        code = supervisor.run()
    ending = _ending(code, timed_out=supervisor.timed_out, stopped=supervisor.stopped)
    ending["duration_seconds"] = supervisor.seconds
    return ending


def _environment(spec: dict[str, Any]) -> dict[str, str]:
    """Merge the environment's variables, the agent's, and the gateway's address from the forwarder."""
    gateway = os.environ.get(clients.FROM_THE_FORWARDER)
    if not gateway:
        raise ValueError(f"{clients.FROM_THE_FORWARDER} is not set, so the model is out of reach")
    merged = {**os.environ, **spec["env"], spec["gateway_variable"]: gateway.rstrip("/") + spec["gateway_path"]}
    del merged[clients.FROM_THE_FORWARDER]
    return merged


def _ending(code: int, *, timed_out: bool = False, stopped: bool = False, error: str = "") -> dict[str, Any]:
    return {"exit_code": code, "timed_out": timed_out, "stopped": stopped, "duration_seconds": 0.0, "error": error}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
