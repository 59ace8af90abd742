"""Reads the log of the hosts that an environment was refused. The agent can write to it, so we trust none of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass

LOG = "egress-denied.jsonl"  # in `out`, written by the forwarder inside
LOG_BYTES = 1 << 20
MOST_HOSTS = 50
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[?[0-9a-f:.]{2,45}\]?")


@dataclass(frozen=True)
class Blocked:
    host: str
    port: int
    count: int


def counted(log: bytes, since: float) -> list[Blocked]:
    """Count refusals since a time, most frequent host first; lines that name no host are left out."""
    found: Counter[tuple[str, int]] = Counter()
    for line in log.splitlines():
        entry = _entry(line, since)
        if entry is not None and (entry in found or len(found) < MOST_HOSTS):
            found[entry] += 1
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return [Blocked(host, port, count) for (host, port), count in ordered]


def _entry(line: bytes, since: float) -> tuple[str, int] | None:
    try:
        known = json.loads(line)
        host, port, at = str(known["host"]).lower(), int(known["port"]), float(known["at"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    if not at >= since or not _HOST.fullmatch(host) or not 0 < port < 65536:
        return None
    return host.rstrip("."), port
