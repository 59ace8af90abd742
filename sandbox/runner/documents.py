"""Handles the runner's JSON: a spec on stdin, an answer of one line, small files written whole or not at all."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .safe_files import NotRegular, open_regular

MOST_BYTES = 1 << 20


def read_stdin() -> dict[str, Any]:
    spec = json.load(sys.stdin.buffer)
    if not isinstance(spec, dict):
        raise ValueError("the spec must be a JSON object")
    return spec


def answer(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def serve(work: Callable[[dict[str, Any]], dict[str, Any]], *errors: type[Exception]) -> int:
    """Answer the spec with the result of `work`, or with its error."""
    spec = read_stdin()
    expected: tuple[type[Exception], ...] = (OSError, *errors)
    try:
        answer({"ok": True, **work(spec)})
    except expected as error:
        answer({"ok": False, "error": str(error)})
        return 1
    return 0


def read_paths(path: Path) -> list[str]:
    """Read the list `paths` of a document that the agent may have replaced by anything; empty if it is not ours."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            found = json.loads(file.read(MOST_BYTES))["paths"]
    except (OSError, NotRegular, ValueError, LookupError, TypeError, RecursionError):
        return []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def write_atomically(path: Path, document: dict[str, Any]) -> None:
    scratch = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with scratch.open("w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
