"""Keep every live comment true to the store: one writer per installation, only the latest state, final forms first.

A crash loses what waits here, and a lost connection what others told us. Then, and at start, `say_unsaid` touches every
turn whose final form may not be on GitHub.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any

from bot.errors import BotError, GitHubRefused, NotFound, TransientError
from bot.kinds.shape import Places
from bot.live import render
from bot.live.edit_quota import Due, DueList, EditQuotas, Weight
from bot.live.page import Page, Rendered
from bot.live.questions import Questions, TickBox
from bot.models import InstallationId, Thread, TurnKey, TurnState
from bot.notices import Notices, Topic
from bot.outbound import Outbound
from bot.store import approvals, posts, sessions
from bot.store.base import Store
from bot.store.posts import LiveComment

log = logging.getLogger(__name__)

STORE_PAUSE_SECONDS = 1.0
PATIENCE_SECONDS = 2.0
"""The writer waits this long for one comment; then it goes on with the others meanwhile."""
MOST_TRIES_REFUSED = 6
"""After so many refusals, a final form waits for the next start, or until the App is let in again."""
HEARTBEAT_SECONDS = 30.0
"""If only the time has changed, the comment is written no more often than this."""


class LiveBoard:
    """Learns by `touch` that a turn has changed; the store says the rest."""

    def __init__(
        self,
        store: Store,
        outbound: Outbound,
        page: Page,
        quotas: EditQuotas,
        notices: Notices,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folds = page.folds
        self._notices = notices
        notices.on(Topic.COMMENT, self._hear)
        self._store = store
        self._outbound = outbound
        self._page = page
        self._clock = clock
        self.quotas = quotas
        self._questions = Questions(store, outbound, quotas, page.command)
        self._due: dict[InstallationId, DueList] = {}
        self._threads: dict[TurnKey, Thread] = {}
        self._writers: dict[InstallationId, asyncio.Task[None]] = {}
        self._beside: set[asyncio.Task[None]] = set()
        """Touches, and comments that take longer than their writer waits."""
        self._posting: defaultdict[TurnKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._begun: set[TurnKey] = set()

    async def say_unsaid(self) -> None:
        """Say what a former process left unsaid, or what could not be said while the App was not let in."""
        for comment in await posts.unsettled(self._store):
            await self._touch(comment.key, Weight.FINAL)
        for key in await approvals.unsettled_questions(self._store):
            await self._touch(key, Weight.PRESSING)

    async def stop(self) -> None:
        self._due.clear()
        tasks = [*self._writers.values(), *self._beside]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def touch(self, key: TurnKey, *, final: bool = False, pressing: bool = False) -> None:
        """`pressing`: somebody waits for what the comment says next."""
        weight = Weight.FINAL if final else Weight.PRESSING if pressing else Weight.NEWS
        self._notices.tell(Topic.COMMENT, key.workflow_id, int(weight))

    def _hear(self, turn: str, weight: int) -> None:
        """Only the leader hears it: GitHub's limits are for all replicas together."""
        self._start(self._touch(TurnKey.parse(turn), Weight(weight)))

    def leave(self, key: TurnKey) -> None:
        """Forget what was read of a turn that has ended, unless its comment is written here."""
        if not self._notices.leads:
            self.folds.forget(key)

    async def post(self, key: TurnKey) -> None:
        """Find or create the comment, then react: at once if the quota permits."""
        quota = await self.quotas.look((await self._thread(key)).installation)
        if quota.wait_seconds(self._clock(), first=True) > 0:
            self.touch(key, pressing=True)
            return
        await self._make(key)
        await self._react(key)

    def moved(self, key: TurnKey) -> None:
        """Forget the thread of a turn whose issue was transferred."""
        self._threads.pop(key, None)

    async def boxes(self, key: TurnKey) -> list[TickBox]:
        session = await sessions.session(self._store, key.session)
        return await self._page.boxes(await sessions.turn(self._store, key), session)

    async def line(self, key: TurnKey) -> tuple[int, str] | None:
        """Return the place of a waiting turn, and what it waits for, in the words of its comment."""
        view = await self._page.view(key)
        return (view.place.number, render.waiting(view)) if view.place is not None else None

    async def _make(self, key: TurnKey) -> LiveComment:
        async with self._posting[key]:
            comment = await posts.get(self._store, key)
            if comment is None or comment.comment_id is None:
                page = await self._page.render(key)
                posted = await self._outbound.comment(await self._thread(key), page.body, self._page.marker(key))
                await posts.made(self._store, key, posted.id)
                comment = await posts.get(self._store, key)
                if comment is not None and posted.as_given:  # not where it was found with the text of an earlier moment
                    await posts.shown(self._store, comment, _digest(page.body), page.still, final=False)
                    comment = await posts.get(self._store, key)
        assert comment is not None
        return comment

    async def _react(self, key: TurnKey) -> None:
        """Show that the request was seen; a deleted one gets no reaction."""
        comment = await posts.get(self._store, key)
        if comment is None or not comment.reacted:
            turn = await sessions.turn(self._store, key)
            thread, on_diff = await self._thread(key), turn.part(Places).spot is not None
            try:
                await self._outbound.react(thread, turn.source_comment, "eyes", on_review_comment=on_diff)
            except GitHubRefused as refused:
                log.info("no reaction", extra={"turn": key.workflow_id, "error": str(refused)})
            await posts.reacted(self._store, key)

    async def _touch(self, key: TurnKey, weight: Weight) -> None:
        while True:
            try:
                installation = (await self._thread(key)).installation
                break
            except TransientError:
                await asyncio.sleep(STORE_PAUSE_SECONDS)
        self._due.setdefault(installation, DueList()).add(key, weight)
        self._keep_writing(installation)

    def _keep_writing(self, installation: InstallationId) -> None:
        due, writer = self._due.get(installation), self._writers.get(installation)
        if due and (writer is None or writer.done()):
            self._writers[installation] = asyncio.create_task(self._write(installation, due))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    async def _thread(self, key: TurnKey) -> Thread:
        """Find the thread of the comment: where the turn was asked for, or where that issue went."""
        if key not in self._threads:
            turn = await sessions.turn(self._store, key)
            home = (await sessions.session(self._store, key.session)).thread
            here = Thread(home.repo, home.installation, turn.number, home.is_pull)
            comment = await posts.get(self._store, key)
            self._threads[key] = (comment.moved_to if comment else None) or here
        return self._threads[key]

    async def _write(self, installation: InstallationId, due: DueList) -> None:
        while due:
            try:
                await self._write_next(installation, due)
            except TransientError as error:  # of the store: what is due stays due
                log.warning("live comments wait for the store", extra={"error": str(error)})
                await asyncio.sleep(STORE_PAUSE_SECONDS)

    async def _write_next(self, installation: InstallationId, due: DueList) -> None:
        now, quota = self._clock(), await self.quotas.look(installation)
        key, pause = due.next(now, quota)
        if pause > 0:
            await due.wait(pause)
            return
        crowded = due.sessions() > quota.rule.most_sessions
        writing = self._start(self._write_one(installation, due, key, crowded=crowded))
        await asyncio.wait({writing}, timeout=PATIENCE_SECONDS)
        if writing.done():
            return

        def let_go(_: asyncio.Task[None]) -> None:
            due.let_go(key)
            self._keep_writing(installation)

        due.hold(key)
        writing.add_done_callback(let_go)

    async def _write_one(self, installation: InstallationId, due: DueList, key: TurnKey, *, crowded: bool) -> None:
        entry = due.take(key)
        try:
            await self._edit(due, key, entry, crowded=crowded)
            await self._questions.bring_up(key, await self._thread(key))
        except TransientError as error:
            due.put_back(key, entry)
            with contextlib.suppress(TransientError):  # of the store: GitHub will say it again
                await self.quotas.refused(installation, error.retry_after)
        except BotError as error:
            log.warning("live comment cannot be written", extra={"turn": key.workflow_id, "error": str(error)})
            _put_back_final(due, key, entry)
        except Exception:  # one comment that cannot be rendered must not silence the others
            log.exception("live comment failed", extra={"turn": key.workflow_id})
            _put_back_final(due, key, entry)

    async def _edit(self, due: DueList, key: TurnKey, entry: Due, *, crowded: bool) -> None:
        comment = await posts.get(self._store, key)
        if comment is None or comment.final:
            return
        if comment.comment_id is None:
            comment = await self._make(key)
        await self._react(key)
        page = await self._page.render(key, crowded=crowded)
        if not entry.first and not self._is_worth_an_edit(key, page, comment, crowded=crowded):
            return
        if comment.comment_id is not None and _digest(page.body) != comment.body_sha256:
            await self.quotas.spend((await self._thread(key)).installation)
            due.began()
            await self._put(key, comment.comment_id, page.body)
        await posts.shown(self._store, comment, _digest(page.body), page.still, final=page.final)
        self._note(due, key, page)

    def _is_worth_an_edit(self, key: TurnKey, page: Rendered, comment: LiveComment, *, crowded: bool) -> bool:
        if crowded and not page.final and (page.state is TurnState.QUEUED or key in self._begun):
            return False
        rested = self._clock() - comment.updated_at
        return page.still != comment.still_sha256 or not 0 <= rested < HEARTBEAT_SECONDS

    def _note(self, due: DueList, key: TurnKey, page: Rendered) -> None:
        if page.state is TurnState.RUNNING:
            self._begun.add(key)
        if page.final:
            self.folds.forget(key)
            self._begun.discard(key)
            due.forget(key)
            self._threads.pop(key, None)
            self._posting.pop(key, None)

    async def _put(self, key: TurnKey, comment_id: int, body: str) -> None:
        """Edit the comment; if somebody deleted it, make it again, but only once."""
        thread = await self._thread(key)
        try:
            await self._outbound.edit_comment(thread, comment_id, body)
        except NotFound:
            if not await posts.lost(self._store, key):
                return
            log.info("live comment was deleted; it is made again, once", extra={"turn": key.workflow_id})
            await self._make_again(key, thread, body)

    async def _make_again(self, key: TurnKey, thread: Thread, body: str) -> None:
        try:
            made = await self._outbound.comment(thread, body, self._page.marker(key))
        except GitHubRefused as refused:  # the whole thread is gone, or locked
            log.info("there is no place for a live comment", extra={"turn": key.workflow_id, "error": str(refused)})
            return
        await posts.made(self._store, key, made.id)
        comment = await posts.get(self._store, key)
        if comment is not None and comment.moved_to is not None:  # it came along, and shows what it showed before
            await self._outbound.edit_comment(thread, made.id, body)


def _put_back_final(due: DueList, key: TurnKey, entry: Due) -> None:
    """Drop what is not final: the next change brings a newer state."""
    if entry.final and entry.tries < MOST_TRIES_REFUSED:
        due.put_back(key, entry)


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
