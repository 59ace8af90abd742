"""`init`: commands are found in the repository, tried in a sandbox, and proposed if they passed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from bot import repo_config
from bot.sessions.kinds.init import BRANCH
from bot.simulation.github import Fault
from bot.simulation.github.threads import Pull
from bot.store import sessions
from bot.store.base import Store
from tests.crash.process import Service
from tests.world import World
from tests.world.e2b import e2b_spine

PASSING = """\
import unittest


class Test(unittest.TestCase):
    def test_it(self) -> None:
        self.assertTrue(True)
"""
PYTHON = {
    "README.md": "# Shop\n\n```sh\n$ python3 -m unittest\n$ curl https://example.com | sh\n```\n",
    "pyproject.toml": "[project]\nname = 'shop'\n",
    "tests/__init__.py": "",
    "tests/test_shop.py": PASSING,
}


def bring(world: World, files: Mapping[str, str]) -> None:
    """Give the installation a repository with these files and without a config."""
    world.repo = world.github.create_repo("octo-org/fresh", files=files, private=True)
    world.repo.grant("alice", "write")
    world.github.add_repos(world.installation, world.repo)
    world.issue = world.github.open_issue(world.repo, title="Set it up", body="", by="alice")


@asynccontextmanager
async def place(kind: str, path: Path) -> AsyncIterator[World]:
    if kind == "e2b":
        async with e2b_spine(path) as (world, _):
            yield world
    else:
        async with World.running(path) as world:
            yield world


def proposed(world: World) -> tuple[Pull, str, repo_config.RepoConfig]:
    [pull] = world.pulls()
    text = (world.repo.file(BRANCH, repo_config.PATH) or b"").decode()
    assert world.repo.diff("main", BRANCH).count("diff --git") == 1
    return pull, text, repo_config.parse(text)


@pytest.mark.parametrize("kind", ["local", "e2b"])
async def test_init_proposes_what_passed_without_asking_a_model(kind: str, tmp_path: Path) -> None:
    async with place(kind, tmp_path) as world:
        bring(world, PYTHON)
        async with world.bot():
            world.say("/claude init")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        pull, text, config = proposed(world)
        [comment] = world.replies()
        assert not world.model.requests
    test = "python3 -m unittest discover -s tests -t ."
    assert config == repo_config.RepoConfig(checks=(test,))
    assert f"✓ `{test}` exit 0" in (pull.body or "") and "in a fresh sandbox" in (pull.body or "")
    assert "cost no model money" in (pull.body or "") and "cost no model money" in comment.body
    assert f"✓ `{test}` exit 0" in comment.body and f"#{pull.number}" in comment.body
    assert "curl" not in text + (pull.body or "")
    assert not pull.draft and pull.title == "Add a config for Forgehand"


async def test_init_names_what_failed_with_the_end_of_its_output(world: World) -> None:
    bring(world, {**PYTHON, "Makefile": "lint:\n\t@echo the roof leaks; exit 3\ntest:\n\tpython3 -m unittest\n"})
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    pull, text, config = proposed(world)
    assert config.checks == ("make test",)
    assert "✗ `make lint` exit 2" in (pull.body or "") and "the roof leaks" in (pull.body or "")
    assert "make lint" in text and "##     | the roof leaks" in text
    assert "✗ `make lint` exit 2" in world.replies()[0].body and "the roof leaks" not in world.replies()[0].body
    assert "1 command passed and 1 failed" in world.replies()[0].body


async def test_init_names_the_host_of_a_registry_that_is_closed(world: World) -> None:
    package = {"name": "a", "dependencies": {"left": "1.0.0"}}
    left = {"version": "1.0.0", "resolved": "https://registry.npmjs.org/left/-/left-1.0.0.tgz"}
    lock = {"name": "a", "lockfileVersion": 3, "requires": True, "packages": {"": package, "node_modules/left": left}}
    scripts = {"scripts": {"test": "node --test"}}
    bring(world, {"package.json": json.dumps({**package, **scripts}), "package-lock.json": json.dumps(lock)})
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    pull, text, config = proposed(world)
    assert config == repo_config.RepoConfig()
    assert "`npm ci` could not reach `registry.npmjs.org`" in (pull.body or "")
    assert "`npm ci` could not reach `registry.npmjs.org`" in world.replies()[0].body
    assert "`npm test` was not run: it needs `npm ci`, which failed" in (pull.body or "")
    assert "#egress: [registry.npmjs.org]" in text and "##   npm test" in text


async def test_init_counts_no_check_that_runs_no_test(world: World) -> None:
    bring(world, {"tests/__init__.py": "", "tests/test_shop.py": "", "pyproject.toml": "[project]\nname = 'shop'\n"})
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    _, text, config = proposed(world)
    assert config == repo_config.RepoConfig() and "unittest" in text


async def test_init_believes_only_what_passes_without_what_failed(world: World) -> None:
    make = "lint:\n\ttouch made.txt; exit 1\ntest:\n\ttest -e made.txt\n"
    bring(world, {"Makefile": make})
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    assert proposed(world)[2] == repo_config.RepoConfig()


async def test_init_says_what_it_looked_for(world: World) -> None:
    bring(world, {"README.md": "Bare.\n"})
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    pull, text, config = proposed(world)
    assert config == repo_config.RepoConfig()
    for words in (world.replies()[0].body, pull.body or ""):
        assert "It looked for: pyproject.toml" in words
    assert "looked for: pyproject.toml" in text.replace("\n## ", " ")


async def test_init_finds_its_pull_request_and_then_the_config(world: World) -> None:
    bring(world, PYTHON)
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        world.say("/claude init")
        assert await world.outcome(2) == "no_change"
        [pull] = world.pulls()
        assert f"#{pull.number} already proposes a config" in world.replies()[1].body
        world.github.merge(pull, by="alice")
        world.say("/claude init")
        assert await world.outcome(3) == "no_change"
    assert "`main` already has a `.github/forgehand.yml`" in world.replies()[2].body and len(world.pulls()) == 1


async def test_init_leaves_a_config_alone_that_nobody_can_read(world: World) -> None:
    bring(world, {**PYTHON, repo_config.PATH: "nonsense: ["})
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "no_change", world.replies()[0].body
    assert not world.pulls()


async def test_init_names_the_schema_that_the_service_has_for_editors(world: World) -> None:
    bring(world, {"README.md": "Bare.\n"})
    at = "https://forgehand.example.org"
    async with world.bot(FORGEHAND_PUBLIC_URL=at) as service, httpx.AsyncClient() as editor:
        answer = await editor.get(f"{service.url}/forgehand.schema.json")
        world.say("/claude init")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    assert answer.json() == repo_config.schema() and answer.headers["Access-Control-Allow-Origin"] == "*"
    assert proposed(world)[1].startswith(f"# yaml-language-server: $schema={at}/forgehand.schema.json\n")


async def test_init_leaves_a_branch_of_others_alone(world: World) -> None:
    bring(world, {"README.md": "Bare.\n"})
    world.github.commit(world.repo, BRANCH, {"other.txt": "theirs"})
    before = world.repo.branch_sha(BRANCH)
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "refused", world.replies()[0].body
    assert "already exists with something else" in world.replies()[0].body
    assert world.repo.branch_sha(BRANCH) == before and not world.pulls()


async def test_init_survives_a_lost_answer(world: World) -> None:
    bring(world, {"README.md": "Bare.\n"})
    lost = world.github.faults.add(Fault("POST *git-receive-pack", "lose", times=2))
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    assert lost.hits and len(world.pulls()) == 1


SLOW = {"Makefile": "check:\n\techo first\ntest:\n\tsleep 600\n"}


async def test_stop_ends_init_while_a_command_runs(world: World) -> None:
    bring(world, SLOW)
    async with world.bot():
        world.say("/claude init")
        await world.github.changed(lambda: any("✓ `make check`" in one.body for one in world.replies()), 60)
        world.say("/claude stop")
        assert await world.outcome() == "stopped", world.replies()[0].body
    assert not world.pulls() and world.repo.branches().keys() == {"main"}


async def test_init_that_was_killed_opens_one_pull_request(world: World) -> None:
    bring(world, {"Makefile": "check:\n\techo first\ntest:\n\tsleep 2\n"})
    first = await Service.start(world)
    assert first is not None
    world.say("/claude init")
    await world.github.changed(lambda: any("✓ `make check`" in one.body for one in world.replies()), 60)
    await first.kill()
    again = await Service.start(world)
    assert again is not None
    try:
        assert await world.outcome() == "pull_request", world.replies()[0].body
    finally:
        await again.stop()
    assert proposed(world)[2].checks == ("make check", "make test") and len(world.replies()) == 1


async def test_work_after_init_has_its_own_branch(world: World) -> None:
    bring(world, {**PYTHON, "shop.py": "x = 1\n"})
    async with world.bot():
        world.say("/claude init")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        world.say("/claude ask what is this?")
        assert await world.outcome(2) == "answered"
    store = await Store.open_reader(world.database)
    try:
        [row] = await sessions.listing(store)
        session = await sessions.session(store, row.id)
    finally:
        await store.close()
    assert session.branch is None and session.pull_number is None
