"""A session comes home: its branch into a clone, its transcript to where Claude Code looks for it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script
from tests.foreign_folder import keys
from tests.foreign_folder.planting import Listener, plant
from tests.world import World
from tests.world.command_line import forgehand

WRITE = Call("Bash", {"command": "echo new > new.txt", "description": "Write a file"})


async def git(folder: Path, *argv: str) -> str:
    who = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), **who}
    process = await asyncio.create_subprocess_exec(
        "git", *argv, cwd=folder, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


async def test_branch_and_transcript_come_home_and_own_work_stays(world: World, tmp_path: Path) -> None:
    world.model.default(Script([WRITE, Say("Written.")]))
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
    session = str(world.states()[0]["session"])
    home, clone = tmp_path / "home", tmp_path / "clone"
    home.mkdir()
    await git(tmp_path, "clone", "--quiet", str(world.repo.path), str(clone))
    before = await git(clone, "rev-parse", "HEAD")
    environment = {**world.environment, "HOME": str(home)}
    ran = await forgehand(environment, "sessions", "pull", session, "--path", str(clone), "--json")
    assert ran.code == 0, ran.text
    branch = ran.json["branch"]
    assert await git(clone, "show", f"{branch}:new.txt") == "new\n"
    assert await git(clone, "rev-parse", "HEAD") == before and not await git(clone, "status", "--porcelain")
    assert "token" not in await git(clone, "config", "--list", "--local")
    [transcript] = (home / ".claude/projects").glob("*/*.jsonl")
    assert ran.json["resume"] == f"claude --resume {transcript.stem}"
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    assert {line["cwd"] for line in lines if "cwd" in line} == {str(clone)}
    assert transcript.stat().st_mode & 0o077 == 0
    again = await forgehand(environment, "sessions", "pull", session, "--path", str(clone))
    assert again.code == 0 and f"git switch {branch}" in again.out
    await git(clone, "switch", "--quiet", branch)
    await git(clone, "commit", "--quiet", "--allow-empty", "-m", "mine")
    mine = await git(clone, "rev-parse", "HEAD")
    await git(clone, "switch", "--quiet", "main")
    world.github.commit(world.repo, branch, {"more.txt": "more"})
    refused = await forgehand(environment, "sessions", "pull", session, "--path", str(clone))
    assert refused.code == 1 and "has other work" in refused.err
    assert await git(clone, "rev-parse", branch) == mine


@pytest.mark.review("security-3")
@pytest.mark.parametrize("where", ["clone", "linked worktree"])
async def test_no_setting_of_the_clone_counts(world: World, tmp_path: Path, where: str) -> None:
    """Everything at once that git's config can do: no program runs, and the token goes to GitHub alone."""
    world.model.default(Script([WRITE, Say("Written.")]))
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
    async with Listener.running() as listener:
        planted = plant(tmp_path, keys.ROWS, net=listener.address, remote=f"{world.github.url}/")
        config = planted.folder / ".git/config"
        await git(
            tmp_path, "config", "--file", str(config), "remote.origin.url", "https://github.com/octo-org/shop.git"
        )
        folder = planted.folder
        if where == "linked worktree":
            folder = tmp_path / "linked"
            plain = [part for name in ("core.hooksPath", "core.fsmonitor") for part in ("-c", f"{name}=/dev/null")]
            off = [part for name in ("clean", "smudge", "process") for part in ("-c", f"filter.own.{name}=")]
            await git(planted.folder, *plain, *off, "worktree", "add", "--no-checkout", "--detach", str(folder))
            for trace in planted.traces.iterdir():
                trace.unlink()
        before = planted.state()
        session = str(world.states()[0]["session"])
        environment = {**world.environment, "HOME": str(tmp_path)}
        ran = await forgehand(environment, "sessions", "pull", session, "--path", str(folder), "--json")
        assert ran.code == 0, ran.text
        assert (planted.found(), listener.heard) == ([], [])
        assert planted.state() == before
    at = (planted.folder / f".git/refs/heads/{ran.json['branch']}").read_text().strip()
    assert at == world.repo.branch_sha(ran.json["branch"])


@pytest.mark.review("security-3")
async def test_what_the_clone_has_is_not_sent_again_and_what_is_checked_out_stays(world: World, tmp_path: Path) -> None:
    world.github.commit(world.repo, "main", {"large.txt": "".join(str(n * n) for n in range(40_000))})
    for name, depth in (("clone", []), ("shallow", ["--depth", "1"])):
        await git(tmp_path, "clone", "--quiet", *depth, f"file://{world.repo.path}", str(tmp_path / name))
    world.model.default(Script([WRITE, Say("Written.")]))
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
    session = str(world.states()[0]["session"])
    for name in ("clone", "shallow"):
        clone = tmp_path / name
        environment = {**world.environment, "HOME": str(tmp_path)}
        before = set((clone / ".git/objects/pack").iterdir())
        ran = await forgehand(environment, "sessions", "pull", session, "--path", str(clone), "--json")
        assert ran.code == 0, ran.text
        branch = ran.json["branch"]
        [pack] = [one for one in set((clone / ".git/objects/pack").iterdir()) - before if one.suffix == ".pack"]
        assert pack.stat().st_size < 2_000, "only what is new"
        await git(clone, "fsck", "--strict")
        await git(clone, "worktree", "add", "--quiet", str(tmp_path / f"{name}-linked"), branch)
        await git(tmp_path / f"{name}-linked", "reset", "--quiet", "--hard", "HEAD~1")
        refused = await forgehand(environment, "sessions", "pull", session, "--path", str(clone))
        assert refused.code == 1 and "or is checked out" in refused.err


async def test_not_a_clone_is_said(world: World, tmp_path: Path) -> None:
    world.model.default(Script([WRITE, Say("Written.")]))
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
    empty = tmp_path / "empty"
    empty.mkdir()
    session = str(world.states()[0]["session"])
    ran = await forgehand(world.environment, "sessions", "pull", session, "--path", str(empty))
    assert ran.code == 1 and "is not a clone" in ran.err
    other = tmp_path / "other"
    await git(tmp_path, "init", "--quiet", "--initial-branch=main", str(other))
    await git(other, "commit", "--quiet", "--allow-empty", "-m", "a project of its own")
    await git(other, "remote", "add", "origin", "https://github.com/octo-org/workshop.git")
    ran = await forgehand(
        {**world.environment, "HOME": str(tmp_path)}, "sessions", "pull", session, "--path", str(other)
    )
    assert ran.code == 1 and "is not a clone of octo-org/shop" in ran.err
    assert (await git(other, "branch", "--list")).split() == ["*", "main"] and not (tmp_path / ".claude").exists()
    await git(other, "remote", "set-url", "origin", "git@github.com:Octo-Org/Shop.git")
    named = await forgehand(
        {**world.environment, "HOME": str(tmp_path)}, "sessions", "pull", session, "--path", str(other)
    )
    assert named.code == 0, "a clone that has not fetched for long"
    unknown = await forgehand(world.environment, "sessions", "pull", "zzzzzzzz", "--path", str(empty))
    assert unknown.code == 1 and "no session" in unknown.err


async def test_shells_can_complete(world: World) -> None:
    ran = await forgehand(
        {**world.environment, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}, "--show-completion", "bash"
    )
    assert ran.code == 0 and "COMPREPLY" in ran.out
