"""The ledger of deliveries, threads, sessions, turns, events and comments, as the rest of the bot uses them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bot.errors import StoreError
from bot.kinds.shape import AgentReading
from bot.models import DeliveryId, InstallationId, Outcome, Repo, RepoId, SessionId, Step, Thread, TurnKey, TurnState
from bot.store import conversation, deliveries, posts, repos, sessions
from bot.store.base import Address, Store
from bot.store.deliveries import Addition, DeliveryState, NewDelivery
from bot.store.repos import InstallationRow, InstallationState
from bot.store.rows import run
from bot.store.sessions import NewTurn
from tests.world import stored

REPO = Repo(RepoId(7), "octo", "calc", True, "main")
ISSUE = Thread(REPO, InstallationId(1), 5, False)
PULL = replace(ISSUE, number=8, is_pull=True)


class Clock:
    """Each look is a second later."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
async def store(address: Address) -> AsyncIterator[Store]:
    opened = await Store.open(address, clock=Clock())
    yield opened
    await opened.close()


def asked(source: str, thread: Thread = ISSUE, **more: object) -> NewTurn:
    new = NewTurn(thread, "run", "fix it", "alice", 11, source, "claude-sonnet-5-5", 5.0, 3600.0)
    return replace(new, **more)  # type: ignore[arg-type]


async def begun(store: Store, source: str, thread: Thread = ISSUE, **more: object) -> TurnKey:
    key = await sessions.begin_turn(store, asked(source, thread, **more))
    assert key is not None
    return key


async def test_the_turn_that_outdates_a_comment_has_it_written_again_whatever_happens_next(store: Store) -> None:
    first = await begun(store, "comment:1")
    await sessions.finish(store, first, Outcome.NO_CHANGE)
    comment = await posts.get(store, first)
    assert comment is not None
    await posts.shown(store, comment, "sha", "still", final=True)
    assert not await posts.unsettled(store)
    assert await sessions.begin_turn(store, asked("comment:2"), outdates=first)
    assert [one.key for one in await posts.unsettled(store)] == [first]
    comment = await posts.get(store, first)
    assert comment is not None
    await posts.shown(store, comment, "sha", "still", final=True)
    assert await sessions.begin_turn(store, asked("comment:2"), outdates=first) is None
    assert not await posts.unsettled(store), "the same text again changes nothing"


# Deliveries


async def test_a_delivery_is_stored_once_and_keeps_its_first_body(store: Store) -> None:
    first = NewDelivery(DeliveryId("g"), "issues", "sha-a", body="{}", action="opened", number=5)
    assert await deliveries.add(store, first) is Addition.ADDED
    assert await deliveries.add(store, first) is Addition.DUPLICATE
    assert await deliveries.add(store, replace(first, body_sha256="sha-b", body="[]")) is Addition.CONFLICT
    found = await deliveries.get(store, "g")
    assert found is not None
    assert (found.body, found.state, found.action, found.number) == ("{}", DeliveryState.RECEIVED, "opened", 5)
    assert await deliveries.get(store, "other") is None
    assert await deliveries.known(store, ["g", "h"]) == {"g"}


@pytest.mark.acceptance("A03")
async def test_a_thousand_at_once_are_one(store: Store) -> None:
    same = NewDelivery(DeliveryId("g"), "issues", "sha", body="{}")
    answers = await asyncio.gather(*(deliveries.add(store, same) for _ in range(1000)))
    assert answers.count(Addition.ADDED) == 1
    assert answers.count(Addition.DUPLICATE) == 999


async def test_what_waits_is_told_by_thread_each_account_and_repository_in_turn(store: Store) -> None:
    """Account, repository, thread; in the order in which they came."""
    came = [(1, 10, 5), (1, 10, 5), (1, 10, 6), (1, 11, 5), (1, 10, 7), (2, 20, 1), (2, 20, 1), (None, None, None)]
    for at, (account, repo, number) in enumerate(came):
        came_in = NewDelivery(
            DeliveryId(f"g{at}"), "issues", "sha", body="{}", installation_id=account, repo_id=repo, number=number
        )
        await deliveries.add(store, came_in, received_at=float(at))
    found = [(one.repo_id, one.number, one.guid) for one in await deliveries.waiting_threads(store, 99)]
    assert found == [(10, 5, None), (20, 1, None), (None, None, "g7"), (11, 5, None), (10, 6, None), (10, 7, None)]
    assert [one.since for one in await deliveries.waiting_threads(store, 2)] == [0.0, 5.0]
    for thread, oldest in ((found[0], "g0"), (found[1], "g5"), (found[2], "g7")):
        first = await deliveries.first_of(store, thread)
        assert first is not None and (first.guid, first.body) == (oldest, "{}")
    await deliveries.settle(store, DeliveryId("g0"), DeliveryState.ACTED)
    await deliveries.settle(store, DeliveryId("g7"), DeliveryState.ACTED)
    first = await deliveries.first_of(store, found[0])
    assert first is not None and first.guid == "g1"
    assert await deliveries.first_of(store, found[2]) is None


async def test_settling_drops_the_body_and_happens_once(store: Store) -> None:
    for guid in ("a", "b"):
        await deliveries.add(store, NewDelivery(DeliveryId(guid), "issues", "sha", body="{}"))
    assert [one.guid for one in await deliveries.waiting_threads(store, 5)] == ["a", "b"]
    assert await deliveries.count_try(store, DeliveryId("a")) == 1
    assert await deliveries.count_try(store, DeliveryId("a")) == 2
    assert await deliveries.settle(store, DeliveryId("a"), DeliveryState.IGNORED, "not for us")
    assert not await deliveries.settle(store, DeliveryId("a"), DeliveryState.ACTED)
    assert [one.guid for one in await deliveries.waiting_threads(store, 5)] == ["b"]
    found = await deliveries.get(store, "a")
    assert found is not None
    assert (found.state, found.reason, found.body) == (DeliveryState.IGNORED, "not for us", None)


async def test_why_finds_the_deliveries_of_a_thread(store: Store) -> None:
    for guid, number in (("a", 5), ("b", 6), ("c", 5)):
        await deliveries.add(store, NewDelivery(DeliveryId(guid), "issues", "s", repo_id=7, number=number))
        await deliveries.settle(store, DeliveryId(guid), DeliveryState.IGNORED, "an edit")
    found = await deliveries.unheeded(store, 7, 5, ours="us[bot]", plain="talk")
    assert [row.guid for row in found] == ["c", "a"]
    assert [row.guid for row in await stored.newest_deliveries(store, limit=2)] == ["c", "b"]


# Installations, repositories, threads


@pytest.mark.acceptance("A12")
async def test_installation_events_in_any_order(store: Store) -> None:
    created = InstallationRow(InstallationId(1), "octo", 3, InstallationState.ACTIVE, 100.0)
    deleted = replace(created, state=InstallationState.DELETED, updated_at=90.0)
    suspended = replace(created, state=InstallationState.SUSPENDED, updated_at=110.0)
    await repos.upsert_installation(store, suspended)
    await repos.upsert_installation(store, created)
    assert await repos.installation(store, InstallationId(1)) == suspended
    await repos.upsert_installation(store, deleted)
    await repos.upsert_installation(store, created)
    assert await repos.installations(store) == [deleted]
    assert await repos.installation(store, InstallationId(2)) is None


@pytest.mark.acceptance("B01")
async def test_a_refused_person_is_told_once_per_thread(store: Store) -> None:
    assert not await repos.has_told_refusal(store, ISSUE)
    await repos.note_refusal(store, ISSUE)
    assert await repos.has_told_refusal(store, ISSUE)
    assert not await repos.has_told_refusal(store, PULL)


async def test_a_renamed_repository_keeps_its_threads(store: Store) -> None:
    key = await begun(store, "comment:1")
    await repos.upsert_repo(store, replace(REPO, owner="new", name="name", private=False), InstallationId(2))
    session = await sessions.session(store, key.session)
    assert session.thread.repo.full_name == "new/name"
    assert session.thread.repo.private is False
    assert session.thread.installation == 2


# Sessions and turns


async def test_a_request_becomes_a_queued_turn_with_its_comment(store: Store) -> None:
    await deliveries.add(store, NewDelivery(DeliveryId("g"), "issue_comment", "sha", body="{}"))
    key = await begun(store, "comment:1", source_comment=1, base="dev", delivery=DeliveryId("g"))
    assert key.n == 1
    assert len(key.session) == 8
    turn = await sessions.turn(store, key)
    assert (turn.state, turn.step, turn.outcome, turn.prompt) == (TurnState.QUEUED, Step.PREPARE, None, "fix it")
    assert (turn.thread_id, turn.repo_id, turn.installation_id, turn.number, turn.base) == ("7#5", 7, 1, 5, "dev")
    session = await sessions.session(store, key.session)
    assert session.thread == ISSUE
    comment = await posts.get(store, key)
    assert comment is not None
    assert comment.comment_id is None
    delivery = await deliveries.get(store, "g")
    assert delivery is not None
    assert (delivery.state, delivery.session_id, delivery.body) == (DeliveryState.ACTED, key.session, None)


@pytest.mark.acceptance("A05")
async def test_the_same_source_is_one_turn(store: Store) -> None:
    keys = await asyncio.gather(*(sessions.begin_turn(store, asked("comment:1")) for _ in range(20)))
    (key,) = [key for key in keys if key is not None]
    assert await sessions.by_source(store, "comment:1") == key
    assert await sessions.by_source(store, "comment:2") is None
    assert [turn.key for turn in await sessions.queued(store)] == [key]


async def test_a_second_command_continues_the_session(store: Store) -> None:
    first = await begun(store, "comment:1")
    second = await begun(store, "comment:2")
    elsewhere = await begun(store, "comment:3", replace(ISSUE, number=6))
    assert second == TurnKey(first.session, 2)
    assert elsewhere.session != first.session
    last = await sessions.latest(store, ISSUE)
    assert last is not None
    assert last.key == second
    assert await sessions.latest(store, replace(ISSUE, number=99)) is None


async def test_our_pull_request_shares_the_thread_of_its_issue(store: Store) -> None:
    first = await begun(store, "comment:1")
    await sessions.update_session(store, first.session, pull_number=8, pull_url="u", branch="forgehand/5-x")
    second = await begun(store, "comment:2", PULL)
    assert second == TurnKey(first.session, 2)
    turn = await sessions.turn(store, second)
    assert (turn.thread_id, turn.number) == ("7#5", 8)
    assert await repos.home_thread(store, RepoId(7), 8) == "7#5"
    other_repo = replace(PULL, repo=replace(REPO, id=RepoId(70)))
    assert (await begun(store, "comment:3", other_repo)).session != first.session
    found = await sessions.session(store, first.session)
    assert (found.branch, found.pull_number) == ("forgehand/5-x", 8)


async def test_a_text_that_no_database_can_hold_is_stored_without_that(store: Store) -> None:
    key = await begun(store, "comment:1")
    await sessions.update_turn(store, key, AgentReading("a\ud800b\x00c", notes=("\udfff",)))
    assert (await sessions.turn(store, key)).part(AgentReading) == AgentReading("a?bc", notes=("?",))


async def test_the_way_of_a_turn(store: Store) -> None:
    first = await begun(store, "comment:1")
    second = await begun(store, "comment:2", replace(ISSUE, number=6))
    assert [(one.key, one.state) for one in await sessions.open_turns(store)] == [
        (first, TurnState.QUEUED),
        (second, TurnState.QUEUED),
    ]
    assert await sessions.start(store, first)
    assert [one.state for one in await sessions.open_turns(store)] == [TurnState.RUNNING, TurnState.QUEUED]
    assert [turn.key for turn in await sessions.running(store)] == [first]
    assert await sessions.advance(store, first, Step.FURNISH, base_sha="abc")
    assert await sessions.advance(store, first, Step.WORK)
    begun_at = (await sessions.turn(store, first)).step_times["furnish"]
    assert await sessions.advance(store, first, Step.FURNISH)
    await sessions.update_turn(store, first, files_changed=[{"path": "a.py", "added": 1, "removed": 0}], exit_code=0)
    turn = await sessions.turn(store, first)
    assert (turn.step, turn.base_sha, turn.exit_code, turn.attempts) == (Step.FURNISH, "abc", 0, 1)
    assert turn.files_changed == ({"path": "a.py", "added": 1, "removed": 0},)
    assert turn.step_times["furnish"] == begun_at
    with pytest.raises(ValueError, match="outcome"):
        await sessions.update_turn(store, first, outcome="answered")
    with pytest.raises(ValueError, match="id"):
        await sessions.update_session(store, first.session, id="other")


async def test_an_outcome_once_said_stays(store: Store) -> None:
    key = await begun(store, "comment:1")
    assert await sessions.request_stop(store, key, "alice")
    assert not await sessions.request_stop(store, key, "bob")
    assert await sessions.decide(store, key, Outcome.STOPPED, "alice stopped it") is Outcome.STOPPED
    assert (await sessions.turn(store, key)).state is TurnState.QUEUED
    assert await sessions.finish(store, key, Outcome.PULL_REQUEST, "late") is Outcome.STOPPED
    turn = await sessions.turn(store, key)
    assert (turn.state, turn.outcome, turn.detail) == (TurnState.DONE, Outcome.STOPPED, "alice stopped it")
    finished_at = turn.finished_at
    await sessions.finish(store, key, Outcome.FAILED)
    assert (await sessions.turn(store, key)).finished_at == finished_at
    assert not await sessions.start(store, key)
    assert not await sessions.advance(store, key, Step.PUBLISH)
    assert not await sessions.request_stop(store, key, "carol")


async def test_what_is_not_there_is_said(store: Store) -> None:
    nothing = TurnKey(SessionId("nothing0"), 1)
    with pytest.raises(StoreError, match="no turn 1 of session nothing0"):
        await sessions.turn(store, nothing)
    with pytest.raises(StoreError):
        await sessions.finish(store, nothing, Outcome.FAILED)
    with pytest.raises(StoreError, match="no session"):
        await sessions.session(store, SessionId("nothing0"))


async def test_the_list_shows_the_last_turn_and_the_whole_cost(store: Store) -> None:
    first = await begun(store, "comment:1")
    await sessions.finish(store, first, Outcome.ANSWERED)
    await begun(store, "comment:2")
    other = await begun(store, "comment:3", replace(ISSUE, number=6))
    spend = """
    INSERT INTO spend (id, session_id, turn, installation_id, model, state, reserved_usd, cost_usd, at)
    VALUES ('a', :session, 1, 1, 'm', 'settled', 1.0, 0.25, 1.0), ('b', :session, 2, 1, 'm', 'settled', 1.0, 0.25, 1.0)
    """
    await store.write(lambda db: run(db, spend, session=first.session))
    rows = await sessions.listing(store)
    assert [(row.id, row.repo, row.number, row.turns) for row in rows] == [
        (other.session, "octo/calc", 6, 1),
        (first.session, "octo/calc", 5, 2),
    ]
    assert (rows[1].state, rows[1].outcome, rows[1].cost_usd) == (TurnState.QUEUED, None, 0.5)
    assert rows[0].cost_usd == 0


# Events


@pytest.mark.acceptance("C10")
async def test_lines_are_stored_once_and_numbered_over_the_session(store: Store) -> None:
    first = await begun(store, "comment:1")
    lines = [("assistant", "{}"), ("tool", "x\x00\ud800")]
    assert await conversation.append_events(store, first, lines, expected_offset=0, new_offset=10, skipped=1)
    assert not await conversation.append_events(store, first, lines, expected_offset=0, new_offset=10)
    assert await conversation.append_events(store, first, [], expected_offset=10, new_offset=12)
    second = await begun(store, "comment:2")
    assert await conversation.append_events(store, second, [("result", "{}")], expected_offset=0, new_offset=5)
    assert [(event.seq, event.kind, event.line) for event in await conversation.events_of_turn(store, first)] == [
        (1, "assistant", "{}"),
        (2, "tool", "x?"),
    ]
    assert [event.seq for event in await conversation.events_of_turn(store, second)] == [3]
    assert [event.turn for event in await conversation.events_of_session(store, first.session, after_seq=1)] == [1, 2]
    assert [event.seq for event in await conversation.events_of_session(store, first.session, limit=1)] == [1]
    turn = await sessions.turn(store, first)
    assert (turn.stream_offset, turn.stream_skipped) == (12, 1)
    assert turn.pulse_at is not None


@pytest.mark.acceptance("C10")
async def test_two_writers_at_one_offset_are_one(store: Store) -> None:
    key = await begun(store, "comment:1")
    done = await asyncio.gather(
        *(conversation.append_events(store, key, [("a", str(n))], expected_offset=0, new_offset=7) for n in range(10))
    )
    assert done.count(True) == 1
    assert len(await conversation.events_of_turn(store, key)) == 1


# Comments


async def live(store: Store, key: TurnKey) -> posts.LiveComment:
    found = await posts.get(store, key)
    assert found is not None
    return found


async def test_what_somebody_changed_while_we_wrote_is_not_taken_for_ours(store: Store) -> None:
    key = await begun(store, "comment:1")
    await posts.made(store, key, 77)
    before = await live(store, key)
    await posts.spoilt(store, key, by_bot=False)
    await posts.shown(store, before, "sha-1", "still", final=True)
    after = await live(store, key)
    assert (after.body_sha256, after.still_sha256, after.final) == (None, None, False)
    await posts.shown(store, after, "sha-1", "still", final=True)
    assert (await live(store, key)).final


async def test_the_life_of_a_comment(store: Store) -> None:
    key = await begun(store, "comment:1")
    await posts.made(store, key, 77)
    await posts.shown(store, await live(store, key), "sha-1", "still", final=False)
    await posts.reacted(store, key)
    found = await posts.by_comment(store, 77)
    assert found is not None
    assert (found.key, found.body_sha256, found.edits, found.final, found.reacted) == (key, "sha-1", 1, False, True)
    assert await posts.unsettled(store) == []
    await sessions.finish(store, key, Outcome.ANSWERED)
    assert [comment.key for comment in await posts.unsettled(store)] == [key]
    assert await posts.lost(store, key)
    assert not await posts.lost(store, key)
    await posts.made(store, key, 78)
    await posts.shown(store, await live(store, key), "sha-2", "still", final=True)
    await posts.shown(store, await live(store, key), "sha-3", "still", final=False)
    found = await posts.get(store, key)
    assert found is not None
    assert (found.comment_id, found.final, found.remade) == (78, True, True)
    assert await posts.unsettled(store) == []
    assert await posts.by_comment(store, 77) is None
