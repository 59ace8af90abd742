"""The image's build steps, run without a container: they stand in a script that the Dockerfile calls."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EVERY = os.environ.get("FORGEHAND_TESTS") == "all"
slow = pytest.mark.skipif(not EVERY, reason="minutes long: FORGEHAND_TESTS=all runs it")


@slow
@pytest.mark.timeout(900)
async def test_the_script_makes_an_environment_that_starts(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(str(ROOT / ".ci/image"), str(tmp_path / "made"))
    assert await process.wait() == 0


def test_the_dockerfile_runs_the_script_with_all_that_it_needs() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "RUN .ci/image /opt/forgehand" in text
    copied = {name for line in text.splitlines() if line.startswith("COPY") for name in line.split()[1:-1]}
    assert {"requirements.lock", "pyproject.toml", "app.yml", ".ci/image", "bot", "sandbox"} <= copied
    links = [path for path in (ROOT / "bot").rglob("*") if path.is_symlink()]
    assert [path.resolve() for path in links] == [ROOT / "app.yml"], "a link to what is not copied is a broken file"
