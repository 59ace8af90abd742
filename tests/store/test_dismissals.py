"""What a repository remembers as no bug: bounded, once for each finding, and of no use to another repository."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from functools import partial

from bot.models import InstallationId, Repo, RepoId, SessionId, Thread
from bot.sessions.reviews.sameness import Fingerprint
from bot.store import audit, dismissals, findings, repos, sessions
from bot.store.base import Store
from bot.store.findings import StoredFinding
from bot.store.sessions import NewTurn

REPO, OTHER = RepoId(7), RepoId(8)


def finding(place: int, repo: RepoId = REPO) -> StoredFinding:
    name = f"ab12cd34-{repo}-{place}"
    return StoredFinding(
        name, SessionId("ab12cd34"), 1, place, repo, 3, "a.py", place, f"Wrong {place}. " * 90, "", 1, None
    )


async def known(store: Store) -> None:
    for repo in (REPO, OTHER):
        await repos.upsert_repo(store, Repo(repo, "octo", f"shop{repo}", True, "main"), InstallationId(1))


async def test_a_reviews_repository_keeps_the_newest_dismissals(store: Store) -> None:
    await known(store)
    ticks = itertools.count(1_000.0)
    store.now = partial(next, ticks)
    await dismissals.dismiss(store, finding(1, OTHER), "alice", "", "tick:other")
    thread = Thread(Repo(REPO, "octo", "shop7", True, "main"), InstallationId(1), 3, is_pull=True)
    key = await sessions.begin_turn(
        store, NewTurn(thread, "review", "", "alice", 11, "comment:1", "claude-sonnet-5-5", 5.0, 60.0)
    )
    assert key is not None
    await findings.put_findings(store, [replace(finding(1), session_id=key.session)], [])
    for place in range(1, dismissals.MOST + 6):
        assert await dismissals.dismiss(store, finding(place), "alice", "why " * 400, f"tick:{place}")
    kept = await dismissals.of_repo(store, REPO)
    assert [one.line for one in kept] == list(range(dismissals.MOST + 5, 5, -1))
    assert all(len(one.why) <= dismissals.MOST_WHY and len(one.body) <= dismissals.MOST_BODY for one in kept)
    assert len(await dismissals.of_repo(store, OTHER)) == 1
    [first] = [one for one in await findings.of_pull(store, REPO, 3) if one.place == 1]
    assert first.state == findings.DISMISSED and await dismissals.of_finding(store, REPO, first.id) is None
    assert await dismissals.take_back(store, REPO, first.id, "alice", "tick:back"), "its box still counts"
    assert [one.place for one in await findings.open_findings(store, REPO, 3)] == [1]
    new = [Fingerprint("a.py", "c0de", f"Another {n}. " * 90) for n in range(200)]
    old = [Fingerprint(one.path, one.code_sha256, one.body) for one in kept]
    began = time.process_time()
    assert not any(mine.likeness(theirs) for mine in new for theirs in old)
    assert time.process_time() - began < 2, "as many findings as a review may have, with as many dismissals"


async def test_a_dismissal_of_reviews_counts_once_and_belongs_to_its_repository(store: Store) -> None:
    await known(store)
    assert await dismissals.dismiss(store, finding(1), "alice", "intended", "tick:1")
    assert not await dismissals.dismiss(store, finding(1), "bob", "no", "tick:2")
    one = await dismissals.of_finding(store, REPO, finding(1).id)
    assert one is not None and (one.login, one.why) == ("alice", "intended")
    assert await dismissals.of_finding(store, OTHER, finding(1).id) is None
    assert not await dismissals.take_back(store, OTHER, one.finding_id, "bob", "tick:3")
    for source, counts in (("tick:3", True), ("tick:3", True), ("tick:4", False)):  # said, repeated after a crash, late
        assert await dismissals.take_back(store, REPO, one.finding_id, "bob", source) is counts
    assert [(one.actor, one.action) for one in await audit.listing(store)].count(("bob", "dismissal taken back")) == 1
    assert await dismissals.of_repo(store, REPO) == []
