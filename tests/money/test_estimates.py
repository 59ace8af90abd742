"""The price before the work: what similar turns cost stands in the first form of the live comment, and above the
repository's `ask_above` a turn waits for a yes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence

import pytest

from bot.models import InstallationId, Repo, RepoId
from bot.simulation.anthropic import Say, Script
from bot.simulation.github.threads import Comment
from bot.store import audit, turn_figures
from bot.store.base import Address, Store
from tests.world import CONFIG, World
from tests.world.command_line import forgehand
from tests.world.stored import put_figures

DEAR = [(4.0 + n, 240.0 + 60 * n) for n in range(5)]
CHEAP = [(0.001, 1.0)] * 5
ASK = "ask_above: 5\n"


async def known(world: World, figures: Sequence[tuple[float, float]], repo: int = 0, **more: object) -> None:
    """Give the service a past, before it starts."""
    world.root.joinpath("data").mkdir(mode=0o700, exist_ok=True)
    store = await Store.open(world.database)
    here = {"repo": repo or world.repo.id, "installation": world.installation.id} | more
    await put_figures(store, figures, **here)  # type: ignore[arg-type]
    await store.close()


def live(world: World, n: int = 1) -> Comment:
    return world.replies()[n - 1]


def first_form(comment: Comment) -> str:
    return comment.history[0][1] if comment.history else comment.body


async def answered(world: World, words: str) -> None:
    await world.github.changed(lambda: any(words in one.body for one in world.replies()), 20)


@pytest.mark.quick("bot.store", "bot.words", "bot.live")
async def test_the_first_form_of_the_live_comment_says_what_similar_work_cost(world: World) -> None:
    await known(world, DEAR)
    async with world.bot():
        world.say("/claude fix it")
        assert await world.outcome() == "pull_request"
        said = "Similar work here usually takes $6.00 and 6 minutes; 9 of 10 turns took at most $8.00 and 8 minutes."
        assert said in first_form(live(world))
        assert "Similar work" not in live(world).body, "the end has the real figures"


@pytest.mark.parametrize("figures", [[], DEAR[:4]])
async def test_four_turns_are_too_few_for_an_estimate(world: World, figures: list[tuple[float, float]]) -> None:
    await known(world, figures)
    await known(world, DEAR, kind="review")
    async with world.bot():
        world.say("/claude fix it")
        assert await world.outcome() == "pull_request"
        assert "Similar work" not in first_form(live(world))


async def test_above_the_limit_a_turn_waits_for_a_yes_and_costs_nothing(world: World) -> None:
    await known(world, DEAR)
    world.github.commit(world.repo, "main", {CONFIG: ASK})
    async with world.bot():
        world.say("/claude fix it --model claude-opus-5-5")
        assert await world.outcome() == "needs_input"
        body = live(world).body
        assert "### 💰 Waiting for a yes to the price" in body and "wants to be asked above $5.00" in body
        assert "- [ ] **Go ahead**" in body and "- [ ] **Leave it**" in body
        assert not world.model.requests and not list(world.environments.glob("*-1")), "nothing has begun"
    async with world.bot():  # the question is only a row
        world.github.tick(live(world), "Go ahead", by="alice")
        assert await world.outcome(2) == "pull_request", live(world, 2).body
        await world.github.changed(lambda: "💰 The price was approved" in live(world).body, 20)
        assert "> **alice**: fix it" in live(world, 2).body
        assert "claude-opus-5-5" in live(world, 2).body, "its options hold"
        assert "[ ]" not in live(world).body
    store = await Store.open(world.database)
    trail = [(one.actor, one.action) for one in await audit.listing(store)]
    await store.close()
    assert ("alice", "approved") in trail


async def test_a_stranger_cannot_agree_to_a_price(world: World) -> None:
    await known(world, DEAR)
    world.github.commit(world.repo, "main", {CONFIG: ASK})
    world.github.user("mallory")
    world.repo.private = False
    async with world.bot():
        world.say("/claude fix it")
        assert await world.outcome() == "needs_input"
        before = live(world).body
        world.github.tick(live(world), "Go ahead", by="mallory")
        await world.github.changed(lambda: "[x]" not in live(world).body and live(world).body == before, 20)
        world.say("/claude approve", by="mallory")
        await answered(world, "mallory")
    assert len(world.states()) == 1 and not world.model.requests


async def test_deny_leaves_it_and_a_retry_asks_again(world: World) -> None:
    await known(world, DEAR)
    world.github.commit(world.repo, "main", {CONFIG: ASK})
    async with world.bot():
        world.say("/claude fix it")
        assert await world.outcome() == "needs_input"
        world.say("/claude deny")
        await answered(world, "💰 The price was turned down")
        world.say("/claude approve")
        await answered(world, "Nothing here is waiting")
        world.say("/claude retry")
        await world.github.changed(lambda: len(world.states()) == 2, 20)
        assert await world.outcome(2) == "needs_input"
    assert not world.model.requests


async def test_a_yes_covers_a_retry_of_the_same_turn_but_no_other_options(world: World) -> None:
    await known(world, DEAR)
    world.github.commit(world.repo, "main", {CONFIG: ASK})
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude fix it")
        assert await world.outcome() == "needs_input"
        world.github.tick(live(world), "Go ahead", by="alice")
        assert await world.outcome(2) in ("no_change", "answered"), live(world, 2).body
        world.say("/claude retry")
        assert await world.outcome(3) in ("no_change", "answered"), live(world, 3).body
        asked = len(world.model.requests)
        world.say("/claude retry --model claude-opus-5-5")
        assert await world.outcome(4) == "needs_input", live(world, 4).body
        assert len(world.model.requests) == asked


async def test_the_question_expires_after_seven_days_and_says_so(world: World) -> None:
    await known(world, DEAR)
    world.github.commit(world.repo, "main", {CONFIG: ASK})
    async with world.bot():
        world.say("/claude fix it")
        assert await world.outcome() == "needs_input"
    async with world.bot(lambda: time.time() + 8 * 24 * 3600):
        await answered(world, "Nobody agreed to the price in time")
        await answered(world, "💰 The question about the price is no longer open")


async def test_a_cheap_estimate_and_none_at_all_ask_nobody(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: ASK})
    async with world.bot():
        world.say("/claude fix it")
        assert await world.outcome() == "pull_request"
    await known(world, [(0.5, 60.0)] * 5)
    async with world.bot():
        world.say("/claude fix it again")
        assert await world.outcome(2) in ("pushed", "no_change"), live(world, 2).body


async def test_a_plan_that_comes_first_has_an_estimate_of_plans(world: World) -> None:
    await known(world, DEAR)
    await known(world, CHEAP, kind="plan")
    world.github.commit(world.repo, "main", {CONFIG: f"{ASK}permission: plan\n"})
    world.model.default(Script([Say("1. Clamp it.")]))
    async with world.bot():
        world.say("/claude fix it")
        assert await world.outcome() == "planned", "a plan is cheap here"
        world.say("/claude approve")
        assert await world.outcome(2) == "needs_input", "the work is not: a yes to a plan is none to a price"
        world.say("/claude approve")
        assert await world.outcome(3) in ("no_change", "answered"), live(world, 3).body
    assert "by the plan that was approved" in live(world, 3).body


async def test_the_hit_rate_of_estimates_is_reported(world: World) -> None:
    """An estimate holds if the turn cost at most its upper figure; the scripted turn takes longer than one second."""
    await known(world, [(5.0, 1.0)] * 5)
    async with world.bot():
        world.say("/claude fix it")
        assert await world.outcome() == "pull_request"
    said = "1 turn had an estimate. 100% stayed within its upper price, and 0% within its upper time."
    assert said in (await forgehand(world.environment, "spend", "--by", "estimate")).out
    rows = (await forgehand(world.environment, "spend", "--by", "estimate", "--json")).json
    assert rows == [{"kind": "run", "turns": 1, "held_usd": 1, "held_seconds": 0}]


@pytest.fixture
async def store(address: Address) -> AsyncIterator[Store]:
    opened = await Store.open(address)
    yield opened
    await opened.close()


async def _estimated(store: Store, repo: int, *, private: bool = True, installation: int = 1) -> float | None:
    place = Repo(RepoId(repo), "octo", f"r{repo}", private, "main")
    found = await turn_figures.estimate(store, place, InstallationId(installation), "run")
    return found.most_usd if found else None


async def test_estimates_of_the_account_and_of_all_are_the_fallback(store: Store) -> None:
    await put_figures(store, [(1.0, 60.0)] * 5, repo=1, installation=1)
    await put_figures(store, [(2.0, 60.0)] * 5, repo=2, installation=1)
    await put_figures(store, [(3.0, 60.0)] * 9, repo=3, installation=2)
    assert await _estimated(store, 1) == 1.0
    assert await _estimated(store, 2) == 2.0
    assert await _estimated(store, 4) == 2.0, "half of the account's turns cost as much"
    await put_figures(store, [(0.5, 60.0)] * 5, repo=5, installation=3, private=False)
    assert await _estimated(store, 4, installation=9) == 0.5, "of all, without other accounts' private work"


async def test_a_public_repository_shows_no_estimate_of_private_ones(store: Store) -> None:
    await put_figures(store, [(1.0, 60.0)] * 5, repo=1, installation=1)
    assert await _estimated(store, 4) == 1.0
    assert await _estimated(store, 4, private=False) is None
    await put_figures(store, [(2.0, 60.0)] * 5, repo=2, installation=2, private=False)
    assert await _estimated(store, 4, private=False) == 2.0
    assert await _estimated(store, 4, private=False, installation=2) == 2.0


async def test_only_the_newest_turns_count_for_an_estimate(store: Store) -> None:
    await put_figures(store, [(9.0, 60.0)] * 20 + [(1.0, 60.0)] * 30, repo=1, installation=1)
    assert await _estimated(store, 1) == 1.0
