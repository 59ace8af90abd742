"""What an agent has laid in its home is found, also where the home closes it to whoever looks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sandbox.e2b.operations import PYTHON
from tests.world.environments import short_folder

NOBODY = 65_534
ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.review("e2b-1"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a program as somebody who may not look everywhere"),
]


def asked(home: Path, **spec: Any) -> dict[str, Any]:
    """As the agent's user, who has no rights beyond its own, and with the machine's Python."""
    code = home.parent / "code"
    if not code.exists():
        shutil.copytree(ROOT / "sandbox" / "runner", code / "runner")
    given = json.dumps({"home": str(home), "own": [], **spec}).encode()
    program = f"import sys; sys.path.insert(0, {str(code)!r}); from runner.homes import main; main()"
    environment = {"TMPDIR": str(home.parent / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [PYTHON, "-c", program]
    return answered(subprocess.run(command, input=given, env=environment, user=NOBODY, capture_output=True, check=True))


def answered(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["ok"], found
    return found


def test_what_is_closed_to_its_owner_is_not_taken_for_unchanged() -> None:
    with short_folder() as folder:
        home = folder / "home"
        (home / "tool" / "closed").mkdir(parents=True)
        (folder / "tmp").mkdir()
        for path in (folder, home, folder / "tmp", home / "tool"):
            os.chown(path, NOBODY, NOBODY)
        os.chown(home / "tool" / "closed", NOBODY, NOBODY)
        before = asked(home)["home"]
        assert asked(home, known=before)["changed"] == []
        (home / "tool" / "closed").chmod(0)
        known = asked(home)["home"]
        assert set(known) == {"tool"}
        (home / "tool" / "run").write_text("planted")
        assert asked(home, known=known)["changed"] == ["tool"]
