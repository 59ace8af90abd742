"""`python -m tests.durations LOG`: remembers how long tests took.

LOG is the output of `python -m tests --durations=0 -vv`. Long tests start first, and take turns (`tests.slices`).
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

FILE = Path(__file__).with_name("durations.txt")
LEAST_SECONDS = 1
ROW = re.compile(r"([0-9.]+)s (?:call|setup|teardown) +(\S.*?) *\n?")


def known() -> dict[str, int]:
    """Return the seconds that one case of each long test takes, by the test's name without its case."""
    rows = (line.split(" ", 1) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: int(seconds) for seconds, name in rows}


def measured(lines: Iterable[str]) -> dict[str, int]:
    """Read pytest's table. A test with several cases counts as long as they take on average."""
    cases: defaultdict[str, float] = defaultdict(float)
    for line in lines:
        if row := ROW.fullmatch(line):
            cases[row[2]] += float(row[1])
    tests: dict[str, list[float]] = {}
    for case, seconds in cases.items():
        tests.setdefault(case.partition("[")[0], []).append(seconds)
    means = {name: sum(each) / len(each) for name, each in tests.items()}
    return {name: round(mean) for name, mean in means.items() if mean >= LEAST_SECONDS}


def main(log: Path) -> None:
    """Keep what is known of tests that were left to other rounds."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        found = {**known(), **measured(lines)}
    there = {name: seconds for name, seconds in found.items() if (FILE.parents[1] / name.partition("::")[0]).exists()}
    FILE.write_text("".join(f"{seconds} {name}\n" for name, seconds in sorted(there.items())), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
