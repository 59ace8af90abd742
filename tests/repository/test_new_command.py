"""The guide "Add a command to comments": its patch makes a command that works, is listed, and comes off again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import guide

WALK = """
import asyncio, json, pathlib, sys
from tests.world import World

async def walk(folder):
    async with World.running(folder) as world, world.bot():
        for words in ("ping", "help", "pign"):
            before = len(world.replies())
            world.say(f"/claude {words}")
            await world.github.changed(lambda: len(world.replies()) > before, 30)
        return [reply.body for reply in world.replies()], len(world.model.requests)

print(json.dumps(asyncio.run(walk(pathlib.Path(sys.argv[1])))))
"""
MOST_FILES = 5


@pytest.mark.timeout(240)
def test_a_command_by_the_guide_works_in_five_files(tmp_path: Path) -> None:
    with guide.followed("command.patch", tmp_path) as copy:
        (tmp_path / "world").mkdir()
        printed = copy.python("-c", WALK, str(tmp_path / "world"))
        [answer, listed, guess], asked = json.loads(printed.splitlines()[-1])
        assert answer.endswith("I am here.") and asked == 0
        assert "| `/claude ping` | shows that Forgehand" in listed
        assert "I don't know `pign`. Did you mean `/claude ping`?" in guess
        [own] = (name for name in copy.touched if name.startswith("tests/"))
        [docs] = copy.root.glob("tests/**/test_docs.py")
        copy.tests(own, f"{docs.relative_to(copy.root)}::test_the_commands_of_a_comment")
        assert len(copy.touched) <= MOST_FILES, copy.touched


@pytest.mark.parametrize("name", ["command.patch", "kind.patch"])
def test_the_guide_shows_its_patch(name: str) -> None:
    contributing = (guide.ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    [section] = [
        one for one in re.split("^## ", contributing, flags=re.MULTILINE) if f"(../tests/data/guide/{name})" in one
    ]
    patch = (guide.PATCHES / name).read_text(encoding="utf-8")
    shown = re.findall(r"^ *```diff\n(.*?)^ *```$", section, re.MULTILINE | re.DOTALL)
    assert shown
    for block in shown:
        assert "".join(line.removeprefix("   ") for line in block.splitlines(keepends=True)) in patch
