"""What the operator's lists and pages read: filtered, summed, and the same in either database."""

from __future__ import annotations

import pytest

from bot.models import DeliveryId, InstallationId, Outcome, RepoId
from bot.store import at_work, audit, deliveries, foretelling, repo_configs, sessions, spend, spend_lines
from bot.store.base import Store
from bot.store.deliveries import DeliveryState, NewDelivery
from bot.store.repo_configs import ConfigState
from bot.store.rows import run
from bot.store.sought import Sought
from tests.store.test_sessions import ISSUE, begun

DAY = 86_400.0


async def paid(store: Store, session: str, turn: int, usd: float, at: float) -> None:
    sql = """
    INSERT INTO spend (id, session_id, turn, installation_id, model, state, reserved_usd, cost_usd, at, repo_id,
        input_tokens)
    VALUES (:id, :session, :turn, :installation, 'm', 'settled', 1.0, :usd, :at, :repo, 10)
    """
    ids = {"installation": ISSUE.installation, "repo": ISSUE.repo.id}
    await store.write(
        lambda db: run(db, sql, id=f"{session}-{turn}-{at}", session=session, turn=turn, usd=usd, at=at, **ids)
    )


async def test_money_is_summed_by_turn_model_and_day_within_the_period(store: Store) -> None:
    key = await begun(store, "comment:1")
    await sessions.finish(store, key, Outcome.ANSWERED)
    for at, usd in ((0.5 * DAY, 0.25), (0.6 * DAY, 0.5), (1.5 * DAY, 1.0), (2.5 * DAY, 2.0)):
        await paid(store, key.session, key.n, usd, at)
    lines = await spend_lines.between(store, 0.0, 2 * DAY, ISSUE.installation, 10)
    assert [(one.day, one.cost_usd, one.requests, one.input_tokens) for one in lines] == [
        (0, 0.75, 2, 20),
        (1, 1.0, 1, 10),
    ]
    assert (lines[0].repo, lines[0].number, lines[0].turn) == (ISSUE.repo.full_name, ISSUE.number, key.n)
    assert await spend_lines.between(store, 0.0, 2 * DAY, InstallationId(99), 10) == []
    assert len(await spend_lines.between(store, 0.0, 3 * DAY, None, 2)) == 2, "no more than asked for"
    for by in spend.GROUPS:
        rows = await spend.summed(store, by, 0.0, until=2 * DAY, repo=ISSUE.repo.full_name.upper())
        assert sum(row["cost_usd"] for row in rows) == pytest.approx(1.75), by
        assert await spend.summed(store, by, 0.0, until=2 * DAY, repo="octo/none") == []
    assert [row["kind"] for row in await spend.summed(store, "kind", 0.0)] == ["run"]
    assert await foretelling.costs(store, ISSUE.repo.full_name) == {"run": [3.75]}
    assert await foretelling.costs(store, "octo/none") == {}


async def test_what_runs_and_waits_is_read_without_its_words(store: Store) -> None:
    key = await begun(store, "comment:1")
    [one] = await at_work.turns(store, 10)
    assert (one.session_id, one.repo, one.number, one.cost_usd) == (key.session, "octo/calc", 5, 0.0)
    assert not hasattr(one, "prompt")
    await sessions.finish(store, key, Outcome.ANSWERED)
    assert await at_work.turns(store, 10) == []
    assert await at_work.allowances(store, 10) == []
    assert await at_work.today(store, 10) == []


async def test_a_ledger_is_searched_by_all_that_a_line_shows(store: Store) -> None:
    await begun(store, "comment:1")
    for guid, sender, reason in (("a", "alice", None), ("b", "bob[bot]", "it is our own edit")):
        new = NewDelivery(
            DeliveryId(guid), "issues", "x", "{}", "opened", repo_id=ISSUE.repo.id, number=5, sender=sender
        )
        await deliveries.add(store, new, 100.0)
        await deliveries.settle(store, new.guid, DeliveryState.FAILED if guid == "a" else DeliveryState.IGNORED, reason)

    async def found(**sought: object) -> list[str]:
        return [one.guid for one in await deliveries.listing(store, Sought(**sought))]  # type: ignore[arg-type]

    assert await found() == ["a", "b"]
    assert await found(without=("it is our own edit", "another")) == ["a"]
    assert await found(repo="OCTO/calc", by="ALICE", state="failed", since=99.0) == ["a"]
    assert await found(since=101.0) == await found(by="al") == await found(repo="octo/none") == []
    [line] = await deliveries.listing(store, Sought(state="failed"))
    assert line.can_replay and line.repo == "octo/calc"
    assert [(one.event, one.count) for one in await foretelling.events(store, "octo/CALC", 0.0)] == [("issues", 1)]
    assert await foretelling.known_since(store, "octo/calc") == 100.0
    assert await foretelling.known_since(store, "octo/none") is None
    assert [await deliveries.reopen(store, one, by="root") for one in ("a", "a", "b")] == [True, False, False]
    assert [(one.actor, one.subject) for one in await audit.listing(store, Sought(by="ROOT"))] == [("root", "a")]


async def test_a_look_at_a_config_is_noted_when_it_tells_something_new(store: Store) -> None:
    await repo_configs.note(store, ISSUE.repo.id, ConfigState.OK)
    assert await repo_configs.of_installation(store, ISSUE.installation, 10) == [], "nobody knows this repository yet"
    await begun(store, "comment:1")
    [before] = await repo_configs.of_installation(store, ISSUE.installation, 10)
    assert before.config_state is None
    await repo_configs.note(store, ISSUE.repo.id, ConfigState.ERROR, "line 2")
    [wrong] = await repo_configs.of_installation(store, ISSUE.installation, 10)
    assert (wrong.config_state, wrong.config_problem) == (ConfigState.ERROR, "line 2")
    await repo_configs.note(store, ISSUE.repo.id, ConfigState.ERROR, "line 2")
    assert await repo_configs.of_installation(store, ISSUE.installation, 10) == [wrong]
    await repo_configs.note(store, RepoId(ISSUE.repo.id), ConfigState.OK)
    [fine] = await repo_configs.of_installation(store, ISSUE.installation, 10)
    assert (fine.config_state, fine.config_problem) == (ConfigState.OK, None)
