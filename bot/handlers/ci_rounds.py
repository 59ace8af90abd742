"""Looks at red checks once they have settled: leaves them, runs them again, fixes them by a turn, or asks people."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from bot.commands.options import NO_OPTIONS
from bot.errors import BotError, GitHubRefused, TransientError
from bot.events.checks import CheckEnded
from bot.events.threads import Remark, text_digest
from bot.github import checks
from bot.github.types import Pull
from bot.handlers import turns
from bot.handlers.desk import Desk, Handled, ignored
from bot.handlers.turns import Wish
from bot.kinds import TRAITS
from bot.loops import Loop
from bot.models import DeliveryId, Origin, Person, TurnState
from bot.sessions.reading import head_checks
from bot.sessions.reading.head_checks import HeadChecks
from bot.store import ci, sessions
from bot.store.ci import CheckWatch, Reruns
from bot.words import endings, on_ci, replies

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
AT_ONCE = 8
WAIT_SECONDS = 60.0
"""Time until the next look at running checks without news."""
PATIENCE_SECONDS = 30 * 60.0
"""The longest wait for running checks after the last news."""
AGAIN_SECONDS = 30.0
AFTER_A_BUG_SECONDS = 600.0


@dataclass(frozen=True)
class ChecksFailed(Remark):
    """Red checks, as if the person who wants them fixed had said so on the pull request."""

    key: str = ""

    @property
    def source(self) -> str:
        return self.key


async def ended(event: CheckEnded, desk: Desk) -> Handled:
    """Note that a check has ended, without a request to GitHub: a commit may have hundreds, which end in bursts."""
    if event.app_id == (await desk.github.identity()).app_id:
        return ignored(replies.OWN_CHECK)
    if await ci.heard_again(desk.store, event.repo.id, event.sha):
        return ignored("noted: the checks of this commit are looked at once they have settled")
    ours = await ci.ours(desk.store, event.repo.id, event.sha)
    kind = TRAITS[ours.kind] if ours else None
    if ours is None or kind is None or not kind.checks_followed or ours.newest != event.sha:
        return ignored("it is the check of a commit that we did not push, or not last")
    if not await ci.heard(desk.store, event.repo.id, ours.pull_number, event.sha, fresh=not kind.mends_checks):
        return ignored("somebody has switched CI fixes off on this pull request (`stop ci`)")
    return ignored("noted: the checks of this commit are looked at once they have settled")


class CheckWatches:
    """Follows the watches of `store/ci`: each is looked at when it is due."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._room = asyncio.Semaphore(AT_ONCE)
        self._under_way: set[tuple[int, int]] = set()
        self.loop = Loop("ci_rounds", self._look, LOOK_SECONDS)

    async def _look(self) -> None:
        """Look at due watches side by side, so that a slow one holds up no other."""
        for watch in await ci.due(self._desk.store):
            key = (watch.repo_id, watch.number)
            if key not in self._under_way:
                self._under_way.add(key)
                self.loop.begin(self._follow(key, watch))

    async def _follow(self, key: tuple[int, int], watch: CheckWatch) -> None:
        try:
            async with self._room:
                if wait := await self._look_at(watch):
                    await ci.later(self._desk.store, watch, wait)
        except BotError as error:  # from the store: it stays due
            log.warning("checks wait for the store", extra={"error": str(error)})
        finally:
            self._under_way.discard(key)

    async def _look_at(self, watch: CheckWatch) -> float:
        """Look once; return 0, or the seconds until the next try."""
        try:
            await _CheckLook(watch, self._desk).go()
        except TransientError as error:
            log.warning("checks wait", extra={"error": str(error)})
            return error.retry_after or AGAIN_SECONDS
        except BotError as error:  # the repository or the App is gone: nobody to tell
            log.warning("checks are let go", extra={"error": str(error)})
            await ci.rest(self._desk.store, watch)
        except Exception:  # a bug; another look is safe
            log.exception("checks could not be looked at")
            return AFTER_A_BUG_SECONDS
        return 0.0


@dataclass(frozen=True)
class _CheckLook:
    """One look at a watch; a repeated one finds its effects by their keys."""

    watch: CheckWatch
    desk: Desk

    async def go(self) -> None:
        """Look, and tell the person who asked if we cannot help."""
        try:
            await self._look()
        except TransientError:
            raise
        except BotError as error:
            if self.watch.wish is None:
                raise
            log.warning("checks cannot be read", extra={"error": str(error)})
            await self._say("lost", on_ci.cannot_be_read(self.watch.sha, str(error), self.desk.settings.command))
            await self._rest()

    async def _look(self) -> None:
        watch, thread = self.watch, self.watch.thread
        if watch.wish is None:
            config, _ = await self.desk.config_of(thread)
            if config is None or not config.triggers.ci_fix:
                return await self._rest()
        latest = await sessions.latest(self.desk.store, thread)
        if latest is not None and latest.state is not TurnState.DONE:  # it may push and so outdate these checks
            return await self._wait()
        pull = await self.desk.github.installation(thread.installation).pull(thread.repo, watch.number)
        if not await self._is_meant(pull):
            return None
        standing = await head_checks.at_head(self.desk.github, thread, pull, watch.sha)
        if self.desk.clock() < watch.event_at + PATIENCE_SECONDS:
            again = await self._rerun(watch.rerun) if watch.rerun else False
            if again is None:
                return None
            if again or standing.under_way:
                return await self._wait()
        if not standing.red:
            return await self._all_well(standing)
        if watch.rerun is None:
            return await ci.ran_again(self.desk.store, watch, await self._to_run_again(standing))
        return await self._attempt(pull, standing)

    async def _is_meant(self, pull: Pull) -> bool:
        """Tell whether it is still wanted; without a wish, only our commits on our pull requests count."""
        watch, store = self.watch, self.desk.store
        gone = pull.state != "open" or pull.head_repo_id != watch.repo_id
        own = pull.author.id == (await self.desk.github.identity()).bot_id
        if gone or (watch.wish is None and (not own or pull.head_sha != watch.sha)):
            if watch.wish is not None:
                await self._say("gone", endings.pull_closed(watch.number))
            await self._rest()
            return False
        if pull.head_sha != watch.sha:
            await ci.follow(store, watch, pull.head_sha)
            return False
        return True

    async def _rerun(self, reruns: Reruns) -> bool | None:
        """Run failed workflows again, and tell whether any runs; None if GitHub refused, which needs another look."""
        at, thread = self.desk.github.installation(self.watch.installation_id), self.watch.thread
        under_way = False
        for number, attempt in reruns.runs.items():
            run = await checks.workflow_run(at, thread.repo, int(number))
            if run.attempt > attempt:
                under_way = under_way or not run.ended
                continue
            try:
                await self.desk.outbound.rerun(thread, run.id, attempt)
            except GitHubRefused as error:
                # GitHub gives no token with a permission that the installation lacks (422), and no access without it.
                lacks_permission = error.status == 422 or "not accessible" in error.message.lower()
                note = on_ci.RERUN_NOT_ALLOWED if lacks_permission else on_ci.RERUN_REFUSED
                left = {one: n for one, n in reruns.runs.items() if one != number}
                await ci.ran_again(self.desk.store, self.watch, replace(reruns, runs=left, note=note))
                return None
            under_way = True
        return under_way

    async def _to_run_again(self, standing: HeadChecks) -> Reruns:
        """Return the failed runs of Actions, without those that someone has run again already."""
        at = self.desk.github.installation(self.watch.installation_id)
        names, suites = tuple(one.name for one in standing.red), {one.suite for one in standing.red}
        try:
            found = await checks.workflow_runs(at, self.watch.thread.repo, self.watch.sha)
        except GitHubRefused:
            return Reruns({}, names, on_ci.RERUN_NOT_ALLOWED)
        of_these = [run for run in found if run.suite in suites and run.ended]
        runs = {str(run.id): run.attempt for run in of_these if run.attempt == 1}
        return Reruns(runs, names, "" if of_these else on_ci.NO_RERUN)

    async def _all_well(self, standing: HeadChecks) -> None:
        watch, again = self.watch, self.watch.rerun
        inherited = [one.name for one in standing.inherited]
        unknown = [one.name for one in (*standing.under_way, *standing.undecided)]
        ran = again.names if again and again.runs else ()
        flaky = [name for name in ran if name not in (*inherited, *unknown)]
        if flaky:
            await self._say("flake", on_ci.was_a_flake(watch.sha, flaky))
        if inherited:
            await self._say("base", on_ci.red_below(watch.sha, inherited))
        if standing.under_way and (watch.wish or ran):
            late = [one.name for one in standing.under_way]
            await self._say("late", on_ci.never_ended(watch.sha, late, self.desk.settings.command))
        elif watch.wish and not flaky and not inherited:
            await self._say("well", self._none_red(standing))
        await self._rest()

    def _none_red(self, standing: HeadChecks) -> str:
        if not standing.has_any:
            command = self.desk.settings.command
            return on_ci.no_checks(self.watch.sha, command, without_statuses=standing.without_statuses)
        undecided = [(one.name, one.conclusion or "") for one in standing.undecided]
        return on_ci.nothing_red(self.watch.sha, undecided, without_statuses=standing.without_statuses)

    async def _attempt(self, pull: Pull, standing: HeadChecks) -> None:
        before = await ci.attempts(self.desk.store, self.watch)
        if all(one.source != self.watch.source for one in before):  # one for each commit of a round
            if len(before) >= on_ci.MOST_ATTEMPTS:
                await self._hand_over(before, standing)
            else:
                await self._begin(pull, standing)
        await self._rest()

    async def _begin(self, pull: Pull, standing: HeadChecks) -> None:
        watch, wish = self.watch, self.watch.wish
        remark = await self._remark(pull)
        if remark is None or not (decision := await self.desk.judge(remark)).allowed:
            log.info("nobody with write access wants these checks fixed", extra={"pull": watch.number})
            return
        log.info("fixing checks", extra={"pull": watch.number, "why": decision.reason})
        again = watch.rerun
        notes = [again.note] if again and again.note else []
        await ci.put_attempt(self.desk.store, watch, [one.name for one in standing.red], notes)
        words = f"{on_ci.REQUEST}\n\n{wish.words if wish else ''}".strip()
        await turns.begin(Wish("fix_ci", words, wish.options if wish else NO_OPTIONS), remark, self.desk)

    async def _remark(self, pull: Pull) -> ChecksFailed | None:
        """Make a remark in the name of the person who asked for the fix, or for the work whose checks fail."""
        watch, wish = self.watch, self.watch.wish
        if wish is None:
            ours = await ci.ours(self.desk.store, watch.repo_id, watch.sha)
            if ours is None or not TRAITS[ours.kind].checks_followed:
                return None
            person, at = Person(ours.requester_id, ours.requester, "User"), self.desk.clock()
        else:
            person, at = Person(wish.id, wish.login, "User"), wish.at
        return ChecksFailed(
            origin=Origin(DeliveryId(""), "check_run", "completed", person),
            thread=watch.thread,
            author=person,
            body="",
            created_at=at,
            comment_id=wish.comment_id if wish else None,
            via_app=None,
            thread_sha256=wish.thread_sha256 if wish and wish.thread_sha256 else text_digest(pull.title, pull.body),
            key=watch.source,
        )

    async def _hand_over(self, before: list[ci.Attempt], standing: HeadChecks) -> None:
        tried = [(one.sha, one.failing, one.outcome, one.commit_sha) for one in before]
        notes = dict.fromkeys(note for one in before for note in one.notes)
        words = on_ci.handed_over(
            tried,
            [(one.name, one.url) for one in standing.red],
            [one.name for one in standing.inherited],
            list(notes),
            self.desk.settings.command,
        )
        await self._say("over", words)

    async def _say(self, what: str, words: str) -> None:
        marker = f"<!-- forgehand:ci={what}-{self.watch.round}-{self.watch.sha[:12]} -->"
        await self.desk.outbound.comment(self.watch.thread, f"{marker}\n{words}", marker)

    async def _wait(self) -> None:
        watch, store = self.watch, self.desk.store
        is_news = watch.wish is not None and self.desk.clock() < watch.event_at + WAIT_SECONDS
        if is_news and await ci.attempt(store, watch.source) is None:  # else we are working on it
            await self._say("waits", on_ci.waits(watch.sha, self.desk.settings.command))
        await ci.later(store, watch, WAIT_SECONDS)

    async def _rest(self) -> None:
        await ci.rest(self.desk.store, self.watch)
