"""Launches commands, each under a keeper of root that adopts its orphans and records how it ended.

Each name has a folder of root with `who` (keeper and command, with their start times) and, by an atomic rename,
`exit`. The folder itself is the lock that keeps a name from being launched twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from sandbox.runner import family

from . import places
from .hands import Refused, replace

KILL_SECONDS = 10.0
START_SECONDS = 20.0


def launch(request: dict[str, Any]) -> dict[str, Any]:
    folder = Path(places.LAUNCHED, request["name"])
    blob = Path(places.INCOMING, request["blob"])
    spec = json.loads(blob.read_bytes())
    blob.unlink()
    try:
        folder.mkdir()
    except FileExistsError:
        return {"started": False}
    near, far = os.pipe()
    if os.fork() == 0:
        os.close(near)
        _keep(folder, spec, far)
    os.close(far)
    if os.read(near, 1) != b"+":
        raise Refused("bad", f"{request['name']} could not be launched")
    return {"started": True}


def liveness(request: dict[str, Any]) -> dict[str, Any]:
    return {"state": state(request["name"])}


def kill(request: dict[str, Any]) -> dict[str, Any]:
    end(request["name"])
    return {}


def still(_: dict[str, Any]) -> dict[str, Any]:
    """End all launched commands, and everything else that runs as the agent."""
    for name in running():
        end(name)
    if os.geteuid() == 0 and not family.end(lambda: family.all_of(places.identity()[0]), KILL_SECONDS):
        raise Refused("busy", "the agent's processes could not be ended")
    return {}


def state(name: str) -> str:
    folder = Path(places.LAUNCHED, name)
    if not folder.is_dir():
        return "absent"
    if (folder / "exit").exists():
        return "exited"
    is_new = not (folder / "who").exists() and time.time() - folder.stat().st_mtime < START_SECONDS
    return "running" if is_new or _members(folder) else "exited"


def running() -> list[str]:
    return sorted(entry.name for entry in os.scandir(places.LAUNCHED) if state(entry.name) == "running")


def end(name: str) -> None:
    folder = Path(places.LAUNCHED, name)
    deadline = time.monotonic() + KILL_SECONDS
    while state(name) == "running":
        members = _members(folder)
        for pid in members:
            # The keeper comes last: while it lives, all processes are its descendants.
            family.end_descendants(pid, max(0.0, deadline - time.monotonic()))
        family.send(members[1:], 9)
        if time.monotonic() > deadline:
            raise Refused("busy", f"{name} could not be ended")
        time.sleep(0.005)


def _members(folder: Path) -> list[int]:
    """Return keeper and command, if they still live."""
    try:
        known = json.loads((folder / "who").read_bytes())
    except (OSError, ValueError):
        return []
    return [pid for pid, born in known if born is not None and family.born(pid) == born]


def _keep(folder: Path, spec: dict[str, Any], ready: int) -> None:
    """Start the command and wait for its end; never return. It must hold no descriptor of the service that started us,
    or that service's stream to the host would not end."""
    code = 127
    try:
        _detach(folder, ready)
        process = _start(spec)
        who = [[pid, family.born(pid)] for pid in (os.getpid(), process.pid)]
        replace(folder / "who", json.dumps(who))
        os.write(ready, b"+")
        os.close(ready)
        ended, status = os.wait()
        while ended != process.pid:
            ended, status = os.wait()
        code = family.exit_code(status)
        family.end_descendants(os.getpid(), KILL_SECONDS)
    finally:
        replace(folder / "exit", str(code))
        os._exit(0)


def _detach(folder: Path, ready: int) -> None:
    os.setsid()
    os.chdir("/")
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open("/dev/null", os.O_RDONLY)
    for number, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, number)
    os.closerange(3, ready)
    os.closerange(ready + 1, 1024)
    family.adopt_orphans()
    with contextlib.suppress(OSError):
        # If memory runs out, the kernel must not choose the keeper.
        Path("/proc/self/oom_score_adj").write_text("-900", encoding="ascii")


def _start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    drop: Any = places.drop()
    return subprocess.Popen(
        spec["argv"],
        cwd=spec["cwd"],
        env=places.environment(spec["env"]),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_ordinary,  # noqa: PLW1509 - one thread only
        **drop,
    )


def _ordinary() -> None:
    family.climb_no_more()
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("300", encoding="ascii")
