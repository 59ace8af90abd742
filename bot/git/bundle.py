"""The header of a git bundle, read and judged by us before git sees the file: version 2 and exactly one ref."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.git.errors import BundleRefused

WORK_REF = "refs/forgehand/work"
MAX_HEADER = 1 << 20
"""The header repeats the first line of each prerequisite's message, which may be long."""
_V2 = b"# v2 git bundle\n"
_PREREQUISITE = re.compile(rb"-([0-9a-f]{40})(?: .*)?")
_REF = re.compile(rb"([0-9a-f]{40}) (.+)")


@dataclass(frozen=True)
class BundleHeader:
    tip: str
    prerequisites: frozenset[str]
    pack_offset: int


def parse_header(data: bytes) -> BundleHeader:
    """`data` is the start of the file, at least its whole header; refuses whatever is not exactly what we asked for."""
    if not data.startswith(_V2):
        raise BundleRefused(_wrong_kind(data))
    end = data.find(b"\n\n", len(_V2) - 1)
    if end < 0 or end > MAX_HEADER:
        raise BundleRefused("The work's bundle is cut off or its header is too long.")
    tips: list[str] = []
    prerequisites: set[str] = set()
    for line in data[len(_V2) : end].split(b"\n"):
        if found := _PREREQUISITE.fullmatch(line):
            prerequisites.add(found[1].decode())
        else:
            tips.append(_tip(line))
    if len(tips) != 1:
        raise BundleRefused(f"The work's bundle holds {len(tips)} refs where exactly one was expected.")
    return BundleHeader(tips[0], frozenset(prerequisites), end + 2)


def _wrong_kind(data: bytes) -> str:
    if data.startswith(b"# v3 git bundle"):
        return "The work's bundle is of version 3, which may be partial; only version 2 is taken."
    return "The work did not come as a git bundle." if data else "The work's bundle is empty."


def _tip(line: bytes) -> str:
    found = _REF.fullmatch(line)
    if found is None:
        raise BundleRefused("The header of the work's bundle is malformed.")
    if found[2] != WORK_REF.encode():
        raise BundleRefused("The work's bundle holds a ref that was not asked for.")
    return found[1].decode()
