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


def test_the_guide_shows_its_patch() -> None:
    contributing = (guide.ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    patch = (guide.PATCHES / "command.patch").read_text(encoding="utf-8")
    assert "(../tests/data/guide/command.patch)" in contributing
    [shown] = re.findall(r"^ *```diff\n(.*?)^ *```$", contributing, re.MULTILINE | re.DOTALL)
    assert "".join(line.removeprefix("   ") for line in shown.splitlines(keepends=True)) in patch
