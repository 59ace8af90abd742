"""Divides a bounded room among texts: each gets its share, and what one does not need falls to the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CUT = "[… cut here …]"


@dataclass(frozen=True)
class RoomClaim:
    """What a text would like to have, and how much it counts against the others."""

    size: int
    weight: int = 1


def allot(room: int, claims: Mapping[str, RoomClaim]) -> dict[str, int]:
    """Bytes for each; never more than it claims, and all of the room while anybody claims more than they got."""
    got = dict.fromkeys(claims, 0)
    left, open_claims = max(0, room), dict(claims)
    while open_claims:
        whole = sum(claim.weight for claim in open_claims.values())
        content = {name: one for name, one in open_claims.items() if one.size * whole <= left * one.weight}
        if not content:
            return got | {name: left * one.weight // whole for name, one in open_claims.items()}
        for name, one in content.items():
            got[name] = one.size
            left -= one.size
            del open_claims[name]
    return got


def size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def beginning(text: str, room: int) -> str:
    mark = f"\n{CUT}"
    raw = text.encode("utf-8", "replace")[: max(0, room - size(mark))]
    return raw.decode("utf-8", "ignore").rstrip() + mark


def ending(text: str, room: int) -> str:
    mark = f"{CUT}\n"
    kept = max(0, room - size(mark))
    raw = text.encode("utf-8", "replace")
    return mark + raw[len(raw) - min(kept, len(raw)) :].decode("utf-8", "ignore").lstrip()
