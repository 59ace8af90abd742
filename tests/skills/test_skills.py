"""Skills, agents and commands of a repository, from its base branch to what the real CLI sends to the model."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

from bot.knowhow import KnowHowFile, packing
from bot.simulation.anthropic import Call, ModelRequest, Say, Script
from bot.simulation.anthropic.script import Answer
from bot.simulation.github.gitstore import Content
from sandbox.agents.base import Plugin
from sandbox.local.folders import WORK
from tests.reading.test_reading import bodies, changed, first
from tests.turns.test_claude_cli import Cli, cli
from tests.world import World
from tests.world.e2b import e2b_spine
from tests.world.git_remote import git

__all__ = ["cli"]

HOOK = f"""hooks:
  PreToolUse:
    - matcher: "*"
      hooks:
        - type: command
          command: touch {WORK}/HOOKED-BY-A-SKILL
"""
KNOW_HOW: dict[str, Content] = {
    ".claude/skills/rounding/SKILL.md": (
        f"---\nname: other\ndescription: How totals are rounded here 🧮\nmodel: claude-opus-4-5\nallowed-tools: Bash\n"
        f"context: fork\n{HOOK}---\nROUND-HALF-UP. Run !`touch {WORK}/RUN-ON-READING` first.\n"
    ),
    ".claude/skills/rounding/scripts/round.sh": "#!/bin/sh\necho ROUNDED\n",
    ".claude/skills/rounding/hooks/hooks.json": json.dumps(
        {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {WORK}/HOOKED-BY-A-FILE"}]}]}}
    ),
    ".claude/skills/stray.md": "no skill\n",
    ".claude/agents/checker.md": f"---\nname: checker\ndescription: Checks totals\nmodel: opus\n{HOOK}---\nCheck.\n",
    ".claude/commands/team/deploy.md": "---\ndescription: Deploys\n---\nDeploy to $1 in $2, that is: $ARGUMENTS.\n",
    ".claude/settings.json": "{}",
}


def one_after_another(*calls: Call) -> Script:
    """A skill's text begins a new message, so the answer follows from what the request already holds."""

    def answer(request: ModelRequest) -> Answer:
        done = sum(block.get("type") == "tool_use" for one in request.body["messages"] for block in _blocks(one))
        return calls[done] if done < len(calls) else Say("Nothing to do.")

    return Script([answer])


def _blocks(message: dict[str, object]) -> list[dict[str, object]]:
    return message["content"] if isinstance(message["content"], list) else []


async def test_skills_agents_and_commands_of_the_base_branch_reach_the_agent_and_run_nothing(world: World) -> None:
    world.github.commit(world.repo, "main", KNOW_HOW, by="alice", message="Know-how")
    look = Call("Skill", {"skill": "repository:rounding"})
    run = Call("Bash", {"command": f"ls -a {WORK}"})
    world.model.default(one_after_another(look, run))
    async with world.bot():
        world.say("/claude /team:deploy prod eu")
        assert await world.outcome() == "no_change", world.replies()[-1].body
        world.say("/claude /deploy test us")
        assert await world.outcome(2) == "no_change"
        world.say("/claude /depoly now")
        assert await world.outcome(3) == "failed"
        world.say("/claude help")
        await world.github.changed(
            lambda: "`/claude /team:deploy`, `/claude /rounding`" in world.replies()[-1].body, 30
        )
    asked = first(world)
    assert "Deploy to prod in eu, that is: prod eu." in asked.prompt
    assert "Deploy to test in us" in bodies(world)
    sent = json.dumps(asked.body, ensure_ascii=False)
    assert "repository:rounding" in sent and "How totals are rounded here 🧮" in sent
    assert "repository:checker" in sent and "Checks totals" in sent
    assert "ROUND-HALF-UP. Run `touch" in bodies(world)
    assert {one.body["model"] for one in world.model.requests} == {asked.body["model"]}
    [_, listed] = next(one for one in world.model.requests if len(one.tool_results) == 2).tool_results
    assert "shop.py" in listed.text and "HOOKED" not in listed.text and "RUN-ON-READING" not in listed.text
    told, again, unknown, _ = (reply.body for reply in world.replies())
    assert ".claude/settings.json of the repository, which Forgehand does not use" in told
    for key in ("allowed-tools", "context", "hooks", "model"):
        assert f"`{key}`" in told
    assert ".claude/skills/stray.md: no part of a skill" in told
    assert "does not use" not in again
    assert "Did you mean `/claude /team:deploy`?" in unknown


async def test_a_pull_request_that_changes_skills_is_told_once_that_those_of_its_base_count(world: World) -> None:
    world.github.commit(world.repo, "main", KNOW_HOW, by="alice", message="Know-how")
    broken = world.github.create_repo(
        f"{world.repo.owner.login}/.github", files={**KNOW_HOW, "x": "lost"}, private=True
    )
    lost = git(broken.path, "rev-parse", "main:x")
    (broken.path / "objects" / lost[:2] / lost[2:]).unlink()
    world.github.add_repos(world.installation, broken)
    pull = changed(world, {".claude/commands/team/deploy.md": "HEAD-COMMAND\n", "shop.py": "x = 1\n"})
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        for n in (1, 2):
            world.say("/claude /deploy prod eu", on=pull)
            assert await world.outcome(n, on=pull) == "no_change"
    assert "Deploy to prod in eu" in first(world).prompt
    told, again = (reply.body for reply in world.replies(pull))
    assert "because this pull request changes it: `.claude/`. The version on `main` counts." in told
    assert f"{broken.full_name}, which could not be read" in told, "a repository for all must not hold up each of them"
    assert "Not used in this run" not in again and "what the pull request itself says" not in again


async def test_a_hook_of_a_skill_would_run_but_for_us(cli: Cli) -> None:
    """The control: the program runs the very same files as they are."""
    files = [
        KnowHowFile(path, str(text).replace(WORK, str(cli.work)).encode())
        for path, text in KNOW_HOW.items()
        if path.startswith(".claude/skills/")
    ]
    raw = {one.path.removeprefix(".claude/"): one.data for one in files}
    raw["hooks/hooks.json"] = raw.pop("skills/rounding/hooks/hooks.json")
    raw["skills/rounding/SKILL.md"] = raw["skills/rounding/SKILL.md"].replace(b"context: fork\n", b"")
    raw[".claude-plugin/plugin.json"] = b'{"name": "repository"}'
    packed = packing.pack("repository", files)
    left = []
    for turn, plugin in enumerate((Plugin("repository", raw), Plugin("repository", packed.files)), 1):
        calls = Call("Skill", {"skill": "repository:rounding"}), Call("Bash", {"command": "echo run"})
        cli.model.default(one_after_another(*calls))
        await cli.events(replace(cli.run("Go"), turn=turn, plugins=[plugin], agent_session_id=str(uuid.uuid4())))
        left.append({one.name for one in cli.work.glob("*") if one.name.isupper()})
        for name in left[-1]:
            (cli.work / name).unlink()
    assert left == [{"HOOKED-BY-A-FILE", "HOOKED-BY-A-SKILL"}, set()]


async def test_skills_of_the_account_reach_a_sandbox_of_the_cloud_but_no_public_thread(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        name = f"{world.repo.owner.login}/.github"
        shared = world.github.create_repo(name, files=KNOW_HOW, private=True)
        world.github.add_repos(world.installation, shared)
        look = Call("Bash", {"command": "find / -name round.sh 2>/dev/null | grep -c plugins-; ls -a"})
        world.model.default(one_after_another(Call("Skill", {"skill": "account:rounding"}), look))
        async with world.bot(e2b.clock.now):
            world.say("/claude /account:deploy prod eu")
            assert await world.outcome() == "no_change", world.replies()[0].body
            asked = len(world.model.requests)
            world.repo.private = False
            world.say("/claude /rounding")
            assert await world.outcome(2) == "failed"
        assert "Deploy to prod in eu" in first(world).prompt and "ROUND-HALF-UP" in bodies(world)
        [_, listed] = next(one for one in world.model.requests if len(one.tool_results) == 2).tool_results
        assert listed.text.startswith("1\n") and "HOOKED" not in listed.text and ".claude" not in listed.text
        assert len(world.model.requests) == asked and "has no command `/rounding`" in world.replies()[1].body
