"""The list of what is covered speaks of rows that exist, and says what is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import acceptance
from tests.repository.acceptance_rows import ROWS

MARK = re.compile(r"acceptance\(\"(\w+)\"\)")


def test_every_marker_names_a_row() -> None:
    files = Path(__file__).parents[1].rglob("test_*.py")
    named = {row for file in files for row in MARK.findall(file.read_text(encoding="utf-8"))}
    assert named - ROWS.keys() == set()
    assert len(ROWS) == 92


def test_rows_are_asked_for_by_id_or_letter() -> None:
    assert acceptance.chosen([]) == list(ROWS)
    assert acceptance.chosen(["e05", "C01"]) == ["C01", "E05"]
    assert acceptance.chosen(["b"]) == [row for row in ROWS if row[0] == "B"]
    with pytest.raises(ValueError, match="no row X1, Z"):
        acceptance.chosen(["Z", "A01", "x1"])


def test_what_is_not_covered_is_said() -> None:
    said = acceptance.report(["A01", "A02"], {"A01": ["tests/x.py::test_y"]})
    assert "       tests/x.py::test_y" in said.splitlines()
    assert re.search(r"^A02 .* NOT COVERED$", said, re.MULTILINE)
    assert said.splitlines()[-1] == "1 of 2 rows are covered; not covered: A02"


def test_a_row_that_was_asked_for_and_is_not_covered_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(acceptance, "covered", lambda: {"A01": ["t"]})
    assert acceptance.main(["A01"]) == 0
    assert acceptance.main([]) == 0
    assert acceptance.main(["A01", "A02"]) == 1
    assert acceptance.main(["Q"]) == 2
    capsys.readouterr()
