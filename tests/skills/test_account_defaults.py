"""Defaults for an account: the file in its `.github` below each repository's own, and where each value comes from."""

from __future__ import annotations

import asyncio
import json

import pytest

from bot import account_settings, repo_config
from bot.errors import BadRepoConfig
from bot.repo_config import RepoConfig, layers
from bot.repo_config.layers import LayeredConfig
from bot.repo_config.values import ForPaths
from bot.simulation.anthropic import Say, Script
from bot.simulation.github.state import Repository
from bot.store.base import Store
from tests.reading.test_reading import first
from tests.world import CONFIG, World
from tests.world.command_line import forgehand
from tests.world.visitor import visitor


def laid(*files: str) -> LayeredConfig:
    found = LayeredConfig()
    for n, text in enumerate(files):
        found = found.under(layers.of_file(text, f"file {n}"))
    return found


@pytest.mark.parametrize(
    ("below", "above", "key", "value", "source"),
    [
        ("model: a", "effort: low", "model", "a", "file 0, line 1"),
        ("model: a", "model: b", "model", "b", "file 1, line 1"),
        ("checks: [a, b]", "\nchecks: c", "checks", "c", "file 1, line 2"),
        ("checks: a", "checks: []", "checks", "none", "file 1, line 1"),
        ("triggers: {label: true}", "triggers: {label: false}", "triggers.label", "none", "file 1, line 1"),
        ("triggers:\n  label: true", "triggers: {ci_fix: true}", "triggers.label", "claude", "file 0, line 2"),
        ("budget: 3", "budget: 9", "budget", "$3.00", "file 0, line 1"),
        ("budget: 9", "budget: 3", "budget", "$3.00", "file 1, line 1"),
        ("subagents: {most: 0}", "subagents: {most: 5}", "subagents.most", "0", "file 0, line 1"),
        ("timeout: 30m", "timeout: 2h", "timeout", "30 min", "file 0, line 1"),
        ("tools: {denied: A}", "tools: {denied: B}", "tools.denied", "A, B", "file 0, line 1 and file 1, line 1"),
        (
            "review: {dismissed: {a: x, b: y}}",
            "review: {dismissed: {b: z}}",
            "review.dismissed",
            "a: x, b: z",
            "file 0, line 1 and file 1, line 1",
        ),
        (
            "paths: {a/**: {budget: 2, checks: x}, b: {setup: y}}",
            "paths: {a/**: {budget: 90, instructions: z}, c: {setup: y}}",
            "paths",
            "a/**: checks, budget, instructions, b: setup, c: setup",
            "file 0, line 1 and file 1, line 1",
        ),
    ],
)
def test_lists_replace_maps_merge_and_limits_only_narrow(
    below: str, above: str, key: str, value: str, source: str
) -> None:
    row = {one["key"]: one for one in laid(below, above).rows()}[key]
    assert (row["value"], row["source"]) == (value, source)


def test_a_repository_cannot_raise_the_account_s_budget_for_a_path() -> None:
    below = "budget: 50\npaths: {pay/**: {budget: 2, checks: [audit]}}\n"
    for above, budget, checks in (("{budget: 90}", 2, "audit"), ("{budget: 1}", 1, "audit"), ("{checks: [x]}", 2, "x")):
        config = laid(below, f"paths: {{pay/**: {above}}}\n").config.with_paths(["pay/**"])
        assert (config.budget, config.checks) == (budget, (checks,))


def test_a_private_account_file_brings_limits_but_no_words_into_public_threads() -> None:
    text = (
        "budget: 2\ninstructions: SECRET\nreview: {dismissed: {a: SECRET}, threshold: major}\n"
        "paths: {a: {instructions: SECRET, checks: make}, b: {review: SECRET}}\n"
    )
    found = account_settings.defaults({}, text, "octo", silent=True)
    assert "SECRET" not in repo_config.dump(found.config) and "SECRET" not in str(found.rows())
    assert set(found.origins) == {"budget", "review.threshold", "paths"}
    assert (found.config.budget, [one.pattern for one in found.config.paths]) == (2, ["a"])
    assert "SECRET" in repo_config.dump(account_settings.defaults({}, text, "octo").config)


def test_one_file_alone_means_what_it_always_meant() -> None:
    text = "model: m\nreview: {dismissed: {a: [x, y]}}\npull: {closes: true}\nsetup: [a, b]\n"
    assert laid(text).config == layers.of_file(text, "").config
    assert laid(text).config.review.dismissed == (ForPaths("a", "x"), ForPaths("a", "y"))
    assert laid("").config == laid().config == RepoConfig()
    with pytest.raises(BadRepoConfig):
        laid("modle: x")


@pytest.fixture
def shared(world: World) -> Repository:
    """The account's own repository, on which the App is installed too."""
    world.model.default(Script([Say("Nothing to do.")]))
    files = {CONFIG: "budget: 2\neffort: low\ninstructions: |\n  ACCOUNT-RULE\ntriggers:\n  label: bot\n"}
    repo = world.github.create_repo(f"{world.repo.owner.login}/.github", files=files, private=True)
    world.github.add_repos(world.installation, repo)
    return repo


async def test_the_account_s_file_counts_below_the_repository_s_own(world: World, shared: Repository) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "effort: high\nbudget: 3\n"}, by="alice")
    owner = world.repo.owner.login
    world.github.organization(owner, owners=["olga"], members=["alice"])
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        world.github.label(world.issue, "bot", by="alice")
        assert await world.outcome() == "no_change"
        assert "ACCOUNT-RULE" in first(world).system and first(world).body["output_config"]["effort"] == "high"
        page = (await olga.get(f"/installations/{world.installation.id}")).text
        assert f"{CONFIG} of {owner}/.github, line 1" in page and f"{CONFIG} of {world.repo.full_name}, line 1" in page

        shown = await forgehand(world.environment, "config", "show", world.repo.full_name, "--json")
        rows = {one["key"]: (one["value"], one["source"]) for one in shown.json}
        assert rows["budget"] == ("$2.00", f"{CONFIG} of {owner}/.github, line 1")
        assert rows["effort"] == ("high", f"{CONFIG} of {world.repo.full_name}, line 1")
        assert rows["timeout"] == ("60 min", "the operator") and rows["permission"] == ("auto", "default")

        # Its words stay out of public threads, because it is private itself; its limits count there, too.
        world.repo.private = False
        world.say("/claude look")
        assert await world.outcome(2) == "no_change"
        assert "ACCOUNT-RULE" not in json.dumps(world.model.requests[-1].body)
        assert "of $2.00" in world.replies()[-1].body

        # A push is heard at once; what it broke is said in the account's own place, and counts as absent.
        world.github.commit(shared, "main", {CONFIG: "efort: low\n"}, by="alice")
        await again(world)
        world.say("/claude look")
        assert await world.outcome(3) == "no_change"
        assert "ACCOUNT-RULE" not in json.dumps(world.model.requests[-1].body)
        page = (await olga.get(f"/installations/{world.installation.id}")).text
        assert "cannot be used, so it does not count" in page and "there is no key" in page
        told = await forgehand(world.environment, "config", "show", owner)
        assert "there is no key `efort`" in told.out

        world.github.commit(shared, "main", {CONFIG: f"budget: 1\n#{'x' * (1 << 20)}\n"}, by="alice")
        await again(world)
        world.say("/claude help")
        await world.github.changed(lambda: "what happens" in world.replies()[-1].body, 30)
        page = (await olga.get(f"/installations/{world.installation.id}")).text
        assert "is larger than 1 MB" in page, "it would look as if there were no file"

        # A repository that was renamed is no longer the account's own, though its old address leads there.
        world.github.commit(shared, "main", {CONFIG: "budget: 1\n"}, by="alice")
        await again(world)
        world.github.rename_repo(shared, "old-defaults")
        world.say("/claude look")
        assert await world.outcome(4) == "no_change"
        assert "of $3.00" in world.replies()[-1].body


async def again(world: World) -> None:
    """Wait until the account's repository is to be read again."""
    store = await Store.open_reader(world.database)
    try:
        async with asyncio.timeout(30):
            while [row["read_at"] < 0 for row in await store.many("SELECT read_at FROM account_repositories")] != [
                True
            ]:
                await world.github.idle()
    finally:
        await store.close()


def test_repositories_without_a_file_get_the_page_s_triggers_below_the_account_s_file() -> None:
    choices = {"label": account_settings.SettingChoice("page", "olga", 0.0)}
    choices["ci_fix"] = account_settings.SettingChoice(value=True, set_by="olga", set_at=0.0)
    text = "triggers: {label: file}\n"
    rows = {one["key"]: one["source"] for one in account_settings.defaults(choices, text, "octo").rows()}
    assert rows == {
        "triggers.label": f"{CONFIG} of octo/.github, line 1",
        "triggers.ci_fix": "the account's page",
    }
