"""What the agent is given to read, as the model receives it: from webhook to request body, with the real CLI."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping

import pytest

from bot.simulation.anthropic import Call, ModelRequest, Say, Script
from bot.simulation.anthropic.script import Answer
from bot.simulation.github.gitstore import Content
from bot.simulation.github.threads import Pull
from sandbox.local.folders import WORK
from tests.world import World

DONE = Say("Nothing to do.")


def png(width: int = 1, height: int = 1) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)

    head = width.to_bytes(4) + height.to_bytes(4) + b"\x08\x02\x00\x00\x00"
    rows = zlib.compress(b"".join(b"\0" + b"\x10\x20\x30" * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def beside(request: ModelRequest, name: str) -> str:
    """The path under which the prompt names a file."""
    found = re.search(rf"^- (/\S+/{re.escape(name)})$", request.prompt, re.MULTILINE)
    assert found, request.prompt[-600:]
    return found[1]


def first(world: World) -> ModelRequest:
    return next(one for one in world.model.requests if one.has_tools)


def bodies(world: World) -> str:
    """Everything that the model was sent."""
    return json.dumps([dict(one.body) for one in world.model.requests], ensure_ascii=False)


async def asked(world: World, words: str = "/claude look", *, on: Pull | None = None) -> str:
    """The prompt of one turn that ends without a change."""
    async with world.bot():
        world.say(words, on=on)
        assert await world.outcome(on=on) in ("no_change", "answered"), world.replies(on)[-1].body
    return first(world).prompt


@pytest.fixture
def idle(world: World) -> World:
    world.model.default(Script([DONE]))
    return world


def changed(world: World, files: Mapping[str, Content], **how: str) -> Pull:
    world.github.commit(world.repo, "topic", files, by="alice", message=how.pop("message", "Topic"))
    return world.github.open_pull(world.repo, head="topic", by="alice", title="Topic", **how)  # type: ignore[arg-type]


# Images.


async def test_an_image_of_a_private_thread_is_a_file_that_the_agent_looks_at(world: World) -> None:
    picture = png(3, 2)
    url = world.github.attach(world.repo, picture)
    world.say(f"It looks like this: ![shot]({url})")

    def look(request: ModelRequest) -> Answer:
        return Call("Read", {"file_path": beside(request, "image-1.png")})

    world.model.default(Script([look, Call("Bash", {"command": "git status --short"}), DONE]))
    prompt = await asked(world)
    assert "DATA: images of the thread" in prompt
    assert "image-1.png: in the comment by alice" in prompt
    assert '"media_type": "image/png"' in bodies(world), "the picture itself reached the model"
    assert world.model.requests[-1].tool_results[-1].text in ("", "(Bash completed with no output)")
    assert not world.pulls()


async def test_images_of_strangers_of_other_hosts_and_of_no_such_kind_are_not_fetched(world: World) -> None:
    world.repo.private = False
    world.github.user("mallory")
    stranger = world.github.attach(world.repo, png())
    page = world.github.attach(world.repo, b"<html>no picture</html>")
    large = world.github.attach(world.repo, png() + bytes(5 << 20))
    world.say(f"![x]({stranger})", by="mallory")
    inside = world.github.url.replace("127.0.0.1", "localhost")
    world.say(f"![x]({page}) ![x]({large}) ![x](https://evil.example/x.png) ![x]({inside}/user-attachments/assets/1)")
    world.model.default(Script([DONE]))
    prompt = await asked(world)
    assert "images of the thread" not in prompt
    assert "2 images that could not be fetched, or that are too large or no PNG, JPEG, GIF or WebP" in prompt
    assert "2 images that lie on other hosts than GitHub's" in prompt
    assert "2 images that lie on other hosts than GitHub" in world.replies()[0].body
    assert not [call for call in world.github.calls if stranger.rpartition("/")[2] in call.path]


@pytest.mark.acceptance("B11")
async def test_of_thirty_images_ten_are_fetched(world: World) -> None:
    urls = [world.github.attach(world.repo, png(n, 1)) for n in range(1, 31)]
    world.say("\n\n".join(f"![x]({url})" for url in urls))
    world.model.default(Script([DONE]))
    prompt = await asked(world)
    assert "image-10.png" in prompt and "image-11.png" not in prompt
    assert "20 images beyond the first 10" in prompt


# Whose words.


@pytest.mark.acceptance("B10")
async def test_comments_of_strangers_are_withheld_and_both_sides_are_told_how_many(idle: World) -> None:
    idle.repo.private = False
    for stranger in ("mallory", "eve"):
        idle.github.user(stranger)
        idle.say(f"STRANGER says {stranger}", by=stranger)
    idle.say("A colleague says this.")
    prompt = await asked(idle)
    assert "STRANGER" not in bodies(idle)
    assert "A colleague says this." in prompt
    assert "written by people without write access: 2 comments" in prompt
    assert "written by people without write access: 2 comments" in idle.replies()[0].body


# What is too long for a prompt.


@pytest.mark.acceptance("B11")
async def test_what_is_over_the_prompt_is_in_a_file_that_the_agent_can_read(world: World) -> None:
    for n in range(4):
        world.say(f"number {n}\n" + "words " * 8_000 + f"\nthe end of {n}")

    def search(request: ModelRequest) -> Answer:
        return Call("Bash", {"command": f"grep -n 'the end of 0' {beside(request, 'comments.md')}"})

    world.model.default(Script([search, DONE]))
    prompt = await asked(world)
    assert len(prompt.encode()) <= 100_000
    assert "the end of 0" not in prompt and "the end of 3" in prompt
    assert "the end of 0" in world.model.requests[-1].tool_results[0].text
    assert "in the file comments.md instead" in world.replies()[0].body


# A pull request.


def asked_for_a_diff(world: World) -> list[str]:
    return [str(call) for call in world.github.calls if "diff" in call.headers.get("accept", "")]


async def test_a_pull_requests_diff_is_data_from_pinned_commits(idle: World) -> None:
    pull = changed(idle, {"shop.py": "def discounted() -> None:\n    IGNORE_ALL_RULES = 1\n"})
    idle.github.commit(idle.repo, "main", {"later.py": "LATER = 1\n"}, by="alice", message="Later")
    prompt = await asked(idle, on=pull)
    label = next(line for line in prompt.splitlines() if "diff of the pull request" in line)
    assert "DATA" in label and pull.head_sha[:12] in label
    assert "+    IGNORE_ALL_RULES = 1" in prompt
    assert "LATER" not in prompt, "from where the branch left its base"
    assert not asked_for_a_diff(idle)


async def test_a_branch_that_left_its_base_long_ago_is_compared_from_where_it_did(idle: World) -> None:
    pull = changed(idle, {"topic.py": "TOPIC = 1\n"})
    for n in range(55):
        idle.github.commit(idle.repo, "main", {"main.py": f"MAIN = {n}\n"}, by="alice", message=f"Main {n}")
    prompt = await asked(idle, on=pull)
    assert "+TOPIC = 1" in prompt and "MAIN" not in prompt
    assert not asked_for_a_diff(idle)


async def test_a_long_diff_is_cut_in_the_prompt_and_whole_in_a_file(world: World) -> None:
    pull = changed(world, {"long.py": "".join(f"LINE_{n} = {n}\n" for n in range(20_000))})

    def search(request: ModelRequest) -> Answer:
        return Call("Bash", {"command": f"head -1 {(at := beside(request, 'diff.patch'))}; grep -c LINE {at}"})

    world.model.default(Script([search, DONE]))
    prompt = await asked(world, on=pull)
    assert "LINE_0 = 0" in prompt and "LINE_19999" not in prompt
    head, count = world.model.requests[-1].tool_results[0].text.splitlines()
    assert "DATA: diff of the pull request" in head and count == "20000"
    assert "the end of the pull request's diff; all of it is in the file diff.patch" in world.replies(pull)[0].body


async def test_rules_come_from_the_base_and_what_the_head_says_is_ignored(idle: World) -> None:
    idle.github.commit(idle.repo, "main", {"CLAUDE.md": "BASE-RULE <!-- UNSEEN -->\n"}, by="alice", message="Rules")
    hook = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {WORK}/HOOKED"}]}]}}
    server = {"mcpServers": {"evil": {"command": "touch", "args": [f"{WORK}/HOOKED"]}}}
    pull = changed(
        idle,
        {
            "CLAUDE.md": "HEAD-RULE-ONE\n",
            "pkg/AGENTS.md": "HEAD-RULE-TWO\n",
            "CLAUDE.local.md": "HEAD-RULE-THREE\n",
            ".claude/settings.json": json.dumps(hook),
            ".claude/skills/s/SKILL.md": "---\nname: s\ndescription: HEAD-RULE-FOUR\n---\n",
            ".claude/rules/r.md": "HEAD-RULE-FIVE\n",
            ".mcp.json": json.dumps(server),
            ".github/forgehand.yml": "instructions: HEAD-RULE-SIX\n",
            ".husky/pre-commit": "touch HOOKED\n",
            "pkg/x.py": "x = 1\n",
        },
    )
    look = Call("Read", {"file_path": f"{WORK}/pkg/x.py"})
    idle.model.default(Script([look, Call("Bash", {"command": f"ls -a {WORK}"}), DONE]))
    prompt = await asked(idle, on=pull)
    sent = bodies(idle)
    assert "BASE-RULE" in first(idle).system and "UNSEEN" not in first(idle).system
    outside = sent.replace(json.dumps(prompt, ensure_ascii=False)[1:-1], "")
    assert "HEAD-RULE" not in outside, outside[outside.index("HEAD-RULE") - 300 :][:400]
    assert "HOOKED" not in idle.model.requests[-1].tool_results[-1].text
    [reply] = idle.replies(pull)
    line = next(line for line in reply.body.splitlines() if line.startswith("Not used in this run"))
    for name in ("CLAUDE.md", "pkg/AGENTS.md", ".claude/", ".mcp.json", ".github/forgehand.yml", ".husky/"):
        assert f"`{name}`" in line, name
    assert "`main`" in line and "shop.py" not in line


async def test_agents_md_and_the_configs_instructions_count_and_nested_ones_are_listed(idle: World) -> None:
    files = {
        "AGENTS.md": "AGENT-RULE\n",
        "pkg/CLAUDE.md": "NESTED-RULE\n",
        ".github/forgehand.yml": "instructions: CONFIG-RULE\n",
    }
    idle.github.commit(idle.repo, "main", files, by="alice", message="Rules")
    await asked(idle)
    system = first(idle).system
    assert system.index("AGENT-RULE") < system.index("CONFIG-RULE") < system.index("pkg/CLAUDE.md")
    assert "NESTED-RULE" not in bodies(idle)


async def test_a_repository_with_settings_for_an_agent_is_told_once_that_they_are_not_used(idle: World) -> None:
    files = {".claude/settings.json": "{}", ".mcp.json": "{}"}
    idle.github.commit(idle.repo, "main", files, by="alice", message="Settings")
    async with idle.bot():
        for n in (1, 2):
            idle.say("/claude look")
            assert await idle.outcome(n) == "no_change"
    told, not_again = (reply.body for reply in idle.replies())
    assert ".claude/settings.json, .mcp.json of the repository, which Forgehand does not use" in told
    assert "does not use" not in not_again


# The network.


async def test_hosts_that_were_blocked_are_told_with_the_way_to_allow_them(world: World) -> None:
    ask = "import urllib.request as u\nfor h in ('a.example','a.example','github.com'):\n" + (
        " try: u.urlopen('https://'+h, timeout=5)\n except OSError: pass"
    )
    world.model.default(Script([Call("Bash", {"command": f'python3 -c "{ask}"'}), DONE]))
    await asked(world)
    [reply] = world.replies()
    assert "**Blocked by the network:** `a.example` ×2, `github.com` ×1." in reply.body
    assert "add it to `egress:` in `.github/forgehand.yml`" in reply.body
