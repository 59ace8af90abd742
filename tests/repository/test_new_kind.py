"""The guide "Add a kind of turn": its patch makes a kind whose turn runs from the webhook to the live comment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import guide

MOST_FILES = 8


@pytest.mark.timeout(240)
def test_a_kind_by_the_guide_runs_a_turn_in_eight_files(tmp_path: Path) -> None:
    """Its own test says the command by a signed webhook, and looks at the state of the stand-in for GitHub."""
    with guide.followed("kind.patch", tmp_path) as copy:
        own = [name for name in copy.touched if name.startswith("tests/")]
        assert own and "passed" in copy.tests(*own, "tests/repository/test_kinds.py")
        assert len(copy.touched) <= MOST_FILES, copy.touched
