"""Runs one of the repository's own commands (setup, checks) and reports how it ended and its last words.

`log` names a file for its whole output, under a cap. With `commit`, the report lists files that differ from it then.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from . import clients, documents, processes
from .outputs import CappedFile
from .repository import Checkout, CheckoutGitFailed

LOOK_SECONDS = 20.0
MOST_CHANGED = 20
LOG_HEAD = 4 << 20
LOG_TAIL = 1 << 20


def main() -> int:
    documents.answer(check(documents.read_stdin()))
    return 0


def check(spec: dict[str, Any]) -> dict[str, Any]:
    log: CappedFile | None = None
    with contextlib.suppress(OSError):  # the command runs even if its output cannot be kept
        log = CappedFile(Path(spec["log"]), LOG_HEAD, LOG_TAIL) if spec.get("log") else None
    # People write these commands for bash, as they do in CI.
    shell = next((bash for bash in ("/bin/bash", "/usr/bin/bash") if os.access(bash, os.X_OK)), "/bin/sh")
    with clients.configured(spec.get("clients"), os.environ) as variables:
        done = processes.run(
            [shell, "-c", spec["command"]],
            cwd=spec["cwd"],
            env={**os.environ, **variables},
            limits=processes.CommandLimits(spec["timeout_seconds"], spec["tail_bytes"], log.add if log else None),
            merged=True,
        )
    if log:
        log.close()
    return {
        "exit_code": done.exit_code if done.exit_code >= 0 else 128 - done.exit_code,
        "tail": done.output.decode("utf-8", "replace"),
        "seconds": round(done.seconds, 3),
        "timed_out": done.timed_out,
        "changed": _changed(spec),
    }


def _changed(spec: dict[str, Any]) -> list[str]:
    """List files that differ from the named commit; none if git cannot tell."""
    if not spec.get("commit"):
        return []
    work = Path(spec["work"])
    repository = Checkout(spec["git"], work / ".git", work, seconds=LOOK_SECONDS)
    argv = ("diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", spec["commit"], "--")
    try:
        found = repository(*argv, raw=True).split("\0")[:-1]
    except (CheckoutGitFailed, OSError):
        return []
    return [path.encode("utf-8", "replace").decode() for path in found[:MOST_CHANGED]]


if __name__ == "__main__":
    sys.exit(main())
