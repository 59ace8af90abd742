"""How large a pack is once unpacked, found out in bounded memory before git is let near it."""

from __future__ import annotations

import mmap
import zlib
from dataclasses import dataclass

from bot.git.errors import BundleRefused

_TREE_LIKE = (1, 2, 3)
_OFFSET_DELTA, _REF_DELTA = 6, 7
_TRAILER = 20
_CUT_OFF = "The work's bundle is cut off or damaged."


@dataclass(frozen=True)
class ImportLimits:
    """What one turn may bring home."""

    max_bundle_bytes: int = 200 << 20
    max_objects: int = 200_000
    max_object_bytes: int = 100 << 20
    max_unpacked_bytes: int = 1 << 30
    max_paths: int = 1_000_000
    """Of the whole tree, written out: a few nested trees can stand for more files than any disk holds."""
    timeout_seconds: float = 180.0


def measure(pack: mmap.mmap, start: int, limits: ImportLimits) -> None:
    """Walk all entries of a pack, or raise BundleRefused. Sizes that deltas promise count: git will build them."""
    count = _entries(pack, start, limits)
    position, total = start + 12, 0
    for _ in range(count):
        kind, size, position = _entry_header(pack, position)
        total += size
        if size > limits.max_object_bytes or total > limits.max_unpacked_bytes:
            raise BundleRefused(_too_large(limits))
        head, position = _inflate(pack, position, size)
        if kind in (_OFFSET_DELTA, _REF_DELTA):
            result = _delta_result(head)
            total += result
            if result > limits.max_object_bytes:
                raise BundleRefused(_too_large(limits))
    if total > limits.max_unpacked_bytes:
        raise BundleRefused(_too_large(limits))
    if position + _TRAILER != len(pack):
        raise BundleRefused(_CUT_OFF)


def _too_large(limits: ImportLimits) -> str:
    return (
        f"The work is too large once unpacked: at most {limits.max_object_bytes >> 20} MiB a file and "
        f"{limits.max_unpacked_bytes >> 20} MiB in all are taken."
    )


def _entries(pack: mmap.mmap, start: int, limits: ImportLimits) -> int:
    if len(pack) < start + 12 + _TRAILER or pack[start : start + 8] != b"PACK\0\0\0\2":
        raise BundleRefused(_CUT_OFF)
    count = int.from_bytes(pack[start + 8 : start + 12], "big")
    if count > limits.max_objects:
        raise BundleRefused(f"The work holds {count} git objects; at most {limits.max_objects} are taken.")
    return count


def _byte(pack: mmap.mmap, position: int) -> int:
    if position >= len(pack) - _TRAILER:
        raise BundleRefused(_CUT_OFF)
    return pack[position]


def _entry_header(pack: mmap.mmap, position: int) -> tuple[int, int, int]:
    byte = _byte(pack, position)
    kind, size, shift = (byte >> 4) & 7, byte & 15, 4
    while byte & 0x80:
        position += 1
        byte = _byte(pack, position)
        size |= (byte & 0x7F) << shift
        shift += 7
        if shift > 63:
            raise BundleRefused(_CUT_OFF)
    position += 1
    if kind == _OFFSET_DELTA:
        while _byte(pack, position) & 0x80:
            position += 1
        position += 1
    elif kind == _REF_DELTA:
        position += 20
    elif kind not in _TREE_LIKE:
        raise BundleRefused("The work's bundle holds something other than commits, folders and files.")
    return kind, size, position


def _inflate(pack: mmap.mmap, position: int, size: int) -> tuple[bytes, int]:
    """The first bytes of an entry's content, and where the next entry starts."""
    inflater = zlib.decompressobj()
    head, length, limit = b"", 0, len(pack) - _TRAILER
    step = min(1 << 16, size + 64)
    data = b""
    try:
        while not inflater.eof:
            if not data:
                data = pack[position : min(position + step, limit)]
                position += len(data)
            part = inflater.decompress(data, 1 << 16)
            head = head or part[:32]
            length += len(part)
            stuck = not data and not part and not inflater.eof
            if stuck or length > size:
                raise BundleRefused(_CUT_OFF)
            data = inflater.unconsumed_tail
    except zlib.error:
        raise BundleRefused(_CUT_OFF) from None
    if length != size:
        raise BundleRefused(_CUT_OFF)
    return head, position - len(inflater.unused_data)


def _delta_result(head: bytes) -> int:
    """The size of what a delta makes: the second of the two numbers that it starts with."""
    numbers = iter(head)
    size = 0
    for _ in range(2):
        size, shift = 0, 0
        for byte in numbers:
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        else:
            raise BundleRefused(_CUT_OFF)
    return size
