"""Long tests that take turns: each has its round, and one can say how long tests take."""

from __future__ import annotations

import pytest

from tests import durations, slices

LOG = """\
=== slowest durations ===
9.00s call     tests/a/test_a.py::test_long
1.00s setup    tests/a/test_a.py::test_long
8.00s call     tests/a/test_a.py::test_cases[one case]
2.00s call     tests/a/test_a.py::test_cases[other]
0.50s call     tests/a/test_a.py::test_short
"""


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_each_case_runs_in_one_round_of_so_many(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    ran = []
    for number in range(100, 100 + rounds):
        monkeypatch.setattr(slices, "ROUND", number)
        ran += [place for place in range(5) if slices.is_due("tests/a/test_a.py::test_cases", place, rounds)]
    assert sorted(ran) == [0, 1, 2, 3, 4]


def test_rounds_take_about_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    known = durations.known()
    for number in range(slices.ROUNDS):
        monkeypatch.setattr(slices, "ROUND", number)
        seconds = sum(each for name, each in known.items() if slices.is_due(name, 0, slices.ROUNDS))
        assert abs(seconds / sum(known.values()) - 1 / slices.ROUNDS) < 0.1, number


def test_a_log_says_how_long_a_case_takes() -> None:
    assert durations.measured(LOG.splitlines(keepends=True)) == {
        "tests/a/test_a.py::test_long": 10,
        "tests/a/test_a.py::test_cases": 5,
    }
