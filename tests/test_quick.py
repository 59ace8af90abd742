"""`python -m tests --quick` leaves out no package."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import rooms


@pytest.mark.quick
def test_each_package_has_a_quick_test() -> None:
    named = {room for file in Path(__file__).parent.rglob("test_*.py") for room in _named(file)}
    assert named == rooms.every()


@pytest.mark.quick
def test_a_quick_test_that_does_not_enter_what_it_names_fails(tmp_path: Path) -> None:
    file = Path(__file__).parent / "unit/test_shares.py"
    words = file.read_text(encoding="utf-8") + '\n\nimport pytest\npytestmark = pytest.mark.quick("bot.engine")\n'
    (tmp_path / "test_false.py").write_text(words, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    run = [*command, "-c", str(rooms.ROOT / "pyproject.toml"), str(tmp_path / "test_false.py")]
    done = subprocess.run(run, cwd=rooms.ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, done.stdout
    assert "never entered: ['bot.engine']" in done.stdout


def _named(file: Path) -> Iterator[str]:
    """What `pytest.mark.quick(...)` holds there."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.quick":
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))
