"""The Changes page of a session: what a turn has changed, each hunk with the call that wrote it, and downloads of it."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github import Fault
from tests.world import World
from tests.world.visitor import hear, visitor

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
PRICE = "def price():\n    return 5\n"
WRITE = Call("Write", {"file_path": "new/price.py", "content": PRICE}, "I write it.")


def shell(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "Run it"})


async def git(folder: Path, *argv: str, stdin: bytes = b"") -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        "git",
        *argv,
        cwd=folder,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate(stdin)
    assert process.returncode == 0, out.decode()
    return out.decode()


async def test_a_hunk_names_the_call_that_wrote_it_and_the_patch_applies(world: World, tmp_path: Path) -> None:
    world.model.default(Script([WRITE, shell("printf 'one\\ntwo\\n' > by-command.txt"), Say("Written.")]))
    async with world.bot() as service, visitor(world, service.url, "alice") as alice:
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        session = f"/sessions/{world.states()[0]['session']}"
        page = await alice.get(f"{session}/changes")
        assert page.status_code == 200
        assert '<span class="add">+def price():' in page.text and "2 files" in page.text
        transcript = (await alice.get(session)).text
        [writer] = re.findall(rf'<a href="{session}#(e\d+-\d+)">Write at ', page.text)
        assert f'id="{writer}"' in transcript
        assert "no editing tool reported these lines" in page.text, "a command wrote the other file"
        assert f'{session}/changes"' in transcript
        patch = await alice.get(f"{session}/patch/1")
        assert "attachment" in patch.headers["content-disposition"]
        await git(tmp_path, "clone", "--quiet", str(world.repo.path), "clone")
        await git(tmp_path / "clone", "apply", "--index", stdin=patch.content)
        assert (tmp_path / "clone/new/price.py").read_text() == PRICE
        assert (await alice.get(f"{session}/bundle/1")).status_code == 404, "it was pushed, so no bundle is kept"
        assert (await alice.get(f"{session}/changes?turn=7")).status_code == 404
