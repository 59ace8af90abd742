"""`python -m tests.acceptance [ROWS…]`: which rows of the acceptance list are covered, and by which tests.

A row is named by its id (`E05`) or its letter (`E`: all of them); without any, all are listed. Ends with 1 when a row
that was asked for by name has no test.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.repository.acceptance_rows import ROWS

ROOT = Path(__file__).parents[1]

Covered = Mapping[str, Sequence[str]]


class Collector:
    """A plugin of pytest's: notes which rows the collected tests carry, each test once whatever its parameters."""

    def __init__(self) -> None:
        self.tests: dict[str, list[str]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("acceptance"):
                for row in mark.args:
                    self._note(row, item.nodeid.partition("[")[0])

    def _note(self, row: str, test: str) -> None:
        tests = self.tests.setdefault(row, [])
        if test not in tests:
            tests.append(test)


def covered(*arguments: str) -> Covered:
    """Rows and the tests that carry them, collected and not run. Raises RuntimeError with pytest's own words."""
    collector, said = Collector(), io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(
            ["--collect-only", "-qq", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *arguments], plugins=[collector]
        )
    if code:
        raise RuntimeError(f"The tests could not be collected:\n{said.getvalue()}")
    return collector.tests


def chosen(names: Iterable[str]) -> list[str]:
    """The rows that are meant, in the list's order; ValueError for what is none."""
    wanted = {name.upper() for name in names}
    if unknown := sorted(name for name in wanted if not any(_means(name, row) for row in ROWS)):
        raise ValueError(f"There is no row {', '.join(unknown)}: rows are A01 to F17, or a letter for all of its rows.")
    return [row for row in ROWS if not wanted or any(_means(name, row) for name in wanted)]


def report(rows: Sequence[str], found: Covered) -> str:
    lines = []
    for row in rows:
        tests = found.get(row, ())
        lines += [f"{row}  {ROWS[row]}{'' if tests else '  -- NOT COVERED'}", *(f"       {test}" for test in tests)]
    bare = [row for row in rows if not found.get(row)]
    tail = f"; not covered: {', '.join(bare)}" if bare else ""
    return "\n".join([*lines, f"{len(rows) - len(bare)} of {len(rows)} rows are covered{tail}"])


def main(names: Sequence[str]) -> int:
    try:
        rows = chosen(names)
        found = covered()
    except (ValueError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    print(report(rows, found))
    return int(bool(names) and any(not found.get(row) for row in rows))


def _means(name: str, row: str) -> bool:
    return name in (row, row[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
