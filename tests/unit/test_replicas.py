"""Who is silent, who leads, and what a notice reaches: without any database."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import TransientError
from bot.notices import Notices, Topic
from bot.replicas import BEAT_SECONDS, BeatWatch, Duties, Replicas
from bot.store.base import Store
from bot.store.replicas import Replica

ONE = Replica("one", "home1", "host1", "0.1.0", 0.0, 0, 0.0, leads=True)
TWO = Replica("two", "home2", "host2", "0.1.0", 0.0, 0, 0.0, leads=False)


def looks(watch: BeatWatch, beats: list[tuple[float, int]]) -> list[bool]:
    """Look at these times at these beats of one replica."""
    return [bool(watch.silent([replace(ONE, beat=beat)], at)) for at, beat in beats]


def test_a_beat_that_stands_still_for_long_enough_is_silence() -> None:
    still = [(2.0 * n, 5) for n in range(17)]
    assert looks(BeatWatch(30.0), still) == [False] * 15 + [True] * 2


@pytest.mark.parametrize("patience", [6.0, 30.0])
def test_a_dead_one_is_silent_within_two_beats_more_than_the_patience(patience: float) -> None:
    """That leaves a second of 35 to take its turns over, with the default of 30."""
    for tenths in range(40):  # it dies at any moment between its beats and our looks
        watch, dies = BeatWatch(patience), 20.0 + tenths / 10
        looks_at = (0.7 + BEAT_SECONDS * n for n in itertools.count())
        silent = next(at for at in looks_at if looks(watch, [(at, int(min(at, dies) // BEAT_SECONDS))])[0])
        assert patience - BEAT_SECONDS <= silent - dies <= patience + 2 * BEAT_SECONDS


def test_a_beat_that_moves_late_is_none() -> None:
    slow = [(2.0 * n, n // 14) for n in range(60)]
    assert not any(looks(BeatWatch(30.0), slow))


def test_time_in_which_we_did_not_look_counts_for_nobody() -> None:
    before, after = [(2.0 * n, 5) for n in range(14)], [(40.0 + 2.0 * n, 5) for n in range(15)]
    assert not any(looks(BeatWatch(30.0), [*before, *after]))
    assert looks(BeatWatch(30.0), [*before, *after, (70.0, 5)])[-1]


def test_one_that_comes_again_under_its_name_begins_again() -> None:
    watch = BeatWatch(30.0)
    looks(watch, [(2.0 * n, 5) for n in range(14)])
    assert watch.silent([], 28.0) == []
    assert not any(looks(watch, [(30.0 + 2.0 * n, 5) for n in range(15)]))


class Fellows:
    """A membership whose answers a test sets."""

    def __init__(self, *found: Replica) -> None:
        self.id = "two"
        self.found = list(found)
        self.away = False
        self.reconnects = 0

    async def beat(self) -> list[Replica]:
        if self.away:
            raise TransientError("away")
        return self.found

    def send(self, notices: list[str]) -> None: ...


class Did:
    def __init__(self) -> None:
        self.led = 0
        self.adopted = 0
        self.fails = False

    async def lead(self) -> None:
        if self.fails:
            raise TransientError("not now")
        self.led += 1

    async def adopt(self) -> None:
        self.adopted += 1


@pytest.fixture
async def store(tmp_path: Path) -> Store:
    opened = await Store.open(tmp_path / "data" / "state.db")
    for one in (ONE, TWO):
        values = {**vars(one), "leads": int(one.leads)}
        places = ", ".join(f":{name}" for name in values)
        await opened.run(f"INSERT INTO replicas ({', '.join(values)}) VALUES ({places})", **values)
    return opened


async def test_whoever_leads_leads_alone(store: Store) -> None:
    did, fellows = Did(), Fellows(ONE, TWO)
    ours = Replicas(store, fellows, 30.0)
    ours._duties = Duties(did.lead, did.adopt)
    await ours._beat()
    await ours._take_over()
    assert (did.led, did.adopted, ours.leads) == (0, 0, False)
    await store.run("DELETE FROM replicas WHERE id = 'one'")
    fellows.found = [TWO]
    did.fails = True
    await ours._beat()
    with pytest.raises(TransientError):
        await ours._take_over()
    assert not ours.leads
    did.fails = False
    fellows.found = [replace(TWO, leads=True)]
    await ours._beat()
    await ours._take_over()
    assert (did.led, did.adopted, ours.leads) == (1, 1, True)
    await ours._take_over()
    assert (did.led, did.adopted) == (1, 1), "nobody has left since"
    await ours.step_down()
    await store.close()


async def test_a_lead_that_begins_while_the_service_ends_comes_to_nothing(store: Store) -> None:
    begins, may, led = asyncio.Event(), asyncio.Event(), list[str]()

    async def lead() -> None:
        begins.set()
        await may.wait()
        led.append("led")

    ours = Replicas(store, Fellows(TWO), 30.0)
    await store.run("DELETE FROM replicas WHERE id = 'one'")
    await ours._beat()
    async with ours.on_duty(Duties(lead, Did().adopt)):
        await begins.wait()
    may.set()
    await ours.step_down()
    await asyncio.sleep(0)
    assert (led, ours.leads) == ([], False)
    await store.close()


async def test_who_has_no_answer_is_not_sure_of_itself(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("bot.replicas.time.monotonic", lambda: now[0])
    fellows = Fellows(ONE, TWO)
    ours = Replicas(store, fellows, 30.0)
    await ours._beat()
    now[0] += 23.9
    assert ours.is_sure()
    fellows.away = True
    await ours._beat()
    now[0] += 0.2
    assert not ours.is_sure()
    fellows.away = False
    await ours._beat()
    assert ours.is_sure()
    await store.close()


async def test_a_leader_that_is_missing_for_too_long_is_noticed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("bot.replicas.time.monotonic", lambda: now[0])
    fellows = Fellows(ONE, TWO)
    ours = Replicas(store, fellows, 30.0)
    await ours._beat()
    fellows.found = [TWO]
    now[0] += 29.0
    await ours._beat()
    assert not ours.is_leaderless()
    fellows.away = True
    now[0] += 60.0
    await ours._beat()
    assert not ours.is_leaderless(), "nobody knows"
    fellows.away = False
    await ours._beat()
    assert ours.is_leaderless()
    fellows.found = [replace(TWO, leads=True)]
    await ours._beat()
    assert not ours.is_leaderless()
    await store.close()


def test_a_notice_for_the_leader_goes_to_the_others_only_while_another_leads() -> None:
    sent: list[str] = []
    heard: list[tuple[object, ...]] = []
    notices = Notices()
    for topic in (Topic.DELIVERY, Topic.TURN, Topic.ACCESS):
        notices.on(topic, lambda *about, topic=topic: heard.append((topic, *about)))
    notices.tell(Topic.DELIVERY)
    notices.connect(sent.extend)
    notices.tell(Topic.DELIVERY)
    notices.lead()
    notices.tell(Topic.DELIVERY)
    notices.tell(Topic.TURN, "turn:abc:1")
    assert sent == ['["delivery"]', '["turn", "turn:abc:1"]']
    notices.heard(["x", "7", "[]", '["access", null]', '["unknown to us", 1]'])
    assert heard[-1] == (Topic.ACCESS, None)
    assert len(heard) == 4, "nobody hears what only the leader hears, while another leads"
    notices.follow()
    notices.heard(['["delivery"]', '["made", 1]'])
    assert len(heard) == 4


async def test_a_gap_calls_those_who_look_anyway() -> None:
    notices, missed = Notices(), asyncio.Event()
    notices.on_missed(missed.set)
    notices.heard(None)
    assert missed.is_set()
