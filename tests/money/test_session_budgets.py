"""A session has one budget over all its turns; whoever may write adds to it, and everybody is told the same of it."""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.funds import BudgetTerms, Raise
from bot.models import InstallationId, Repo, RepoId, SessionId, Thread, TokenUsage, TurnKey
from bot.simulation.anthropic import Call, Cut, ModelRequest, Say, Script, Wait
from bot.simulation.github import Fault
from bot.store import gateway as rows
from bot.store import sessions, spend
from bot.store.base import Store
from bot.store.rows import many
from bot.store.sessions import NewTurn
from bot.web.gateway import Ceilings, Tuning
from tests.money.test_budgets import NOTE
from tests.reviews.test_reviews import CODE, ZERO, pull_of, verdict
from tests.reviews.test_triggers import why
from tests.world import World, stored, visitor
from tests.world.command_line import forgehand
from tests.world.gateway import INSTALLATION, MODEL, Rig, kind, rigged

REPO = RepoId(5)
USER = 11
DEAR = TokenUsage(450_000, 1_000)
OPEN = r", and up to \$0\.3\d not confirmed"
"""The rest of an answer that was cut: 32,000 tokens at most."""
DEAR_USD = 0.91
WRITE = Call("Bash", {"command": "echo half > half.txt", "description": "Write half of it"})


async def test_an_agent_is_told_of_no_budget_but_that_of_its_own_turn(world: World) -> None:
    """What the session could be raised to is ten times what it has: nobody should plan with it."""
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        assert "USD budget" not in str([request.body for request in world.model.requests])
        world.say("/claude once more --budget 2")
        assert await world.outcome(2) == "no_change"
    told = re.findall(r"USD budget: \$[\d.]+/\$([\d.]+);", str([request.body for request in world.model.requests]))
    assert set(told) == {"2"}


# At the gateway


async def begun(store: Store, times: int) -> list[TurnKey]:
    """Turns of one session, as a thread has them."""
    thread = Thread(Repo(REPO, "octo-org", "shop", True, "main"), INSTALLATION, 1, False)
    made = []
    for n in range(times):
        new = NewTurn(thread, "run", "do it", "alice", USER, f"comment:{n}", MODEL, 0.0, 60.0)
        made.append(await sessions.begin_turn(store, new))
    return [key for key in made if key is not None]


async def token_of(rig: Rig, key: TurnKey) -> str:
    terms = {"model": MODEL, "budget_usd": 0.0, "expires_at": rig.time.now + 600, "concurrency": 50}
    minted = await rows.mint(rig.store, key, InstallationId(INSTALLATION), repo=REPO, user=USER, **terms)  # type: ignore[arg-type]
    return minted.reveal()


@pytest.mark.acceptance("D14")
async def test_what_earlier_turns_have_spent_is_gone_for_the_next_and_what_is_added_is_there(tmp_path: Path) -> None:
    async with rigged(tmp_path / "data", ceilings=Ceilings(50, 500, session=BudgetTerms(0.003, 0.0061))) as rig:
        rig.model.default(Script([], after=Say("x", usage=TokenUsage(100, 100))))
        first, second = await begun(rig.store, 2)
        assert [(await rig.ask(await token_of(rig, first))).status_code for _ in range(2)] == [200, 200]
        token = await token_of(rig, second)
        assert (await rig.ask(token)).status_code == 200, "0.0024 of 0.003 are spent"
        assert kind(await rig.ask(token)) == (400, "invalid_request_error")
        more = Raise("comment:9", 0.002, "alice", BudgetTerms(0.003, 0.0061))
        assert [await spend.raise_budget(rig.store, first.session, more) for _ in range(2)] == [True, False]
        assert [(await rig.ask(token)).status_code for _ in range(3)] == [200, 200, 400]
        await spend.raise_budget(rig.store, first.session, Raise("comment:10", 5, "alice", BudgetTerms(0.003, 0.0061)))
        assert [(await rig.ask(token)).status_code for _ in range(2)] == [200, 400], "the operator's most"


async def test_the_repositorys_word_narrows_and_never_widens(tmp_path: Path) -> None:
    async with rigged(tmp_path / "data", ceilings=Ceilings(50, 500, session=BudgetTerms(0.003, 1.0))) as rig:
        rig.model.default(Script([], after=Say("x", usage=TokenUsage(100, 100))))
        [key] = await begun(rig.store, 1)
        token = await token_of(rig, key)
        await sessions.update_session(rig.store, key.session, budget_usd=0.001)
        assert [(await rig.ask(token)).status_code for _ in range(2)] == [200, 400]
        await sessions.update_session(rig.store, key.session, budget_usd=100)
        assert [(await rig.ask(token)).status_code for _ in range(3)] == [200, 200, 400]


async def test_a_token_with_no_limit_at_all_is_worth_nothing(tmp_path: Path) -> None:
    async with rigged(tmp_path / "data") as rig:
        token, _ = await rig.token(budget_usd=0.0)
        assert kind(await rig.ask(token)) == (400, "invalid_request_error")
    assert not rig.model.requests


@pytest.mark.acceptance("D14")
@pytest.mark.acceptance("B14")
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32), patient=st.booleans(), limit=st.sampled_from([0.004, 0.01, 0.03]))
def test_twenty_in_flight_over_two_turns_pass_the_budget_by_one_reserve_at_most(
    seed: int, patient: bool, limit: float
) -> None:
    """Answers that are lost, clients that leave and a service that dies among them."""
    asyncio.run(_two_turns(random.Random(seed), patient, limit))


async def _two_turns(chance: random.Random, patient: bool, limit: float) -> None:
    ceilings = Ceilings(50, 500, user_day_usd=50, repo_day_usd=50, session=BudgetTerms(limit, 1.0))
    tuning = Tuning(patience_seconds=20.0 if patient else 0.0, check_seconds=0.02)
    with tempfile.TemporaryDirectory() as folder:
        async with rigged(Path(folder) / "data", ceilings=ceilings, tuning=tuning) as rig:
            rig.model.default(Script([], after=_within_its_sizes))
            first, second = await begun(rig.store, 2)
            await _flood(rig, first, chance)
            await _holds(rig, first.session, limit)
            added = chance.choice([0.0, limit / 2, limit])
            if added:
                await spend.raise_budget(
                    rig.store, first.session, Raise("comment:9", added, "alice", BudgetTerms(limit, 1.0))
                )
            await _flood(rig, second, chance)
            await _holds(rig, first.session, limit + added)
            await spend.raise_budget(
                rig.store, first.session, Raise("comment:10", limit, "alice", BudgetTerms(limit, 1.0))
            )
            await _die_in_the_middle(rig, second)
            await _holds(rig, first.session, limit + added + limit)
            await _agree(rig, first.session)


def _within_its_sizes(request: ModelRequest) -> Say:
    most = int(request.body["max_tokens"])
    return Say("z" * 40, usage=TokenUsage(len(str(request.body)) // 6, most))


async def _flood(rig: Rig, key: TurnKey, chance: random.Random) -> None:
    token = await token_of(rig, key)

    async def ask() -> None:
        asking = rig.ask(token, "y" * chance.randrange(3_000), max_tokens=chance.choice([1, 50, 100, 300]))
        if chance.random() < 0.2:  # leaves before it has heard all
            with pytest.raises((TimeoutError, httpx.HTTPError)):
                async with asyncio.timeout(chance.random() * 0.05):
                    await asking
                raise TimeoutError
        else:
            assert (await asking).status_code in (200, 400, 429)

    await asyncio.gather(*(ask() for _ in range(20)))
    await rig.settled(key)


async def _die_in_the_middle(rig: Rig, key: TurnKey) -> None:
    rig.model.script("slow", Script([Wait("never"), Say("x")]))
    token = await token_of(rig, key)
    asking = [asyncio.create_task(rig.ask(token, "[[scenario:slow]]" + "y" * 2_000)) for _ in range(20)]
    await rig.model.reached("never")
    await spend.abandon_open(rig.store)
    await rows.revoke(rig.store, key)
    await asyncio.gather(*asking)


async def _holds(rig: Rig, session: SessionId, limit: float) -> None:
    largest = await rig.store.read(lambda db: many(db, "SELECT MAX(reserved_usd) AS usd FROM spend"))
    spent = (await stored.session_spend(rig.store, session)).usd
    assert spent <= limit + largest[0]["usd"] + 1e-12


async def _agree(rig: Rig, session: SessionId) -> None:
    """Whoever adds it up comes to the same, to the last digit that a sum of floats has."""
    ledger = sum(row["cost_usd"] for row in await rig.store.read(lambda db: many(db, "SELECT cost_usd FROM spend")))
    payers = spend.Payers(INSTALLATION, REPO, USER)
    windows = Ceilings(50, 500, user_day_usd=50, user_month_usd=50, repo_day_usd=50, repo_month_usd=50)
    sums = [cost.usd for cost in await spend.in_windows(rig.store, payers, windows.windows(rig.time.now)) if cost]
    assert len(sums) == 6
    account = await spend.account(rig.store, session)
    turns = [(await spend.turn_cost(rig.store, TurnKey(session, n))).usd for n in (1, 2)]
    sums += [account.spent_usd, (await stored.session_spend(rig.store, session)).usd, sum(turns)]
    for by in spend._GROUPS:
        sums.append(sum(row["cost_usd"] for row in await spend.summed(rig.store, by, 0.0)))
    assert sums == pytest.approx([ledger] * len(sums), abs=1e-12)
    assert account.reserved_usd == 0


# In a session


def _live(world: World, n: int) -> str:
    bodies = [one.body for one in world.replies() if "<!-- forgehand:session=" in one.body]
    return bodies[n - 1]


async def _said(world: World, words: str) -> str:
    def found() -> str:
        return next((one.body for one in world.replies() if words in one.body), "")

    return str(await world.github.changed(found, 20))


@pytest.mark.acceptance("B14")
async def test_the_next_turn_has_what_is_left_and_a_spent_session_says_how_it_goes_on(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="1.5") as world:
        world.model.default(Script([Say("Dear.", usage=DEAR)]))
        async with world.bot():
            world.say("/claude look")
            assert await world.outcome(1) == "no_change"
            world.model.default(Script([WRITE, Say("Dear.", usage=DEAR)]))
            world.say("/claude look again")
            assert await world.outcome(2) == "over_budget"
            assert re.search(rf"it has spent \$1\.8\d of \$1\.50{OPEN}", _live(world, 2))
            assert re.search(rf"\$0\.9\d{OPEN} · session \$1\.8\d of \$1\.50{OPEN}", _live(world, 2))
            assert re.search(r"\$0\.9\d of \$1\.50", _live(world, 1))
            asked = world.say("/claude and again")
            told = await _said(world, "so nothing was started")
            assert re.search(rf"has spent \$1\.8\d of its \$1\.50{OPEN}", told) and "`/claude continue +3`" in told
            world.say("/claude cost")
            assert "It may spend $1.50; $0.00 is left." in await _said(world, "This thread has cost")
            world.model.default(Script([Say("Went on.", usage=TokenUsage(10, 10))]))
            live = next(one for one in world.replies() if one.body == _live(world, 2))
            world.github.tick(live, "Continue with 3 dollars more", by="alice")
            assert await world.outcome(3) in ("pull_request", "no_change"), world.replies()[-1].body
        assert re.search(r"session \$1\.8\d of \$4\.50", _live(world, 3))
        assert re.search(r"\$1\.8\d of \$1\.50", _live(world, 2)), "what was true then stays"
        await _told_alike(world, "4.50")
    assert not asked.reactions and len(world.states()) == 3


@pytest.mark.review("beside-2")
async def test_each_raise_is_in_the_audit_with_what_was_cut_of_it(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="1", FORGEHAND_SESSION_CEILING="5") as world:
        world.model.default(Script([], after=Say("Done.", usage=TokenUsage(10, 10))))
        async with world.bot():
            world.say("/claude continue +1 look at it")
            assert await world.outcome(1) == "no_change"
            world.say("/claude plan it")
            assert await world.outcome(2) == "planned"
            world.say("/claude continue +10")
            said = await _said(world, "This session may now spend $5.00")
            assert "You asked for $10.00 more, but only $3.00 was added: $5.00 is the most" in said
            world.say("/claude continue +1")
            await _said(world, "Nothing was added")
        rows_ = (await forgehand(world.environment, "audit", "--json")).json
        raised = [one for one in rows_ if one["action"] == "budget raised"]
        session = world.states()[0]["session"]
        assert [(one["actor"], one["subject"]) for one in raised] == [("alice", session)] * 2
        assert [one["detail"].partition(" that")[0] for one in raised] == ["$3.00 of $10.00", "$1.00 of $1.00"]


@pytest.mark.review("security-2")
async def test_what_is_not_confirmed_is_told_everywhere_and_settled_by_the_operator(tmp_path: Path) -> None:
    """The provider dies in the middle of an answer: what it charges for that nobody knows yet."""
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="1.5") as world:
        world.github.organization("octo-org", owners=["olga"])
        world.model.default(Script([Cut(), Say("Done. " * 40, usage=TokenUsage(10_000, 100))]))
        async with world.bot() as running:
            world.say("/claude look")
            assert await world.outcome(1) == "no_change", world.replies()[0].body
            assert re.search(rf"\$0\.0\d of \$1\.50{OPEN}", _live(world, 1))
            world.say("/claude cost")
            told = await _said(world, "This thread has cost")
            assert re.search(rf"\*\*\$0\.0\d\*\* so far{OPEN}", told) and "$1.1" in told.partition("It may spend")[2]
            session = str(world.states()[0]["session"])
            async with visitor.visitor(world, running.url, "alice") as one:
                assert re.search(OPEN[2:], (await one.get(f"/sessions/{session}")).text)
            async with visitor.visitor(world, running.url, "olga") as one:
                page = await one.get(f"/installations/{world.installation.id}/spend")
                assert re.search(rf"</strong>{OPEN} in the last", page.text)
            [row] = (await forgehand(world.environment, "spend", "--by", "session", "--json")).json
            assert row["unconfirmed_usd"] == pytest.approx(0.32, abs=0.005)
            assert row["session_unconfirmed_usd"] == row["unconfirmed_usd"]
            listed = (await forgehand(world.environment, "spend", "--by", "session")).out
            assert re.search(rf"of \$1\.50{OPEN}", listed)
            assert re.search(OPEN, (await forgehand(world.environment, "spend")).out)
            assert re.search(OPEN, (await forgehand(world.environment, "sessions", "show", session)).out)
            for much in ("0.5", "-1", "nan", "much"):
                assert (await forgehand(world.environment, "sessions", "settle", session, "--", much)).code == 1
            settled = await forgehand(world.environment, "sessions", "settle", session, "0.03")
            assert settled.code == 0 and "$0.03 is now confirmed" in settled.out
            await world.github.changed(lambda: "not confirmed" not in _live(world, 1), 20)
            again = await forgehand(world.environment, "sessions", "settle", session, "0.03")
            assert again.code == 1 and "is confirmed" in again.err
        [after] = (await forgehand(world.environment, "spend", "--by", "session", "--json")).json
        assert after["unconfirmed_usd"] == 0
        assert after["cost_usd"] == pytest.approx(row["cost_usd"] + 0.03)
        rows_ = (await forgehand(world.environment, "audit", "--json")).json
        assert [one["actor"] for one in rows_ if one["action"] == "spending settled"] == ["operator"]


async def _told_alike(world: World, limit: str) -> None:
    session = str(world.states()[0]["session"])
    [row] = (await forgehand(world.environment, "spend", "--by", "session", "--json")).json
    assert f"{row['session_budget_usd']:.2f}" == limit and row["session_cost_usd"] == pytest.approx(row["cost_usd"])
    listed = (await forgehand(world.environment, "spend", "--by", "session")).out
    assert re.search(rf"of \${re.escape(limit)}(?:{OPEN})?", listed)
    shown = (await forgehand(world.environment, "sessions", "show", session, "--json")).json
    assert f"{shown['budget_usd']:.2f}" == limit and shown["cost_usd"] == pytest.approx(row["cost_usd"])
    async with world.bot() as running, visitor.visitor(world, running.url, "alice") as one:
        assert f"the session may spend ${limit}" in (await one.get(f"/sessions/{session}")).text


async def test_money_that_is_added_reaches_the_turn_that_runs(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="1") as world:
        world.model.default(Script([Wait("on"), WRITE, Say("Dear.", usage=DEAR), Say("Done.", usage=DEAR)]))
        async with world.bot():
            world.say("/claude fix this")
            await world.model.reached("on", timeout=60)
            world.say("/claude continue +3")
            assert "may now spend $4.00" in await _said(world, "This session may now")
            world.say("/claude status")
            assert re.search(r"The session has spent \$0\.\d\d of \$4\.00", await _said(world, "Running for"))
            world.model.release("on")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        assert len(world.states()) == 1 and "of $4.00" in _live(world, 1)


async def test_of_two_who_add_at_once_only_one_gets_what_is_left(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="1", FORGEHAND_SESSION_CEILING="4") as world:
        world.model.default(Script([WRITE, Say("Done.", usage=TokenUsage(10, 10))]))
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request"
            world.model.default(Script([Wait("on"), Say("Done.", usage=TokenUsage(10, 10))]))
            world.say("/claude and the tests")
            await world.model.reached("on", timeout=60)
            asked = "GET /repos/*/collaborators/alice/permission"
            held = [world.github.faults.add(Fault(asked, "hold")) for _ in range(2)]
            for thread in (world.issue, world.pulls()[0]):
                world.say("/claude continue +3", on=thread)
            async with asyncio.timeout(20):
                for one in held:
                    await one.reached.wait()
            for one in held:
                one.release.set()
            await world.github.changed(lambda: len(_told(world)) == 2, 20)
            world.model.release("on")
            assert await world.outcome(2) == "no_change"
        assert sorted("Nothing was added" in one for one in _told(world)) == [False, True], _told(world)


def _told(world: World) -> list[str]:
    said = [one.body for thread in (world.issue, world.pulls()[0]) for one in world.replies(thread)]
    return [one for one in said if "may now spend" in one or "Nothing was added" in one]


async def test_nobody_passes_what_the_operator_lets_a_session_spend(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="0.5", FORGEHAND_SESSION_CEILING="0.6") as world:
        world.model.default(Script([WRITE, Say("Dear.", usage=DEAR)]))
        async with world.bot():
            world.say("/claude continue +100 fix this")
            assert await world.outcome() == "over_budget"
            assert "of $0.60" in _live(world, 1) and "a new issue starts a new session" in _live(world, 1)
            assert "continue" not in _live(world, 1).partition("**Next:**")[2]
            assert "You asked for $100.00 more, but only $0.10 was added: $0.60 is the most" in world.replies()[1].body
            world.say("/claude continue +3")
            await _said(world, "Nothing was added: $0.60 is the most")
            world.say("/claude retry")
            assert "A new issue" in (await _said(world, "so nothing was started")).replace("a new issue", "A new issue")
    assert len(world.states()) == 1


async def test_a_turn_with_a_budget_of_its_own_ends_there_and_the_session_goes_on(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="5") as world:
        world.model.default(Script([WRITE, Say("Dear.", usage=DEAR)]))
        async with world.bot():
            world.say("/claude --budget 0.5 fix this")
            assert await world.outcome(1) == "over_budget"
            live = _live(world, 1)
            assert "The budget of $0.50 for this turn was used up" in live and "- [ ] **Continue** · " in live
            assert re.search(rf"\$0\.9\d of \$0\.50{OPEN} · session \$0\.9\d of \$5\.00{OPEN}", live)
            world.model.default(Script([Say("Went on.", usage=TokenUsage(10, 10))]))
            world.say("/claude continue")
            assert await world.outcome(2) in ("pull_request", "no_change"), world.replies()[-1].body


async def test_a_spent_session_reviews_no_push_silently_until_money_is_added(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="0.5") as world:
        world.model.default(Script([Say("Dear.", usage=DEAR)]))
        async with world.bot():
            pull = pull_of(world)
            world.say("/claude review", on=pull)
            assert await world.outcome(on=pull) == "over_budget", world.replies(pull)[-1].body
            for n in range(3):
                world.github.commit(world.repo, "feature", {"calc.py": CODE + "\n" * n}, by="alice")
            await why(world, pull, "so nothing was started")
            assert len(world.replies(pull)) == 2, "the live comment and the answer to `why`"
            world.model.default(Script([verdict(ZERO)]))
            world.say("/claude continue +3", on=pull)
            assert await world.outcome(2, on=pull) == "reviewed", world.replies(pull)[-1].body


async def test_money_for_a_plan_that_waits_makes_no_new_plan(world: World) -> None:
    world.model.default(Script([Say("1. Clamp it.", usage=DEAR)]))
    async with world.bot():
        world.say("/claude plan mending it")
        assert await world.outcome(1) == "planned", world.replies()[0].body
    async with world.bot(FORGEHAND_SESSION_BUDGET="0.5"):
        world.say("/claude approve")
        await _said(world, "so nothing was started")
        world.say("/claude continue +3")
        await _said(world, "This session may now spend $3.50")
        world.model.default(Script([WRITE, Say("Done.", usage=TokenUsage(10, 10))]))
        world.say("/claude approve")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body


async def test_an_undo_of_a_spent_session_costs_nothing(world: World) -> None:
    world.model.default(Script([WRITE, Say("Done.", usage=DEAR)]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome(1) == "pull_request", world.replies()[0].body
    async with world.bot(FORGEHAND_SESSION_BUDGET="0.5"):
        world.say("/claude retry")
        await _said(world, "so nothing was started")
        world.say("/claude undo")
        assert await world.outcome(2) == "pushed", world.replies()[-1].body


async def test_the_agent_is_told_at_eighty_percent_of_what_its_turn_can_have(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="1.5") as world:
        world.model.default(Script([Say("Dear.", usage=TokenUsage(250_000, 100))]))
        async with world.bot():
            world.say("/claude look")
            assert await world.outcome(1) == "no_change"
            dear = Call("Bash", {"command": "true", "description": "Think"}, usage=TokenUsage(1_000, 82_000))
            patient = Call("Bash", {"command": "sleep 3", "description": "Work"}, usage=TokenUsage(10, 10))
            world.model.default(Script([dear, patient, patient, Say("Wrapped up.", usage=TokenUsage(10, 10))]))
            world.say("/claude look again")
            assert await world.outcome(2) == "no_change", world.replies()[-1].body
    words = [str(request.messages) for request in world.model.requests if request.has_tools]
    assert NOTE in words[-1] and NOTE not in words[0]
