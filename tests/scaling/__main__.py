"""The scaling table: of every reader the text that it takes longest for, and how that grows."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.scaling.growth import SIZES, Growth, Reader, measured, slowest
from tests.scaling.readers import READERS
from tests.scaling.units import closed, pairs, singles, triples

SCREENED_AT = 1_024
LOOKED_AT = 3
"""Of each reader: the slowest texts of this length, and of these the slowest at twice and four times as much."""
TRIPLES = 1_500
SHOWN = 4


def worst(reader: Reader, many: int = LOOKED_AT) -> list[Growth]:
    """The slowest of all pairs and many triples when they are short, judged as they grow."""
    recipes = [*singles(), *closed(), *pairs(), *triples(TRIPLES)]
    found = slowest(reader, slowest(reader, recipes, SCREENED_AT, 12 * many), 4 * SCREENED_AT, many)
    return [measured(reader, one) for one in found]


def row(name: str, growth: Growth) -> str:
    times = " | ".join(f"{one * 1000:.0f}" for one in growth.seconds[-SHOWN:])
    sign = "" if growth.is_linear else " **too steep**"
    return f"| {name} | {str(growth.recipe).replace('|', chr(92) + '|')} | {times} | {growth.worst:.1f}{sign} |"


def main(names: Sequence[str]) -> int:
    chosen = [name for name in READERS if not names or any(one in name for one in names)]
    print(
        f"| reads | worst text found | {' | '.join(f'{size // 1024} KB, ms' for size in SIZES[-SHOWN:])} | steepest |"
    )
    print(f"|---|---|{'---:|' * (SHOWN + 1)}")
    steep = 0
    for name in chosen:
        found = worst(READERS[name])
        steep += any(not one.is_linear for one in found)
        ordered = sorted(found, key=lambda one: (not one.is_linear, one.seconds[-1]), reverse=True)
        print(row(name, ordered[0]), flush=True)
    print(f"\n{len(chosen) - steep} of {len(chosen)} grow no faster than their text.")
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
