"""A folder's own `.env` and modules are no settings and no code of ours: they would send the key to whom they name."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.foreign_folder.rig import repository
from tests.world.command_line import ROOT, SECONDS, Ran
from tests.world.environments import short_folder
from tests.world.git_remote import git

pytestmark = pytest.mark.review("security-4")


async def installed(environment: dict[str, str], *arguments: str, at: Path) -> Ran:
    """As the installed program, which looks for no module in the working directory."""
    env = {"PYTHONPATH": str(ROOT), **environment}
    env["PATH"] = f".:node_modules/.bin::{os.environ['PATH']}"
    argv = [sys.executable, "-P", "-m", "bot", *arguments]
    process = await asyncio.create_subprocess_exec(*argv, cwd=at, env=env, stdout=-1, stderr=-1)
    async with asyncio.timeout(SECONDS):
        out, err = await process.communicate()
    return Ran(process.returncode or 0, out.decode(), err.decode())


@pytest.mark.parametrize("inside", ["", "sub"])
async def test_the_key_goes_nowhere_because_of_a_file_in_the_folder(tmp_path: Path, inside: str) -> None:
    folder = repository(tmp_path / "evil", **{"sub/b.txt": "b\n"})
    (folder / ".env").write_text("ANTHROPIC_BASE_URL=nonsense\nFORGEHAND_MODEL=nonsense\n")
    environment = {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-ant-x", "FORGEHAND_DATA_DIR": str(tmp_path / "data")}
    for where in (folder, folder / inside):
        ran = await installed(environment, "execute", "", "--path", str(where), at=folder)
        assert "The prompt is empty" in ran.err and "is not read, because it is in the folder" in ran.err, ran.err
    named = await installed(environment, "execute", "x", "--config", ".env", at=folder)
    assert "ANTHROPIC_BASE_URL" in named.err, "who names the file is believed"
    beside = tmp_path / "mine"
    beside.mkdir()
    (folder / ".env").rename(beside / ".env")
    ran = await installed(environment, "execute", "x", "--path", str(folder), at=beside)
    assert "ANTHROPIC_BASE_URL" in ran.err, "one's own working directory counts as ever"


PROGRAMS = ("git", "find", "rm", "du", "tar", "bwrap", "node", "claude", "python3", "sh", "env")


def programs(folder: Path, canary: Path) -> None:
    """As a PATH with relative entries would find them."""
    for where in (folder, folder / "node_modules/.bin"):
        where.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            (where / name).write_text(f"#!/bin/sh\necho {name} >> '{canary}'\nexit 1\n")
            (where / name).chmod(0o755)


@pytest.mark.parametrize("options", [["--no-isolation"], []])
async def test_execute_runs_no_program_of_the_folder(tmp_path: Path, options: list[str]) -> None:
    """The provider answers nothing, so the agent gets nowhere; what is asked is what runs before and after it."""
    folder = repository(tmp_path / "evil")
    programs(folder, tmp_path / "canary")
    with short_folder() as data:
        environment = {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-ant-x", "FORGEHAND_DATA_DIR": str(data)}
        environment["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:9"
        ran = await installed(environment, "execute", "x", "--timeout", "1s", *options, at=folder)
    assert "Working" in ran.err, ran.err
    assert not (tmp_path / "canary").exists()


async def test_the_demo_runs_no_module_of_the_folder(tmp_path: Path) -> None:
    folder = repository(tmp_path / "evil", **{".gitattributes": "* filter=own\n"})
    for name in ("core.fsmonitor", "filter.own.clean", "core.sshCommand", "credential.helper", "alias.init"):
        git(folder, "config", name, f"!touch {tmp_path}/canary")
    for name in ("json", "asyncio", "bot"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w')\n")
    programs(folder, tmp_path / "canary")
    (folder / ".env").write_text(f"FORGEHAND_DATA_DIR={folder}\n")
    environment = {"HOME": str(tmp_path)}
    ran = await installed(environment, "demo", "--json", "--scenario", "ask", at=folder)
    assert ran.code == 0, ran.text
    assert not (tmp_path / "canary").exists()
    assert {path.name for path in folder.iterdir()} == {
        *(".git", "a.txt", ".gitattributes"),
        *(".env", "json.py", "asyncio.py", "bot.py", "node_modules"),
        *PROGRAMS,
    }


@pytest.mark.parametrize("inside", ["", "/.git", "/missing"])
async def test_a_folders_name_says_nothing_to_the_terminal(tmp_path: Path, inside: str) -> None:
    folder = repository(tmp_path / os.fsdecode(b"evil\x1b]0;owned\x07\xff"))
    git(folder, "config", "core.worktree", "../..")
    environment = {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-ant-x", "FORGEHAND_DATA_DIR": str(tmp_path / "data")}
    ran = await installed(environment, "execute", "x", "--path", f"{folder}{inside}", at=tmp_path)
    assert ran.code == 1 and "evil?]0;owned??" in ran.err and "Traceback" not in ran.err
    assert "\x1b" not in ran.text and "\x07" not in ran.text
