"""Runs one of the repository's own commands (setup, checks) and reports how it ended and its last words."""

from __future__ import annotations

import os
import sys
from typing import Any

from . import documents, processes


def main() -> int:
    documents.answer(check(documents.read_stdin()))
    return 0


def check(spec: dict[str, Any]) -> dict[str, Any]:
    done = processes.run(
        [*_shell(), spec["command"]],
        cwd=spec["cwd"],
        env=os.environ,
        limits=processes.Limits(spec["timeout_seconds"], spec["tail_bytes"]),
        merged=True,
    )
    return {
        "exit_code": done.exit_code if done.exit_code >= 0 else 128 - done.exit_code,
        "tail": done.output.decode("utf-8", "replace"),
        "seconds": round(done.seconds, 3),
        "timed_out": done.timed_out,
    }


def _shell() -> list[str]:
    """People write these commands for bash, as they do in CI."""
    for bash in ("/bin/bash", "/usr/bin/bash"):
        if os.access(bash, os.X_OK):
            return [bash, "-c"]
    return ["/bin/sh", "-c"]


if __name__ == "__main__":
    sys.exit(main())
