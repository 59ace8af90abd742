"""Reads and writes the agent's files as root, opened by `safe_files`."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sandbox.runner import safe_files
from sandbox.runner.safe_files import BLOCK, FULL, FileStat, SafePath

from . import places
from .hands import Refused

WORTH_PACKING = 1 << 10


def packed(data: bytes) -> dict[str, Any]:
    small = zlib.compress(data, 1) if len(data) >= WORTH_PACKING else data
    return {"data": base64.b64encode(small).decode("ascii"), "packed": len(data) >= WORTH_PACKING}


def read(request: dict[str, Any]) -> dict[str, Any]:
    with _opened(request["path"]) as place:
        return packed(place.read(request["offset"], request["limit"]))


def stage(request: dict[str, Any]) -> dict[str, Any]:
    """Copy a file, so that the agent can neither change nor swap it while the host downloads it."""
    target = Path(places.OUTGOING, request["name"])
    with _opened(request["path"]) as place, target.open("xb") as copy:
        size = place.copy(copy.write, request["most"])
    if size is not None:
        return {"size": size}
    target.unlink()
    raise Refused("large", f"{request['path']} is larger than {request['most']} bytes")


def list(request: dict[str, Any]) -> dict[str, Any]:  # noqa: A001 - the host's name of the operation
    with _opened(request["path"]) as place:
        return {"entries": [_told(one) for one in place.entries()]}


def stat(request: dict[str, Any]) -> dict[str, Any]:
    return {"entries": [None if (one := _entry(path)) is None else _told(one) for path in request["paths"]]}


def size_of(path: str) -> int:
    entry = _entry(path)
    return entry.size if entry is not None else 0


def put(request: dict[str, Any]) -> dict[str, Any]:
    """Write the files of an upload: a line that names them, then their contents one after the other."""
    blob = Path(places.INCOMING, request["blob"])
    with blob.open("rb") as data:
        for entry in json.loads(data.readline()):
            _write(entry["path"], data, entry["size"], executable=entry["executable"])
    blob.unlink()
    return {}


def _write(path: str, data: IO[bytes], size: int, *, executable: bool) -> None:
    def feed(to: int) -> None:
        left = size
        while left:
            block = data.read(min(left, BLOCK))
            if not block:
                raise Refused("busy", "an upload arrived cut off")
            left -= len(block)
            safe_files.put(to, block)

    with _opened(path) as place:
        place.write(feed, places.identity() if os.geteuid() == 0 else None, executable=executable)


def _entry(path: str) -> FileStat | None:
    try:
        with _opened(path) as place:
            return place.entry()
    except Refused:
        return None


def _told(entry: FileStat) -> dict[str, Any]:
    return {"name": entry.name, "size": entry.size, "folder": entry.is_dir}


@contextlib.contextmanager
def _opened(path: str) -> Iterator[SafePath]:
    """Find a path in a folder that the host may open; errors become refusals."""
    place = SafePath.below(path, places.BASES)
    if place is None:
        raise Refused("absent", f"{path[:200]} is not in a folder that the host may open")
    try:
        yield place
    except OSError as error:
        raise Refused("busy" if error.errno in FULL else "absent", f"{path}: {error.strerror}") from None


def empty(folder: str) -> None:
    """Remove what earlier calls left in a folder of root."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            Path(entry.path).unlink()
