"""`forgehand deliveries` and `forgehand config`: what became of a webhook, once more, and what a config file means."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bot import repo_config
from bot.errors import BadRepoConfig
from bot.repo_config.values import KEYS
from bot.simulation.anthropic import Say, Script
from tests.world import World
from tests.world.command_line import forgehand

ROOT = Path(__file__).parents[2]


async def test_a_delivery_is_listed_and_explained_in_the_words_of_why(world: World) -> None:
    world.github.user("eve")
    world.repo.grant("eve", "read")
    async with world.bot():
        world.say("/claude fix this", by="eve")
        await world.github.changed(lambda: bool(world.replies()), 20)
        world.say("/claude why")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
        listed = (await forgehand(world.environment, "deliveries", "list", "--json")).json
        [row] = [one for one in listed if one["sender"] == "eve"]
        explained = await forgehand(world.environment, "deliveries", "explain", row["guid"])
    words = "has read access to the repository; it takes write access"
    assert words in row["reason"] and words in explained.out and words in world.replies()[1].body
    missing = await forgehand(world.environment, "deliveries", "explain", "no-such-guid")
    assert missing.code == 1 and "no delivery no-such-guid" in missing.err


async def test_a_delivery_from_a_file_is_taken_up_once_more_and_starts_nothing_twice(world: World) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    world.app.webhook_url, world.app.hook_active = None, False
    comment = world.say("/claude look around")
    lost = world.github.comment_webhook(comment)
    file = world.root / "delivery.json"
    request = {"headers": dict(lost.headers), "payload": json.loads(lost.body)}
    file.write_text(json.dumps({"guid": lost.guid, "event": "issue_comment", "request": request}), encoding="utf-8")
    async with world.bot():
        for _ in range(2):
            ran = await forgehand(world.environment, "deliveries", "replay", str(file), "--json")
            assert ran.json["replayed"], ran.text
        assert await world.outcome(timeout=40) == "no_change"
        kept = await forgehand(world.environment, "deliveries", "replay", lost.guid)
        assert kept.code == 1 and "kept only where something failed" in kept.err
        bare = world.root / "bare.json"
        bare.write_text(lost.body.decode(), encoding="utf-8")
        nameless = await forgehand(world.environment, "deliveries", "replay", str(bare))
        assert nameless.code == 1 and "--event issue_comment" in nameless.err
    assert len(world.states()) == 1


async def test_a_delivery_in_a_file_is_explained_before_it_is_taken_up(world: World, tmp_path: Path) -> None:
    environment = {"PATH": "", "HOME": str(tmp_path), "FORGEHAND_DATA_DIR": str(tmp_path / "none")}

    async def explained(words: str, *arguments: str, action: str = "created", whole: bool = False) -> str:
        hook = world.github.comment_webhook(world.say(words))
        payload = {**json.loads(hook.body), "action": action}
        file = tmp_path / "delivery.json"
        request = {"headers": dict(hook.headers), "payload": payload}
        file.write_text(json.dumps({"guid": hook.guid, "request": request} if whole else payload), encoding="utf-8")
        ran = await forgehand(
            world.environment if whole else environment, "deliveries", "explain", str(file), *arguments
        )
        return ran.text

    event = ("--event", "issue_comment")
    told = await explained("/claude fix ci", *event)
    assert f"the command `fix ci` by alice on {world.repo.full_name}#{world.issue.number}" in told
    assert "no `/claude` in it" in await explained("thanks!", *event)
    assert "It would be refused" in await explained("/claude --budget lots fix it", *event)
    assert "It would be ignored: Forgehand does not act on" in await explained(
        "/claude fix it", *event, action="pinned"
    )
    assert "--event issue_comment" in await explained("/claude fix it")
    assert '"explained": "It is the command `run`' in await explained("/claude fix it", "--json", whole=True)
    world.model.default(Script([Say("Done.")]))
    async with world.bot():
        world.say("/claude ask what is it?")
        await world.outcome()
        known = next(one for one in world.app.deliveries if b"what is it?" in one.body)
        file = tmp_path / "known.json"
        request = {"headers": {"X-GitHub-Event": known.event}, "payload": json.loads(known.body)}
        file.write_text(json.dumps({"guid": known.guid, "request": request}), encoding="utf-8")
        ran = await forgehand(world.environment, "deliveries", "explain", str(file))
    assert "acted" in ran.out and f"session: {world.states()[0]['session']}" in ran.out
    nothing = tmp_path / "nothing.json"
    nothing.write_text("[1]", encoding="utf-8")
    ran = await forgehand(environment, "deliveries", "explain", str(nothing), *event)
    assert ran.code == 1 and "neither a payload" in ran.err


async def test_init_prints_a_config_for_a_folder_and_runs_nothing(tmp_path: Path) -> None:
    place = tmp_path / "shop"
    (place / "node_modules/a").mkdir(parents=True)
    (place / "Makefile").write_text(f"test:\n\ttouch {tmp_path}/ran\n")
    (place / "node_modules/a/package.json").write_text('{"scripts": {"test": "x"}}')
    (place / "package.json").symlink_to("/etc/passwd")
    os.mkfifo(place / "pyproject.toml")
    environment = {"PATH": "", "HOME": str(tmp_path)}
    shown = await forgehand(environment, "config", "init", "--path", str(place))
    assert shown.code == 0, shown
    assert repo_config.parse(shown.out) == repo_config.RepoConfig(checks=("make test",))
    assert "has tried none of them" in shown.out and not (tmp_path / "ran").exists()
    missing = await forgehand(environment, "config", "init", "--path", str(tmp_path / "nowhere"))
    assert missing.code == 1 and "cannot be read" in missing.err


async def test_a_config_file_is_explained_or_its_mistakes_are_named_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "forgehand.yml"
    file.write_text("permission: ask\ntools:\n  allowed: [Bash(npm test *)]\n", encoding="utf-8")
    fine = await forgehand({"PATH": "", "HOME": str(tmp_path)}, "config", "check", str(file))
    assert fine.code == 0 and "permission: ask" in fine.out and "tools.allowed: Bash(npm test *)" in fine.out
    file.write_text(
        "checks: all\npaths: {pay/**: {checks: pays, budget: 2}, web/**: {checks: webs}}\n", encoding="utf-8"
    )
    there = await forgehand({"PATH": "", "HOME": str(tmp_path)}, "config", "check", str(file), "--in", "pay/src")
    assert (
        "checks: all, pays (" in there.out
        and "budget: 2.0 (" in there.out
        and "paths: pay/**: checks, budget" in there.out
    )
    file.write_text("permission: maybe\nbudgt: 3\ntools:\n  denied: ['--flag']\n", encoding="utf-8")
    wrong = await forgehand({"PATH": "", "HOME": str(tmp_path)}, "config", "check", str(file))
    assert wrong.code == 1
    for words in ("line 1: `permission` must be one of", "line 2: there is no key `budgt`", "line 4: `tools.denied`"):
        assert words in wrong.err
    gone = await forgehand({"PATH": "", "HOME": str(tmp_path)}, "config", "check", str(tmp_path / "none.yml"))
    assert gone.code == 1 and "cannot be read" in gone.err


def test_the_published_schema_is_made_from_the_description_of_the_keys() -> None:
    published = json.loads((ROOT / "forgehand.schema.json").read_text(encoding="utf-8"))
    assert published == repo_config.schema(), "forgehand config schema > forgehand.schema.json"


def test_the_schema_knows_the_very_keys_that_are_read() -> None:
    known = repo_config.schema()["properties"]
    named = {
        f"{name}.{inner}" if inner else name for name, key in known.items() for inner in (key.get("properties", [""]))
    }
    assert named == set(KEYS)


@pytest.mark.parametrize("text", ["-x", "Bash(", "a b", "Bash(x)y", "--dangerously"])
def test_a_tool_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadRepoConfig, match="must be a list of tools"):
        repo_config.parse(json.dumps({"tools": {"allowed": [text]}}))
