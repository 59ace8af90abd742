"""Keeps the dashboards true to the store, with what live comments leave of the edit quota. Only the leader does it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections import defaultdict
from dataclasses import dataclass

from bot.dashboard import page, pulls
from bot.dashboard.picture import Gathering
from bot.dashboard.pulls import OwnPulls
from bot.errors import BotError, GitHubRefused, TransientError
from bot.github.client import GitHubApp
from bot.live.edit_quota import EditQuotas, Weight
from bot.loops import Loop
from bot.models import InstallationId, RepoId, SessionId, TurnKey
from bot.notices import Notices, Topic
from bot.outbound import Outbound
from bot.store import dashboards
from bot.store.dashboards import Dashboard, DashboardState
from bot.words import on_dashboards

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
EVERYTHING_SECONDS = 3600.0
"""News may be lost, and a day or a week may have ended."""
REST_SECONDS = 10.0
"""Without a person who waits, a dashboard is edited no more often."""
MONEY_SECONDS = 900.0
"""If only the money has changed, it is edited no more often."""
PULLS_SECONDS = 60.0
"""A look costs up to 31 requests, and the checks of a commit end one after the other."""
GONE = (404, 410)
MOVED = (301, 307, 308)


@dataclass
class DashboardNews:
    pressing: bool = False
    """Somebody has ticked a box or changed the issue, and looks at it."""
    pulls: bool = True
    """Our pull requests or their checks may have changed."""
    not_before: float = 0.0


class DashboardBoard:
    """Learns by notices that something has changed; the store says the rest."""

    def __init__(
        self, gathering: Gathering, github: GitHubApp, outbound: Outbound, quotas: EditQuotas, notices: Notices
    ) -> None:
        self._gathering = gathering
        self._store = gathering.store
        self._github = github
        self._outbound = outbound
        self._quotas = quotas
        self._sessions: dict[SessionId, bool] = {}
        """With news of their turns; true if one has ended."""
        self._due: dict[RepoId, DashboardNews] = {}
        self._pulls: dict[RepoId, tuple[float, OwnPulls]] = {}
        """With the time of the look."""
        self._pulls_due: dict[RepoId, float] = {}
        self._writers: dict[InstallationId, asyncio.Task[None]] = {}
        self._next_whole = 0.0
        self.loop = Loop("dashboards", self._look, LOOK_SECONDS)
        notices.on(Topic.COMMENT, self._hear_of_turn)
        notices.on(Topic.DASHBOARD, self._hear)
        notices.on_missed(self._look_at_everything)

    def _hear_of_turn(self, turn: str, weight: int) -> None:
        if self.loop.has_ended:
            return
        session = TurnKey.parse(turn).session
        self._sessions[session] = self._sessions.get(session, False) or weight == Weight.FINAL

    def _hear(self, repo: int, pressing: int = 0) -> None:
        if not self.loop.has_ended:
            self._add(RepoId(repo), pressing=bool(pressing), pulls=True)
            self.loop.wake()

    def _look_at_everything(self) -> None:
        self._next_whole = 0.0

    def _add(self, repo: RepoId, *, pressing: bool, pulls: bool) -> None:
        news = self._due.setdefault(repo, DashboardNews(pulls=False))
        news.pressing, news.pulls = news.pressing or pressing, news.pulls or pulls
        news.not_before = 0.0 if pressing else min(news.not_before, self._now() + REST_SECONDS)

    async def _look(self) -> None:
        clock = asyncio.get_running_loop().time
        if clock() >= self._next_whole:
            for repo in await dashboards.shown_anywhere(self._store):
                self._add(repo, pressing=False, pulls=False)
            self._next_whole = clock() + EVERYTHING_SECONDS
        for repo in [repo for repo, at in self._pulls_due.items() if at <= clock()]:
            del self._pulls_due[repo]
            self._add(repo, pressing=False, pulls=True)
        heard, self._sessions = self._sessions, {}
        for ended in (False, True):
            named = [session for session, final in heard.items() if final is ended]
            for repo in await dashboards.of_sessions(self._store, named) if named else ():
                self._add(repo, pressing=False, pulls=ended)
                if ended:  # perhaps with a new pull request
                    self._pulls.pop(repo, None)
        await self._begin(clock())

    async def _begin(self, now: float) -> None:
        """Write what is due, with one writer for each installation: a slow one does not hold up the others."""
        self._writers = {one: task for one, task in self._writers.items() if not task.done()}
        of_each: defaultdict[InstallationId, list[tuple[Dashboard, DashboardNews]]] = defaultdict(list)
        for repo, news in list(self._due.items()):
            if news.not_before > now:
                continue
            dashboard = await dashboards.get(self._store, repo)
            if dashboard is None or dashboard.state is DashboardState.GONE:
                del self._due[repo]
            elif dashboard.installation_id not in self._writers:
                of_each[dashboard.installation_id].append((dashboard, self._due.pop(repo)))
        for installation, due in of_each.items():
            due.sort(key=lambda one: (not one[1].pressing, one[0].edited_at))
            self._writers[installation] = self.loop.begin(self._write_all(due))

    async def _write_all(self, due: list[tuple[Dashboard, DashboardNews]]) -> None:
        for dashboard, news in due:
            wait = LOOK_SECONDS
            try:
                wait = await self._write(dashboard, news)
            except TransientError as error:
                with contextlib.suppress(TransientError):  # of the store: GitHub will say it again
                    await self._quotas.refused(dashboard.installation_id, error.retry_after)
                wait = max(error.retry_after or 0.0, REST_SECONDS)
            except BotError as error:
                log.warning("a dashboard cannot be written", extra={"repo": dashboard.repo_id, "error": str(error)})
                wait = EVERYTHING_SECONDS
            except Exception:  # one that cannot be rendered must not silence the others
                log.exception("a dashboard failed", extra={"repo": dashboard.repo_id})
                wait = EVERYTHING_SECONDS
            if wait > 0:
                later = self._due.setdefault(dashboard.repo_id, news)
                later.pulls, later.pressing = later.pulls or news.pulls, later.pressing or news.pressing
                later.not_before = self._now() + wait

    async def _write(self, dashboard: Dashboard, news: DashboardNews) -> float:
        """Bring it up to date, and return 0, or the seconds after which to look again."""
        now, quota = self._gathering.clock(), await self._quotas.look(dashboard.installation_id)
        if news.pressing:
            if (wait := quota.wait_seconds(now, first=True)) > 0:
                return wait
        elif not quota.is_plentiful(now):
            return REST_SECONDS
        elif 0 <= now - dashboard.edited_at < REST_SECONDS:
            return REST_SECONDS - (now - dashboard.edited_at)
        if dashboard.number is None:
            if dashboard.state is not DashboardState.ON:
                return 0.0
            await make(self._outbound, dashboard, self._gathering)
            dashboard = await dashboards.get(self._store, dashboard.repo_id) or dashboard
        await self._bring_up(dashboard, news)
        return 0.0

    async def _bring_up(self, dashboard: Dashboard, news: DashboardNews) -> None:
        text, still = page.off(dashboard), page.off(dashboard)
        if dashboard.state is DashboardState.ON:
            picture = await self._gathering.picture(dashboard, await self._read_pulls(dashboard, news))
            text, still = page.body(picture), page.body(picture, money=False)
        rested = self._gathering.clock() - dashboard.edited_at
        only_money = _digest(still) == dashboard.still_sha256 and 0 <= rested < MONEY_SECONDS
        if _digest(text) == dashboard.body_sha256 or (only_money and not news.pressing):
            return
        await self._quotas.spend(dashboard.installation_id)
        try:
            await self._outbound.edit_issue(dashboard.thread, text, page.marker(dashboard))
        except GitHubRefused as refused:
            if refused.status in MOVED:
                await dashboards.moved(self._store, dashboard.repo_id)
            elif refused.status in GONE:
                number, again = dashboard.number or 0, dashboard.by_config
                await dashboards.deleted(self._store, dashboard.repo_id, number, again=again)
                self._add(dashboard.repo_id, pressing=True, pulls=True)
            else:
                raise
            return
        await dashboards.shown(self._store, dashboard, _digest(text), _digest(still))

    async def _read_pulls(self, dashboard: Dashboard, news: DashboardNews) -> OwnPulls:
        read_at, known = self._pulls.get(dashboard.repo_id, (-PULLS_SECONDS, OwnPulls()))
        if read_at >= 0 and not (news.pulls and self._now() - read_at >= PULLS_SECONDS):
            if news.pulls:
                self._pulls_due[dashboard.repo_id] = read_at + PULLS_SECONDS
            return known
        found = await pulls.read(self._github, dashboard)
        self._pulls[dashboard.repo_id] = (self._now(), found)
        return found

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


async def make(outbound: Outbound, dashboard: Dashboard, gathering: Gathering) -> int:
    """Find the issue by its marker, or open it with what is known without asking GitHub."""
    text = page.body(await gathering.picture(dashboard, OwnPulls()))
    number = await outbound.issue(dashboard.thread, on_dashboards.TITLE, text, page.marker(dashboard))
    await dashboards.made(gathering.store, dashboard.repo_id, number)
    return number


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
