"""`python -m tests --quick` leaves out no package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository import rooms


@pytest.mark.quick
def test_each_package_has_a_quick_test() -> None:
    named = {room for file in Path(__file__).parents[1].rglob("test_*.py") for room in _named(file)}
    assert named == rooms.every()


@pytest.mark.quick
def test_a_claim_holds_only_for_files_that_were_entered() -> None:
    files = [str(rooms.ROOT / "bot/live/page.py"), "/usr/lib/bot/engine/durable.py"]
    assert rooms.missed(["bot.live", "bot.engine", "sandbox.runner"], files) == ["bot.engine"]


def _named(file: Path) -> Iterator[str]:
    """What `pytest.mark.quick(...)` holds there."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.quick":
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))
