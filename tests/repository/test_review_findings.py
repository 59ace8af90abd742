"""Every finding of a review has a test that carries it, and no test carries one that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.repository.review_findings import FINDINGS

MARK = re.compile(r"mark\.review\(([^)]*)\)")
NAME = re.compile(r"\"([\w-]+)\"")


def test_every_finding_has_a_test() -> None:
    files = Path(__file__).parents[1].rglob("test_*.py")
    marks = (mark for file in files for mark in MARK.findall(file.read_text(encoding="utf-8")))
    assert {name for mark in marks for name in NAME.findall(mark)} == FINDINGS.keys()
