"""`python -m tests.loop [NAME…]`: meets each attack (or those whose name or door holds a NAME), prints a table."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.loop.attacks import Known, every
from tests.loop.field import Field, Found

HEAD = (
    "door",
    "input",
    "healthz s",
    "status s",
    "p99 ms",
    "max ms",
    "GIL ms",
    "callback ms",
    "took s",
    "worst callback",
)
WIDTHS = (9, 46, 9, 8, 7, 7, 7, 11, 6, 0)


async def main(wanted: list[str]) -> None:
    chosen = [one for one in every().values() if not wanted or any(w in (one.name, one.door) for w in wanted)]
    print(row(HEAD))
    for one in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                async with Field.open(Path(folder)) as field:
                    if one.before is not None:
                        await one.before(field)
                    found = await field.meet(one.name, one.attack)
            except Exception as error:  # noqa: BLE001 - the others are measured all the same
                print(row((one.door, one.name, f"failed: {type(error).__name__}: {error}")), flush=True)
                continue
        print(shown(one, found), flush=True)


def shown(one: Known, found: Found) -> str:
    lag = found.lag
    worst = lag.worst[0] if lag.worst else None
    figures = (found.health.slowest, found.slowest_status, lag.p99_ms, lag.max_ms, lag.computed_ms, lag.held_ms)
    where = (worst.stack[-1] if worst.stack else worst.name) if worst else ""
    texts = [f"{value:.2f}" if at < 2 else f"{value:.0f}" for at, value in enumerate(figures)]
    lines = [row((one.door, one.name, *texts, f"{found.seconds:.0f}", where))]
    for held in lag.worst[:6]:
        trail = " < ".join(reversed([line for line in held.stack if "tests/loop" not in line][-4:]))
        lines.append(
            f"      {held.cpu_ms:.0f} ms ({held.wall_ms:.0f}, gc {held.collecting_ms:.0f}) {held.name}: {trail}"
        )
    return "\n".join(lines)


def row(cells: tuple[str, ...]) -> str:
    return " | ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=False)).rstrip()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
