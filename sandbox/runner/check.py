"""Runs one of the repository's own commands (setup, checks) and reports how it ended and its last words.

Where `log` names a file, all that it prints goes there, as far as a file may be long.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from . import documents, processes
from .outputs import CappedFile

LOG_HEAD = 4 << 20
LOG_TAIL = 1 << 20


def main() -> int:
    documents.answer(check(documents.read_stdin()))
    return 0


def check(spec: dict[str, Any]) -> dict[str, Any]:
    log = _log(spec.get("log"))
    done = processes.run(
        [*_shell(), spec["command"]],
        cwd=spec["cwd"],
        env=os.environ,
        limits=processes.Limits(spec["timeout_seconds"], spec["tail_bytes"], log.add if log else None),
        merged=True,
    )
    if log:
        log.close()
    return {
        "exit_code": done.exit_code if done.exit_code >= 0 else 128 - done.exit_code,
        "tail": done.output.decode("utf-8", "replace"),
        "seconds": round(done.seconds, 3),
        "timed_out": done.timed_out,
    }


def _log(path: str | None) -> CappedFile | None:
    """That it cannot be kept is no reason not to run the command."""
    try:
        return CappedFile(Path(path), LOG_HEAD, LOG_TAIL) if path else None
    except OSError:
        return None


def _shell() -> list[str]:
    """People write these commands for bash, as they do in CI."""
    for bash in ("/bin/bash", "/usr/bin/bash"):
        if os.access(bash, os.X_OK):
            return [bash, "-c"]
    return ["/bin/sh", "-c"]


if __name__ == "__main__":
    sys.exit(main())
