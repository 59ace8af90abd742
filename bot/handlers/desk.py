"""The desk that handlers work with: enough to start, stop and answer, and nothing of how a turn runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from bot import authorisation, commands
from bot.authorisation import AccessDecision
from bot.commands import C, CommandForm
from bot.errors import BadRepoConfig, GitHubRefused
from bot.events import threads
from bot.events.threads import Remark
from bot.git.cache import RepositoryCache
from bot.github.client import GitHubApp
from bot.live.board import LiveBoard
from bot.loops import made_of
from bot.models import SessionId, Thread, TurnKey, TurnState
from bot.notices import Notices, Topic
from bot.outbound import Outbound
from bot.repo_config import RepoConfig
from bot.sessions import starting_point
from bot.settings import Settings
from bot.store import posts, sessions
from bot.store.base import Store
from bot.store.deliveries import DeliveryState
from bot.store.files import KeptFiles
from bot.words import replies

LOOKED_AT = 4_000
"""Characters that we read of people who may not command us: enough to see whether they meant to."""


@dataclass(frozen=True)
class Handled:
    """A delivery's outcome for the ledger; `why` tells people the reason."""

    state: DeliveryState
    reason: str | None = None
    session: SessionId | None = None


def acted(session: SessionId | None = None, reason: str | None = None) -> Handled:
    return Handled(DeliveryState.ACTED, reason, session)


def ignored(reason: str) -> Handled:
    return Handled(DeliveryState.IGNORED, reason)


def refused(reason: str) -> Handled:
    return Handled(DeliveryState.REFUSED, reason)


@dataclass(frozen=True)
class Desk:
    settings: Settings
    store: Store
    github: GitHubApp
    outbound: Outbound
    board: LiveBoard
    cache: RepositoryCache
    files: KeptFiles
    notices: Notices
    clock: Callable[[], float] = time.time

    def admit(self) -> None:
        """Say that a turn waits."""
        self.notices.tell(Topic.QUEUE)

    def poke(self, key: TurnKey) -> None:
        """Say that a turn's row has changed."""
        self.notices.tell(Topic.TURN, key.workflow_id)

    def sweep(self) -> None:
        """Say that an environment was given up."""
        self.notices.tell(Topic.ENVIRONMENT)

    def doubt(self, person: int | None) -> None:
        """Have pages ask GitHub again what a person may see (None: anybody)."""
        self.notices.tell(Topic.ACCESS, person)

    async def judge(self, remark: Remark) -> AccessDecision:
        """Decide whether the author may command us; only people who could be allowed cost a request to GitHub."""
        identity = await self.github.identity()
        service = authorisation.ServedBy(identity.bot_id, identity.owner, self.settings.github.accounts)
        decision = authorisation.screen(
            remark.author, repo_owner=remark.thread.repo.owner, service=service, via_app=remark.via_app
        )
        if not decision.allowed:
            return decision
        reads = self.github.installation(remark.thread.installation)
        try:
            answered_id, permission = await reads.permission(remark.thread.repo, remark.author.login)
        except GitHubRefused as error:
            return authorisation.unverified(remark.author, error.status)
        return authorisation.authorise(remark.author, answered_id=answered_id, permission=permission)

    async def config_of(self, thread: Thread) -> tuple[RepoConfig | None, str]:
        """Read the config of the default branch, or the account's settings if it has none; or say what is wrong."""
        reads = self.github.installation(thread.installation)
        try:
            return await starting_point.config_of(reads, thread.repo, self.store), ""
        except BadRepoConfig as error:
            return None, str(error)

    async def pull_number(self, remark: Remark) -> int | None:
        """Return the pull request, or the one that the issue's session has opened."""
        if remark.thread.is_pull:
            return remark.thread.number
        latest = await sessions.latest(self.store, remark.thread)
        return (await sessions.session(self.store, latest.key.session)).pull_number if latest else None

    async def reply(self, remark: Remark, text: str) -> None:
        """Post one answer to a remark, however often this runs; in a diff, below the remark."""
        if remark.answered_elsewhere:
            return
        marker = f"<!-- forgehand:reply={remark.source} -->"
        if remark.spot is not None:
            await self.outbound.reply(remark.thread, remark.spot.comment_id, f"{marker}\n{text}", marker)
        else:
            await self.outbound.comment(remark.thread, f"{marker}\n{text}", marker)

    async def answer(self, remark: Remark, kind: str, text: str) -> None:
        """Keep one answer of each kind on a thread and bring it up to date: older ones would only mislead.

        GitHub sends no notification for an edit, so a reaction shows that the answer is there."""
        words = f"{text}\n\n<sub>{replies.as_of(self.clock(), remark.author.login)}</sub>"
        if remark.spot is not None:
            await self.reply(remark, words)
            return
        marker = f"<!-- forgehand:answer={kind} -->"
        posted = await self.outbound.comment(remark.thread, f"{marker}\n{words}", marker)
        if not posted.as_given:
            await self.outbound.edit_comment(remark.thread, posted.id, f"{marker}\n{words}")
        await self.react(remark, "+1")

    async def links(self, key: TurnKey) -> str:
        """Lead to the live comment of a turn, to its pull request and to the session's page."""
        session, comment = await sessions.session(self.store, key.session), await posts.get(self.store, key)
        pages, address = self.settings.pages_url, ""
        if comment is not None and comment.comment_id is not None:
            address = self.outbound.comment_address(session.thread, comment.comment_id)
        found = [
            f"[live comment]({address})" if address else "",
            f"[pull request #{session.pull_number}]({session.pull_url})" if session.pull_url else "",
            f"[session]({pages}/sessions/{session.id})" if pages else "",
        ]
        return " · ".join(filter(None, found))

    async def refuse(self, remark: Remark, sentence: str) -> Handled:
        """Answer with the sentence, which `why` says again later."""
        await self.reply(remark, sentence)
        return refused(sentence)

    async def without_command(self, remark: Remark, plain: str = replies.NO_COMMAND) -> Handled:
        """Ignore it; the reason is `plain`, unless a person seems to mean a command."""
        identity = await self.github.identity()
        if remark.author.id == identity.bot_id:
            return ignored(replies.OWN_TEXT)
        slug = identity.slug
        if not remark.is_bot and await made_of(
            remark.body[:LOOKED_AT], partial(commands.misaddressed, word=self.settings.command, app_slug=slug)
        ):
            return await self._how_to_begin(remark, slug)
        meant = not remark.is_bot and await self.names_us(remark)
        return ignored(replies.no_command_but_named(self.settings.command) if meant else plain)

    async def _how_to_begin(self, remark: Remark, slug: str) -> Handled:
        """Tell people who may command us, once on a thread, how to write it."""
        if (await self.judge(remark)).allowed:
            marker, words = "<!-- forgehand:answer=begin -->", replies.how_to_begin(self.settings.command, slug)
            await self.outbound.comment(remark.thread, f"{marker}\n{words}", marker)
        return ignored(replies.no_command_but_named(self.settings.command))

    async def names_us(self, remark: Remark) -> bool:
        slug = (await self.github.identity()).slug
        return commands.named(remark.body, word=self.settings.command, app_slug=slug)

    async def react(self, remark: Remark, reaction: str) -> None:
        """React to the comment, or to the thread for its own text; a whole review takes no reaction."""
        if remark.answered_elsewhere or (remark.comment_id is not None and remark.react_to is None):
            return
        on_diff = remark.spot is not None
        with contextlib.suppress(GitHubRefused):  # deleted or locked meanwhile: the request is carried out all the same
            await self.outbound.react(remark.thread, remark.react_to, reaction, on_review_comment=on_diff)

    async def text_digest(self, thread: Thread) -> str:
        """Digest the thread's present text: a press on a button brings none, so it means this one."""
        issue = await self.github.installation(thread.installation).issue(thread.repo, thread.number)
        return threads.text_digest(issue.title, issue.body)

    async def redraw(self, key: TurnKey) -> None:
        """Write the live comment of a turn again, even a final one, because its offers have changed."""
        done = (await sessions.turn(self.store, key)).state is TurnState.DONE
        if done:
            await posts.spoilt(self.store, key, by_bot=False)
        self.board.touch(key, final=done, pressing=True)


@dataclass(frozen=True, kw_only=True)
class Feature(CommandForm[C]):
    """A line of the table of commands: a form, and its handler."""

    handle: Callable[[C, Remark, Desk], Awaitable[Handled]]
