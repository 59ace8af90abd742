"""The packages of bot/ and sandbox/, and which of them a set of files lies in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEYOND = frozenset(("sandbox.runner", "sandbox.e2b.inside", "bot.simulation.pages"))
"""Their code runs inside of environments and in the demo's own process: no call of it is seen from here."""


def every() -> frozenset[str]:
    """By name, as `bot.live`."""
    return frozenset(_room(file) for top in ("bot", "sandbox") for file in (ROOT / top).rglob("*.py"))


def missed(claimed: Iterable[str], files: Iterable[str]) -> list[str]:
    """Packages that are claimed to be entered, though none of those files lies in them."""
    paths = (Path(name) for name in files)
    entered = {_room(path) for path in paths if path.is_relative_to(ROOT)}
    return sorted({*claimed} - BEYOND - entered)


def _room(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parts[:-1])
