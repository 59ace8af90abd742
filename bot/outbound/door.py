"""The one door to GitHub: texts are made clean, and things are looked for before they are made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from bot.errors import GitHubRefused, GitHubUnavailable
from bot.github import checks, reviews, writes
from bot.github.client import GitHubApp, InstallationClient
from bot.github.reads import carries
from bot.github.types import CheckOutput, Pull, ReviewDraft
from bot.loops import made_of
from bot.models import InstallationId, RepoId, Thread
from bot.outbound import neutralise, prose
from bot.outbound.redact import Redactor
from bot.outbound.signing import SignedCommits
from bot.text import blocks

T = TypeVar("T")
LOOK_AFTER_SECONDS = (0.5, 2.0, 4.0)  # a new comment may take a moment to be listed
COMMIT_LIMIT = 16_000


class TextKind(StrEnum):
    """The purpose of a text: it decides what acts in it and how long it may be."""

    COMMENT = "comment"
    TITLE = "title"
    PULL_BODY = "pull_body"
    COMMIT = "commit"
    CHECK = "check"


@dataclass(frozen=True)
class Posted:
    """A comment of ours; `as_given`: it has the very text that was to be posted, not an earlier one."""

    id: int
    as_given: bool


class Outbound:
    """Takes composed texts: words of others in them were cut first, then made harmless by the function of `neutralise`
    for the place where they stand."""

    def __init__(
        self,
        app: GitHubApp,
        redactor: Redactor,
        *,
        pace: WritePace | None = None,
        on_made: Callable[[InstallationId], None] = lambda _: None,
        look_after: Sequence[float] = LOOK_AFTER_SECONDS,
    ) -> None:
        self._app = app
        self._redactor = redactor
        self._pace = pace or WritePace()
        self._on_made = on_made
        """Called for each thing that is made, since GitHub counts them."""
        self._look_after = tuple(look_after)
        self.commits = SignedCommits(app, self._pace.in_order, lambda text: self.text(TextKind.COMMIT, text))

    def text(self, kind: TextKind, text: str, *, closes: int | None = None) -> str:
        """Redact, make harmless and cut to GitHub's limit. `closes`: the one issue that it may close."""
        clean = self._redactor.redact(blocks.shown(text))  # what nobody sees would hide a secret until it is gone
        if kind is TextKind.TITLE:
            return prose.title(neutralise.whole_plain(clean[:COMMIT_LIMIT]))
        if kind is TextKind.COMMIT:
            return neutralise.whole_plain(clean[:COMMIT_LIMIT], closes)
        limit = prose.CHECK_LIMIT if kind is TextKind.CHECK else prose.BODY_LIMIT
        return prose.fitted(clean, limit, lambda text: neutralise.whole(text, closes))

    def comment_address(self, thread: Thread, comment_id: int) -> str:
        """Return where people find a comment of a thread; GitHub leads from an issue's address to its pull request."""
        return f"{self._app.web_url}/{thread.repo.full_name}/issues/{thread.number}#issuecomment-{comment_id}"

    async def comment(self, thread: Thread, body: str, marker: str) -> Posted:
        """Find our comment with this marker on its first line, or make it."""
        at, text = self._app.installation(thread.installation), await self._marked(body, marker)
        me = (await self._app.identity()).bot_id

        async def find() -> Posted | None:
            found = await at.find_comment(thread.repo, thread.number, marker, me)
            return Posted(found[0], as_given=found[1] == text) if found else None

        async def make() -> Posted:
            return Posted(await writes.create_comment(at, thread.repo, thread.number, text), as_given=True)

        return await self._find_or_make(thread, find, make)

    async def reply(self, thread: Thread, comment_id: int, body: str, marker: str) -> int:
        """Do the same in the discussion of the diff that began with this comment."""
        at, text = self._app.installation(thread.installation), await self._marked(body, marker)
        me = (await self._app.identity()).bot_id

        find = partial(at.find_review_reply, thread.repo, thread.number, marker, me)
        make = partial(writes.reply_to_review_comment, at, thread.repo, thread.number, comment_id, text)
        return await self._find_or_make(thread, find, make)

    async def edit_comment(self, thread: Thread, comment_id: int, body: str) -> None:
        """Edit it; NotFound if somebody deleted it."""
        text = await self._clean(TextKind.COMMENT, body)
        async with self._changing(thread) as at:
            await writes.update_comment(at, thread.repo, comment_id, text)

    async def issue(self, place: Thread, title: str, body: str, marker: str) -> int:
        """Find our issue with this marker on its first line, or open it; return its number. `place` has no number."""
        at, text = self._app.installation(place.installation), await self._marked(body, marker)
        me, name = await self._app.identity(), self.text(TextKind.TITLE, title)

        async def find() -> int | None:
            found = await at.own_issue(place.repo, marker, me)
            return found.number if found else None

        return await self._find_or_make(place, find, partial(writes.create_issue, at, place.repo, name, text))

    async def edit_issue(self, thread: Thread, body: str, marker: str, *, reopen: bool = False) -> None:
        """Edit the text of our issue; NotFound if somebody deleted it."""
        fields = {"body": await self._marked(body, marker), **({"state": "open"} if reopen else {})}
        async with self._changing(thread) as at:
            await writes.update_issue(at, thread.repo, thread.number, fields)

    async def react(
        self, thread: Thread, comment_id: int | None, reaction: str, *, on_review_comment: bool = False
    ) -> None:
        """React to a comment, or to the issue itself; GitHub keeps one reaction of a kind."""
        target = f"issues/{thread.number}"
        if comment_id is not None:
            target = f"{'pulls' if on_review_comment else 'issues'}/comments/{comment_id}"
        async with self._changing(thread) as at:
            await writes.react(at, thread.repo, target, reaction)

    async def open_pull(self, thread: Thread, *, title: str, body: str, head: str, base: str, draft: bool) -> Pull:
        """Find the open pull request from the branch `head`, or make it. It may close the issue of the thread, and no
        other."""
        at = self._app.installation(thread.installation)
        fields = {
            "title": self.text(TextKind.TITLE, title),
            "body": await self._clean(TextKind.PULL_BODY, body, closes=None if thread.is_pull else thread.number),
            "head": head,
            "base": base,
            "draft": draft,
        }

        async def make() -> Pull:
            try:
                return await writes.create_pull(at, thread.repo, fields)
            except GitHubRefused as refused:
                if not (draft and refused.status == 422 and "draft" in refused.message.lower()):
                    raise
            return await writes.create_pull(at, thread.repo, fields | {"draft": False})

        return await self._find_or_make(thread, partial(at.pull_by_head, thread.repo, head), make)

    async def make_ready(self, thread: Thread, pull: Pull) -> None:
        async with self._changing(thread) as at:
            await writes.make_ready(at, thread.repo, pull.node_id)

    async def label(self, thread: Thread, labels: Sequence[str]) -> None:
        """Add labels that exist: GitHub would make any other."""
        async with self._changing(thread) as at:
            await writes.add_labels(at, thread.repo, thread.number, labels)

    async def request_review(self, thread: Thread, login: str) -> None:
        """Request a review; GitHubRefused if the person cannot review it."""
        async with self._changing(thread) as at:
            await writes.request_review(at, thread.repo, thread.number, login)

    async def review(self, thread: Thread, draft: ReviewDraft, marker: str) -> int:
        """Find our review with this marker on its first line, or hand it in; return its id."""
        at = self._app.installation(thread.installation)
        me = (await self._app.identity()).bot_id
        comments = [replace(one, body=await self._clean(TextKind.COMMENT, one.body)) for one in draft.comments]
        clean = replace(draft, body=await self._marked(draft.body, marker), comments=tuple(comments))

        find = partial(reviews.find, at, thread.repo, thread.number, marker, me)
        make = partial(writes.create_review, at, thread.repo, thread.number, clean)
        return await self._find_or_make(thread, find, make)

    async def dismiss(self, thread: Thread, review_id: int, message: str) -> None:
        text = await self._clean(TextKind.COMMENT, message)
        async with self._changing(thread) as at:
            await writes.dismiss_review(at, thread.repo, thread.number, review_id, text)

    async def resolve(self, thread: Thread, discussion: str) -> None:
        async with self._changing(thread) as at:
            await writes.resolve_discussion(at, thread.repo, discussion)

    async def check(self, thread: Thread, *, sha: str, name: str, external_id: str, output: CheckOutput) -> int:
        """Find our check run with this external id, or make it; then it is as `output` says. Return its id."""
        at, repo, clean = self._app.installation(thread.installation), thread.repo, await self._clean_check(output)
        made: list[int] = []

        async def find() -> int | None:
            run = await at.check_run(repo, sha, name, external_id)
            return run.id if run else None

        async def make() -> int:
            new = await writes.create_check(at, repo, sha=sha, name=name, external_id=external_id, output=clean)
            made.append(new)
            return new

        found = await self._find_or_make(thread, find, make)
        if found not in made:
            await self._update_check(thread, found, clean)
        await self._annotate(thread, found, clean)
        return found

    async def rerun(self, thread: Thread, run_id: int, attempt: int) -> int:
        """Find or begin the next attempt at a run of Actions; return its number."""
        at, repo = self._app.installation(thread.installation), thread.repo

        async def find() -> int | None:
            now = (await checks.workflow_run(at, repo, run_id)).attempt
            return now if now > attempt else None

        async def make() -> int:
            await writes.rerun_failed(at, repo, run_id)
            return attempt + 1

        return await self._find_or_make(thread, find, make)

    async def _annotate(self, thread: Thread, check_id: int, output: CheckOutput) -> None:
        """Add annotations in portions, after those of an earlier try."""
        while output.annotations:
            at = self._app.installation(thread.installation)
            there = (await at.check_run_by_id(thread.repo, check_id)).annotations
            portion = output.annotations[there : there + writes.MOST_ANNOTATIONS]
            if not portion:
                return
            async with self._changing(thread):
                await writes.annotate_check(at, thread.repo, check_id, replace(output, annotations=portion))

    async def update_check(self, thread: Thread, check_id: int, output: CheckOutput) -> None:
        await self._update_check(thread, check_id, await self._clean_check(output))

    async def _update_check(self, thread: Thread, check_id: int, output: CheckOutput) -> None:
        async with self._changing(thread) as at:
            await writes.update_check(at, thread.repo, check_id, output)

    async def _clean(self, kind: TextKind, text: str, *, closes: int | None = None) -> str:
        return await made_of(text, partial(self.text, kind, closes=closes))

    async def _clean_check(self, output: CheckOutput) -> CheckOutput:
        title, summary = self.text(TextKind.TITLE, output.title), await self._clean(TextKind.CHECK, output.summary)
        annotations = []
        for one in output.annotations:
            message = await self._clean(TextKind.COMMIT, one.message)
            annotations.append(replace(one, message=message, title=self.text(TextKind.TITLE, one.title)))
        return replace(output, title=title, summary=summary, annotations=tuple(annotations))

    async def _marked(self, body: str, marker: str) -> str:
        if not carries(body, marker):
            body = f"{marker if marker.endswith('-->') else f'{marker} -->'}\n{body}"
        text = await self._clean(TextKind.COMMENT, body)
        assert carries(text, marker), "a marker is one HTML comment of ours on the first line"
        return text

    @asynccontextmanager
    async def _changing(self, thread: Thread) -> AsyncIterator[InstallationClient]:
        """Wait for its turn: the one way to a change at GitHub."""
        async with self._pace.in_order(thread):
            yield self._app.installation(thread.installation)

    async def _find_or_make(
        self, thread: Thread, find: Callable[[], Awaitable[T | None]], make: Callable[[], Awaitable[T]]
    ) -> T:
        """Look before making, and again before making a second time: only the answer may be lost."""
        async with self._changing(thread) as at:
            found = await find()
            if found is not None:
                return found
            self._on_made(at.id)
            try:
                return await make()
            except (GitHubUnavailable, GitHubRefused) as doubt:
                found = await self._look(find, doubt)
                if found is not None:
                    return found
                if isinstance(doubt, GitHubRefused):
                    raise
            return await make()

    async def _look(self, find: Callable[[], Awaitable[T | None]], doubt: Exception) -> T | None:
        if isinstance(doubt, GitHubUnavailable) and doubt.retry_after is not None:
            raise doubt  # a rate limit: nothing was made
        if isinstance(doubt, GitHubRefused):
            return await find() if doubt.status == 422 else None  # "already exists"
        for pause in self._look_after:
            await asyncio.sleep(pause)
            found = await find()
            if found is not None:
                return found
        return None


PATIENCE_SECONDS = 2.0
"""A change that takes longer holds up only its own thread. GitHub asks for one at a time. While it does not answer, a
few beside each other are far from the hundred that it allows."""


class WritePace:
    """Puts changes at GitHub in order. It lives in memory: after a restart the first refusal teaches it again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changing: WeakValueDictionary[InstallationId, asyncio.Lock] = WeakValueDictionary()
        self._threads: WeakValueDictionary[tuple[RepoId, int], asyncio.Lock] = WeakValueDictionary()
        self._paused_until: dict[InstallationId, float] = {}

    @asynccontextmanager
    async def in_order(self, thread: Thread) -> AsyncIterator[None]:
        """Wait for the changes before this one; during a pause, raise GitHubUnavailable with the time to wait."""
        of_thread = self._threads.setdefault((thread.repo.id, thread.number), asyncio.Lock())
        of_all = self._changing.setdefault(thread.installation, asyncio.Lock())
        async with of_thread, _for_a_while(of_all):
            wait = self.pause(thread.installation)
            if wait > 0:
                raise GitHubUnavailable("GitHub asked us to wait.", wait)
            try:
                yield
            except GitHubUnavailable as error:
                if error.retry_after is not None:
                    self._paused_until[thread.installation] = self._clock() + error.retry_after
                raise

    def pause(self, installation: InstallationId) -> float:
        """Return the seconds until changes may be made again."""
        return max(0.0, self._paused_until.get(installation, 0.0) - self._clock())


@asynccontextmanager
async def _for_a_while(lock: asyncio.Lock) -> AsyncIterator[None]:
    """Hold the lock to the end of the block, or until others have waited long enough."""
    await lock.acquire()
    held = True

    def let_go() -> None:
        nonlocal held
        if held:
            held = False
            lock.release()

    timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, let_go)
    try:
        yield
    finally:
        timer.cancel()
        let_go()
