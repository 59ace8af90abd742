"""The runner's JSON: a spec in, one line out, small files written whole or not at all."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def read_stdin() -> dict[str, Any]:
    spec = json.load(sys.stdin.buffer)
    if not isinstance(spec, dict):
        raise ValueError("the spec must be a JSON object")
    return spec


def answer(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def write_atomically(path: Path, document: dict[str, Any]) -> None:
    """A reader sees the old file or the new one, never half of it."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with scratch.open("w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
