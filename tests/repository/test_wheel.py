"""The package as others install it: built as a wheel, alone in an environment, it runs the demo."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "app.yml", "bot", "sandbox")


async def run(*command: str, cwd: Path) -> str:
    """What the command prints; it must succeed. No module of the checkout is on its path."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": ""},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(100):
            said, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, (command, errors.decode()[-2000:])
    return said.decode()


def environment(folder: Path) -> Path:
    """An environment with our dependencies, and without the checkout that is installed beside them."""
    venv.create(folder, symlinks=True, with_pip=False)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin/python"


def sources(folder: Path) -> Path:
    """A copy, since a build leaves folders of its own beside what it builds."""
    folder.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True)
        else:
            shutil.copy2(ROOT / name, folder)
    return folder


@pytest.mark.timeout(240)
async def test_the_wheel_runs_the_demo(tmp_path: Path) -> None:
    source, wheels = sources(tmp_path / "source"), tmp_path / "wheels"
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    await run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(source), cwd=tmp_path)
    [wheel] = wheels.glob("forgehand-*.whl")
    python = environment(tmp_path / "env")
    await run(*pip, "--python", str(python), "install", "--no-deps", "--force-reinstall", str(wheel), cwd=tmp_path)
    where = await run(str(python), "-c", "import bot, sandbox; print(bot.__file__, sandbox.__file__)", cwd=tmp_path)
    assert all(Path(one).is_relative_to(tmp_path) for one in where.split()), where
    story = json.loads(await run(str(python.parent / "forgehand"), "demo", "--headless", "--json", cwd=tmp_path))
    assert story["outcome"] == "pull_request", story
