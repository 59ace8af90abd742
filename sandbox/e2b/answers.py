"""Reads what the hands inside have answered."""

from __future__ import annotations

import base64
import zlib
from typing import Any

from sandbox.runner.safe_files import FileStat

MOST_BYTES = 64 << 20


def data(found: dict[str, Any]) -> bytes:
    raw = base64.b64decode(found["data"])
    return zlib.decompressobj().decompress(raw, MOST_BYTES) if found["packed"] else raw


def entry(found: dict[str, Any]) -> FileStat:
    return FileStat(str(found["name"]), int(found["size"]), found["folder"] is True)
