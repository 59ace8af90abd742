"""`why` tells what was meant for us and not acted upon, also in a thread with much talk and a long turn."""

from __future__ import annotations

import pytest

from bot import commands
from tests.unit.parsed import parse
from tests.world import World


@pytest.mark.parametrize(
    ("body", "is_named"),
    [
        ("> /claude fix it", True),
        ("please /claude fix it", True),
        ("use /CLAUDE fix it", True),
        ("／claude fix it", True),
        ("/cla\u200bude fix it", True),
        ("`/claude`", True),
        ("as @forgehand said", True),
        ("/claudette, see docs/claude and src/claude.py", False),
        ("hello", False),
        ("bob@forgehand.example, @forgehand-team", False),
    ],
)
def test_who_means_us_is_known_also_where_it_is_no_command(body: str, *, is_named: bool) -> None:
    assert commands.named(body, app_slug="forgehand") is is_named
    assert parse(body, app_slug="forgehand") is None


async def test_neither_talk_nor_our_own_edits_hide_what_was_not_acted_upon(world: World) -> None:
    async with world.bot():
        world.say("> /claude fix it")
        written = world.say("Let me think.")
        world.github.edit_comment(written, "/claude fix it", by="alice")
        world.say("/claude status")
        ours = await world.github.changed(lambda: next(iter(world.replies()), None), 20)
        for n in range(40):
            world.github.edit_comment(ours, f"{ours.body[:40]} {n}")
        for n in range(6):
            edited = world.say(f"Talk, number {n}.")
            world.github.edit_comment(edited, f"Talk, number {n}!", by="alice")
        await world.github.idle()
        world.say("/claude why")
        answer = await world.github.changed(lambda: world.replies()[1:], 20)
    [words] = [one.body for one in answer]
    assert "has to start a line, outside quotes" in words and "write `/claude` in a new one" in words
    assert words.count("\n- ") == 2, words
