"""Sets up a machine: its folders, their owners, and the mark by which we recognise its disk after a pause."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from . import files, gate, hardening, launching, places
from .hands import Refused


def furnish(request: dict[str, Any]) -> dict[str, Any]:
    """Set up the machine. Safe to repeat, because it leaves the agent's files alone."""
    for folder in (places.STATE, places.INCOMING, places.OUTGOING, places.RUNS, places.LAUNCHED):
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(folder).chmod(0o700)
    for folder in (places.INCOMING, places.OUTGOING):
        files.empty(folder)
    Path(places.OUT).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    for folder in (places.HOME, places.WORK, places.OUT):
        Path(folder).mkdir(mode=0o755, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(folder, *places.identity(), follow_symlinks=False)
    for folder, _, names in os.walk(places.CODE):  # root owns our scripts; the agent may only run them
        Path(folder).chmod(0o755)
        for name in names:
            Path(folder, name).chmod(0o644)
    hardening.harden()
    missing = [path for path in request["needed"] if not os.access(path, os.X_OK)]
    if missing:
        raise Refused("bad", f"the template lacks {', '.join(missing)}")
    found = _marked()
    mark(request)
    return {"known": found["key"] == request["key"], "mark": found["mark"]}


def mark(request: dict[str, Any]) -> dict[str, Any]:
    """Store the machine's key and the mark of its newest disk; it is on the disk before we answer."""
    partial = Path(places.MARKER + ".part")
    with partial.open("w", encoding="utf-8") as file:
        json.dump({"key": request["key"], "mark": request["mark"]}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(places.MARKER)
    return {}


def wake(request: dict[str, Any]) -> dict[str, Any]:
    """Wake after an unexpected pause: end what ran, because it lost its connections; the host starts it again."""
    found = _marked()
    marked = found["key"] == request["key"]
    if marked and request["end"]:
        for name in launching.running():
            launching.end(name)
    return {"marked": marked, "mark": found["mark"]}


def strip(request: dict[str, Any]) -> dict[str, Any]:
    """Prepare for a snapshot: end what runs, and remove the machine's key, mark and results."""
    for name in launching.running():
        launching.end(name)
    gate.shut({})
    for folder in (places.INCOMING, places.OUTGOING, places.RUNS, places.LAUNCHED):
        shutil.rmtree(folder, ignore_errors=True)
    Path(places.MARKER).unlink(missing_ok=True)
    return {}


def _marked() -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(Path(places.MARKER).read_bytes())
        if isinstance(found, dict):
            return {"key": found.get("key"), "mark": found.get("mark")}
    return {"key": None, "mark": None}
