"""Limits of a turn, a person, a repository and an installation hold, and everybody is told in time."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from bot.models import InstallationId, RepoId, TokenUsage
from bot.simulation.anthropic import Call, ModelRequest, Say, Script, Wait
from bot.simulation.github.gitstore import refs
from bot.store import gateway as rows
from bot.web.gateway import Ceilings, Tuning
from tests.world import World
from tests.world.command_line import forgehand
from tests.world.gateway import INSTALLATION, Rig, kind, rigged

DEAR = TokenUsage(input_tokens=100_000, output_tokens=100)
DEAR_USD = (100_000 * 2 + 100 * 10) / 1e6
WRITE = Call("Bash", {"command": "echo half > half.txt", "description": "Write half of it"})


NEW = '{"claude-opus-9": {"input": 1, "output": 2, "cache_read": 0.1}}'


async def test_a_model_without_a_price_of_ours_costs_what_the_operator_says(world: World) -> None:
    world.model.default(Script([Say("Looked.", usage=TokenUsage(100_000, 10_000, cache_read_tokens=50_000))]))
    async with world.bot(FORGEHAND_PRICES=NEW, FORGEHAND_MODEL="claude-opus-9"):
        world.say("/claude ask what is this?")
        assert await world.outcome() == "answered"
    assert {request.body["model"] for request in world.model.requests if request.has_tools} == {"claude-opus-9"}
    [row] = (await forgehand(world.environment, "spend", "--by", "session", "--json")).json
    asked = sum(request.has_tools for request in world.model.requests)
    assert row["cost_usd"] == pytest.approx(asked * (100_000 * 1 + 10_000 * 2 + 50_000 * 0.1) / 1e6)


async def test_a_model_whose_price_nobody_knows_is_refused_before_anything_is_made_for_it(world: World) -> None:
    world.github.commit(world.repo, "main", {".github/forgehand.yml": "model: glm-4.6\n"})
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "failed"
    told = world.replies()[0].body
    assert "does not know the price of the model `glm-4.6`" in told and "`opus`" in told and "FORGEHAND_" not in told
    assert "The agent" not in told, "none was begun"


# At the gateway


@pytest.mark.acceptance("B14")
@pytest.mark.parametrize(
    ("ceilings", "others"),
    [
        (Ceilings(50, 500, user_day_usd=0.0015), {"repo": RepoId(2), "user": 11}),
        (Ceilings(50, 500, user_month_usd=0.0015), {"repo": RepoId(2), "user": 11}),
        (Ceilings(50, 500, repo_day_usd=0.0015), {"repo": RepoId(1), "user": 12}),
        (Ceilings(50, 500, repo_month_usd=0.0015), {"repo": RepoId(1), "user": 12}),
    ],
)
async def test_a_limit_counts_what_all_turns_of_the_same_payer_spend(
    tmp_path: Path, ceilings: Ceilings, others: dict[str, int]
) -> None:
    async with rigged(tmp_path / "data", ceilings=ceilings) as rig:
        rig.model.default(Script([], after=Say("x", usage=TokenUsage(100, 100))))
        first, _ = await rig.token(repo=RepoId(1), user=11)
        second, _ = await rig.token(**others)
        stranger, _ = await rig.token(repo=RepoId(3), user=13)
        nobody, _ = await rig.token()
        assert (await rig.ask(first)).status_code == 200
        assert (await rig.ask(second)).status_code == 200
        assert kind(await rig.ask(second)) == (400, "invalid_request_error")
        assert kind(await rig.ask(first)) == (400, "invalid_request_error")
        assert (await rig.ask(stranger)).status_code == 200
        assert (await rig.ask(nobody)).status_code == 200
        rig.time.now += 31 * 86_400
        fresh, _ = await rig.token(**others)
        assert (await rig.ask(fresh)).status_code == 200


@pytest.mark.parametrize("patience", [0.0, 20.0])
async def test_a_persons_limit_is_passed_by_one_reserve_at_most_over_turns_in_parallel(
    tmp_path: Path, patience: float
) -> None:
    limit, reserve = 0.01, (100 * 10 + 400 * 2) / 1e6
    ceilings = Ceilings(50, 500, user_day_usd=limit)
    async with rigged(tmp_path / "data", ceilings=ceilings, tuning=Tuning(patience_seconds=patience)) as rig:
        rig.model.default(Script([], after=Say("x", usage=TokenUsage(400, 100))))
        tokens = [await rig.token(repo=RepoId(n), user=11, concurrency=50) for n in range(1, 5)]
        answers = await asyncio.gather(*(rig.ask(tokens[n % 4][0], "y" * 1000) for n in range(20)))
        spent = sum([(await rig.settled(key)).usd for _, key in tokens])
        statuses = {answer.status_code for answer in answers}
        assert statuses <= ({200, 400} if patience else {200, 400, 429})
        assert 0 < spent <= limit + reserve
        if patience:
            assert spent >= limit, "a request of another turn that ends wakes those that wait"


async def test_the_same_person_in_another_installation_waits_for_the_same_money(tmp_path: Path) -> None:
    ceilings = Ceilings(50, 500, user_day_usd=0.012)
    async with rigged(tmp_path / "data", ceilings=ceilings, tuning=Tuning(patience_seconds=20)) as rig:
        rig.model.script("slow", Script([Wait("go"), Say("x", usage=TokenUsage(10, 10))]))
        here, _ = await rig.token(user=11)
        there = await _token_of(rig, InstallationId(99), user=11)
        first = asyncio.create_task(rig.ask(here, "[[scenario:slow]]" + "y" * 15_000, max_tokens=1))
        await rig.model.reached("go")
        second = asyncio.create_task(rig.ask(there))
        rig.model.release("go")
        assert {(await first).status_code, (await second).status_code} == {200}


async def _token_of(rig: Rig, installation: InstallationId, user: int) -> str:
    _, key = await rig.token()
    terms = {"model": "claude-sonnet-5-5", "budget_usd": 5.0, "expires_at": rig.time.now + 600}
    return (await rows.mint(rig.store, key, installation, user=user, **terms)).reveal()  # type: ignore[arg-type]


async def test_the_row_of_a_request_knows_its_repository_and_its_person(tmp_path: Path) -> None:
    async with rigged(tmp_path / "data") as rig:
        token, _ = await rig.token(repo=RepoId(5), user=11)
        await rig.ask(token)
        found = await rig.store.read(
            lambda db: db.execute("SELECT installation_id, repo_id, user_id FROM spend").fetchall()
        )
        assert found == [(INSTALLATION, 5, 11)]


# Before a session


@pytest.mark.acceptance("B14")
async def test_a_person_whose_day_is_used_up_is_told_at_once_and_nobody_else_is_held_up(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_USER_DAY_BUDGET="0.1") as world:
        world.github.user("bob")
        world.repo.grant("bob", "write")
        world.model.default(Script([], after=Say("Looked.", usage=TokenUsage(49_000, 100))))
        async with world.bot():
            world.say("/claude look")
            assert await world.outcome(1) == "no_change"
            world.say("/claude look again")
            assert await world.outcome(2) in {"no_change", "over_budget"}
            asked = world.say("/claude and again")
            told = await world.github.changed(lambda: _saying(world, "Today's budget of $0.10 for you"), 20)
            assert "starts again tomorrow" in told
            world.say("/claude look for me", by="bob")
            assert await world.outcome(3) == "no_change"
    assert len(world.states()) == 3 and not asked.reactions


@pytest.mark.parametrize("name", ["FORGEHAND_REPO_DAY_BUDGET", "FORGEHAND_REPO_MONTH_BUDGET", "FORGEHAND_DAY_BUDGET"])
async def test_a_repository_whose_money_is_used_up_starts_nothing_for_anybody(tmp_path: Path, name: str) -> None:
    async with World.running(tmp_path) as world:
        world.environment[name] = "0.01"
        world.github.user("bob")
        world.repo.grant("bob", "write")
        world.model.default(Script([], after=Say("Looked.", usage=DEAR)))
        async with world.bot():
            world.say("/claude look")
            assert await world.outcome(1) == "over_budget"
            world.say("/claude look", by="bob")
            await world.github.changed(lambda: _saying(world, "budget of $0.01 for this", after=1), 20)
    assert len(world.states()) == 1


async def test_a_turn_that_waited_while_the_money_went_ends_without_a_box(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_DAY_BUDGET="0.05") as world:
        world.model.default(Script([Wait("first"), Say("Dear.", usage=DEAR)]))
        async with world.bot():
            world.say("/claude first")
            await world.model.reached("first", timeout=60)
            world.say("/claude second --queue")
            await world.github.changed(lambda: len(world.states()) == 2, 20)
            world.model.release("first")
            assert [await world.outcome(n) for n in (1, 2)] == ["over_budget", "over_budget"]
        assert len([one for one in world.model.requests if one.has_tools]) == 1
        assert "Today's budget of $0.05 for this installation" in world.replies()[1].body


def _saying(world: World, words: str, *, after: int = 0) -> str:
    return next((one.body for one in world.replies()[after:] if words in one.body), "")


# In the middle of one


@pytest.mark.acceptance("B14")
async def test_when_the_day_ends_a_turn_its_work_is_saved_and_no_budget_is_offered(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_DAY_BUDGET="0.5") as world:
        world.model.default(Script([WRITE, Say("A dear answer.", usage=TokenUsage(900_000, 1_000))]))
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "over_budget"
        [ref] = refs(world.repo.path, "refs/forgehand/")
        live = world.replies()[0].body
        assert ref in live and "Today's budget of $0.50 for this installation is used up" in live
        assert "`/claude continue`" in live and "+3" not in live and "--budget" not in live


async def test_a_turn_over_the_budget_of_its_session_is_offered_to_go_on_with_more(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="0.5") as world:
        world.model.default(Script([WRITE, Say("A dear answer.", usage=TokenUsage(900_000, 1_000))]))
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "over_budget"
        live = world.replies()[0].body
        assert re.search(r"it has spent \$1\.8\d of \$0\.50", live) and "`/claude continue +3`" in live


async def test_the_repositorys_config_narrows_the_budget_of_a_session(world: World) -> None:
    world.github.commit(world.repo, "main", {".github/forgehand.yml": "budget: 0.25\n"})
    world.model.default(Script([WRITE, Say("A dear answer.", usage=TokenUsage(900_000, 1_000))]))
    async with world.bot():
        world.say("/claude --budget 4 fix this")
        assert await world.outcome() == "over_budget"
    assert re.search(r"it has spent \$\d\.\d\d of \$0\.25", world.replies()[0].body)


NOTE = "80% of the money of this turn is used up"


def _heeding(request: ModelRequest) -> Call | Say:
    """Works on until it is told; a while later, in which it could be told again, it ends."""
    seen = str(request.messages)
    if "'content': 'a while later'" in seen:
        return Say("Wrapped up.")
    patience = "sleep 3; echo a while later" if NOTE in seen else "true"
    return Call("Bash", {"command": patience, "description": "Work"}, usage=TokenUsage(10, 10))


async def test_at_eighty_percent_the_agent_is_told_once_to_wrap_up(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="1") as world:
        dear = Call("Bash", {"command": "true", "description": "Think"}, usage=TokenUsage(1_000, 85_000))
        world.model.default(Script([dear], after=_heeding))
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "no_change", world.replies()[0].body
        assert "Wrapped up." in world.replies()[0].body
    words = [str(request.messages) for request in world.model.requests if request.has_tools]
    assert words[-1].count(NOTE) == 1 and NOTE not in words[0]


# Sums


async def test_sums_are_exact_over_resumed_turns_wherever_they_are_asked_for(world: World) -> None:
    usage = TokenUsage(1_000, 500)
    world.model.default(Script([Call("Bash", {"command": "true"}, usage=usage)], after=Say("Looked.", usage=usage)))
    world.model.side_answer(Say("A title", usage=usage))
    async with world.bot():
        world.say("/claude cost")
        await world.github.changed(lambda: _saying(world, "has cost nothing yet"), 20)
        world.say("/claude look")
        assert await world.outcome(1) == "no_change"
        world.say("/claude look once more")
        assert await world.outcome(2) == "no_change"
        world.say("/claude cost")
        said = await world.github.changed(lambda: _saying(world, "This thread has cost **"), 20)
        by = {name: await _spend(world, name) for name in ("day", "repo", "user", "session")}
    answered = len([one for one in world.model.requests if one.path == "/v1/messages"])
    expected = answered * (1_000 * 2 + 500 * 10) / 1e6
    assert f"**${expected:.2f}** so far ({answered * 1_500:,} tokens)." in said and "| 1 | $" in said
    parts = [float(part) for part in re.findall(r"\| \d \| \$(\d+\.\d+) \|", said)]
    assert len(parts) == 2 and sum(parts) == pytest.approx(expected, abs=0.011)
    for rows_ in by.values():
        assert len(rows_) == 1
        assert rows_[0]["cost_usd"] == pytest.approx(expected, abs=1e-12)
        assert (rows_[0]["requests"], rows_[0]["output_tokens"]) == (answered, answered * 500)
    assert by["repo"][0]["repo"] == world.repo.full_name
    assert by["user"][0]["user"] == "alice"
    assert by["session"][0]["session"] == world.states()[0]["session"]
    assert by["session"][0]["turns"] == 2


async def test_spend_says_what_since_when_in_text_and_refuses_nonsense(world: World) -> None:
    world.model.default(Script([Say("Looked.", usage=DEAR)]))
    async with world.bot():
        world.say("/claude look")
        await world.outcome()
    text = await forgehand(world.environment, "spend", "--by", "repo", "--since", "2026-01-01")
    assert world.repo.full_name in text.out and "dollars since 2026-01-01" in text.out
    assert f"{DEAR_USD:.4f}" in text.out.splitlines()[-1]
    later = await forgehand(world.environment, "spend", "--since", "2999-01-01", "--json")
    assert later.json == []
    nonsense = await forgehand(world.environment, "spend", "--since", "lately")
    assert nonsense.code == 1 and "--since takes a day" in nonsense.err


async def _spend(world: World, by: str) -> list[dict[str, object]]:
    ran = await forgehand(world.environment, "spend", "--by", by, "--json")
    assert ran.code == 0, ran.text
    found = ran.json
    assert isinstance(found, list)
    return found
