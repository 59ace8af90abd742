"""The App is installed, taken away, suspended and given back: rows stay true, runs end, nothing is held in vain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot import repo_config
from bot.handlers.commands.init import BRANCH, STARTER
from bot.models import InstallationId
from bot.simulation.anthropic import Say, Script
from bot.simulation.github import Fault
from bot.simulation.github.threads import Issue
from bot.store import audit, repos, sessions
from bot.store.base import Store
from bot.store.repos import InstallationState
from bot.store.rows import many
from tests.unit.parsed import parse
from tests.webhooks.test_delivery_log import until
from tests.world import World, work_under_way
from tests.world.plain_http import plain_client
from tests.world.work_under_way import WRITE


async def reader(world: World) -> Store:
    return await Store.open_reader(world.database)


async def states(world: World) -> dict[InstallationId, InstallationState]:
    store = await reader(world)
    try:
        return {row.id: row.state for row in await repos.installations(store)}
    finally:
        await store.close()


async def is_state(world: World, state: InstallationState) -> None:
    async def reached() -> bool:
        return (await states(world)).get(InstallationId(world.installation.id)) is state

    await until(reached)


async def test_installations_from_before_our_time_are_found_at_the_start(world: World) -> None:
    async with world.bot():
        await is_state(world, InstallationState.ACTIVE)


async def test_suspended_and_back_is_followed_and_ends_what_runs(world: World) -> None:
    async with world.bot():
        await work_under_way.begun(world)
        world.github.suspend(world.installation)
        await is_state(world, InstallationState.SUSPENDED)

        async def ended() -> bool:
            store = await reader(world)
            try:
                return not await sessions.running(store)
            finally:
                await store.close()

        await until(ended, 30)
        world.github.unsuspend(world.installation)
        assert await world.outcome() == "stopped"
    assert "suspended on this account" in world.replies()[0].body
    assert list((world.root / "data" / "kept").iterdir()), "what was done until then is kept here"


async def test_a_repository_that_is_taken_away_is_forgotten_and_may_come_back(world: World) -> None:
    world.declare_checks()
    world.model.default(Script([WRITE, Say("Done.")]))
    data = world.root / "data"
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        assert list((data / "checks").iterdir())
        assert list((data / "transcripts").iterdir()) and list((data / "repositories").glob("*.git"))
        world.github.remove_repos(world.installation, world.repo)
        await world.github.idle()

        async def removed() -> bool:
            store = await reader(world)
            try:
                return bool(await store.read(lambda db: many(db, "SELECT id FROM repos WHERE removed_at > 0")))
            finally:
                await store.close()

        await until(removed)
    async with world.bot():

        async def forgotten() -> bool:
            store = await reader(world)
            try:  # noted last, when all is gone
                return "repository forgotten" in [one.action for one in await audit.listing(store)]
            finally:
                await store.close()

        await until(forgotten)
    assert not list((data / "checks").iterdir())
    assert not list((data / "transcripts").iterdir()) and not list((data / "repositories").glob("*.git"))
    store = await reader(world)
    assert not await store.read(lambda db: many(db, "SELECT seq FROM events"))
    [listed] = await sessions.listing(store)
    assert listed.cost_usd > 0, "what it cost is still known"
    await store.close()
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        world.github.add_repos(world.installation, world.repo)
        await world.github.idle()
        world.say("/claude ask and now?")
        assert await world.outcome(2) == "answered"


async def test_uninstalled_ends_what_runs_and_keeps_its_work_here(world: World) -> None:
    async with world.bot():
        await work_under_way.begun(world)
        world.github.uninstall(world.installation)
        await is_state(world, InstallationState.DELETED)
        kept = world.root / "data" / "kept"

        async def saved() -> bool:
            return any(kept.glob("*.bundle"))

        await until(saved, 30)
    [bundle] = kept.iterdir()
    assert bundle.read_bytes().startswith(b"# v2 git bundle")


@pytest.fixture
def bare(world: World) -> Issue:
    """An issue of a repository that has no config."""
    world.repo = world.github.create_repo("octo-org/bare", files={"README.md": "Bare.\n"}, private=True)
    world.repo.grant("alice", "write")
    world.github.add_repos(world.installation, world.repo)
    world.issue = world.github.open_issue(world.repo, title="Set it up", body="", by="alice")
    return world.issue


async def test_init_proposes_a_starter_once_and_only_when_asked(world: World, bare: Issue) -> None:
    async with world.bot():
        world.say("/claude init")
        await world.github.changed(lambda: len(world.replies()) == 1, 20)
        world.say("/claude init")
        await world.github.changed(lambda: len(world.replies()) == 2, 20)
        [pull] = world.pulls()
        assert all(f"#{pull.number}" in one.body for one in world.replies())
        assert world.repo.file(BRANCH, repo_config.PATH) == STARTER.read_bytes()
        assert world.repo.diff("main", BRANCH).count("diff --git") == 1
        world.github.merge(pull, by="alice")
        world.say("/claude init")
        await world.github.changed(lambda: len(world.replies()) == 3, 20)
    assert "already" in world.replies()[2].body and len(world.pulls()) == 1


async def test_init_names_the_schema_that_the_service_has_for_editors(world: World, bare: Issue) -> None:
    place = "https://forgehand.example.org"
    async with world.bot(FORGEHAND_PUBLIC_URL=place) as service, plain_client() as editor:
        answer = await editor.get(f"{service.url}/forgehand.schema.json")
        world.say("/claude init")
        await world.github.changed(lambda: len(world.replies()) == 1, 20)
    assert answer.json() == repo_config.schema() and answer.headers["Access-Control-Allow-Origin"] == "*"
    first, _, rest = (world.repo.file(BRANCH, repo_config.PATH) or b"").partition(b"\n")
    assert first.decode() == f"# yaml-language-server: $schema={place}/forgehand.schema.json"
    assert rest == STARTER.read_bytes()


async def test_init_leaves_a_branch_of_others_alone(world: World, bare: Issue) -> None:
    world.github.commit(world.repo, BRANCH, {"other.txt": "theirs"})
    before = world.repo.branch_sha(BRANCH)
    async with world.bot():
        world.say("/claude init")
        await world.github.changed(lambda: len(world.replies()) == 1, 20)
    assert "already exists with something else" in world.replies()[0].body
    assert world.repo.branch_sha(BRANCH) == before and not world.pulls()


async def test_init_survives_a_lost_answer(world: World, bare: Issue) -> None:
    lost = world.github.faults.add(Fault("POST *git-receive-pack", "lose", times=2))
    async with world.bot():
        world.say("/claude init")
        await world.github.changed(lambda: len(world.replies()) == 1, 20)
    assert lost.hits and len(world.pulls()) == 1


def test_the_starter_changes_nothing_and_all_it_shows_is_valid() -> None:
    text = Path(STARTER).read_text(encoding="utf-8")
    assert repo_config.parse(text) == repo_config.RepoConfig()
    shown = re.sub(r"^# (?=[a-z_]+: )", "", text, flags=re.MULTILINE)
    assert shown != text
    assert repo_config.parse(shown).budget == 5


@pytest.mark.parametrize("words", ["/claude init the database", "/claude initialise"])
def test_init_with_more_words_is_work(words: str) -> None:
    command = parse(words)
    assert command is not None and command.word == "run"
