"""Gathers what the agent may read of a thread and its repository, and what it is told beside that."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.agent import diffs, prompt
from bot.agent.material import (
    MOST_NAMED,
    Diff,
    Log,
    Material,
    ThreadText,
    discussion_name,
    discussion_place,
    distinct_places,
    ignored_rules,
    rule_instructions,
    rule_names,
)
from bot.errors import GitHubRefused, NotFound
from bot.events.remarks import standing
from bot.git.cache import Comparison
from bot.github import reviews
from bot.github.client import InstallationClient
from bot.github.types import Comment, Issue
from bot.kinds.parts import AgentReading, OnFork, Places
from bot.models import Person, Repo, Spot, Thread
from bot.repo_config import RepoConfig
from bot.sessions.reading import briefing
from bot.sessions.reading.briefing import Album
from bot.sessions.services import Services
from bot.sessions.starting_point import Start, compared
from bot.store import sessions
from bot.store.sessions import Turn
from bot.text.visible import visible

MOST_AUTHORS = 30
"""Beyond these, nobody is asked about any more: their words are data."""


async def may_write(reads: InstallationClient, repo: Repo, login: str, user_id: int) -> bool:
    """Now, by GitHub's word; a person, a repository or an installation that is gone: no, as far as we know."""
    try:
        answered_id, permission = await reads.permission(repo, login)
    except GitHubRefused:
        return False
    return answered_id == user_id and permission.may_write


class Trust:
    """Who may write in one repository."""

    def __init__(self, reads: InstallationClient, repo: Repo) -> None:
        self._reads = reads
        self._repo = repo
        self._known: dict[int, bool] = {}

    async def of(self, text: Issue | Comment) -> bool:
        """Trusts what its author wrote by hand: an App that writes in somebody's name may pass on anybody's words."""
        person = text.author
        if not person.is_human or text.via_app:
            return False
        if person.id not in self._known:
            self._known[person.id] = len(self._known) < MOST_AUTHORS and await self._ask(person)
        return self._known[person.id]

    async def _ask(self, person: Person) -> bool:
        try:
            answered_id, permission = await self._reads.permission(self._repo, person.login)
        except NotFound:
            return False
        return answered_id == person.id and permission.may_write


MOST_COMMENTS = 200
HANDED_IN_SECONDS = 10.0
_KINDS = {"comment": "comment", "review": "review"}
MAX_DIFF_BYTES = 900_000


@dataclass(frozen=True)
class Evidence:
    """What only some kinds of turns read. Nothing in it is anybody's instruction."""

    logs: tuple[Log, ...] = ()
    said: tuple[tuple[str, str], ...] = ()
    """Each with its name."""
    missing: tuple[str, ...] = ()
    """What could not be had, is cut or left alone, in words."""


@dataclass(frozen=True)
class Gathered:
    """All that the agent is given, ready to be stored."""

    reading: AgentReading
    files: Mapping[str, bytes]
    untrusted: bool
    """Words are in it of somebody who may not write here, or of nobody knows whom."""
    discussions: tuple[Spot, ...]


@dataclass(frozen=True)
class _Conversation:
    """The thread as it stands, each text with whether it may be followed."""

    issue: Issue
    opening: ThreadText
    remarks: tuple[tuple[Comment, ThreadText], ...]
    request: Comment | None
    asked_at: tuple[Spot, ...] = ()
    own_words: tuple[tuple[str, str], ...] = ()


async def gather(
    services: Services, turn: Turn, config: RepoConfig, place: tuple[str, Start], beside: Evidence
) -> Gathered:
    """`place`: the base branch, and where the work begins."""
    base, start = place
    thread = (await sessions.session(services.store, turn.key.session)).thread
    found = await _conversation(services, turn, thread)
    book = await briefing.read_rules(services, thread.repo.id, base, start.base)
    change, diff = await _change(services, turn, thread, base, start) if found.issue.is_pull else (None, None)
    album = await briefing.gather(services.github.attachments, _with_pictures(found))
    ignored = ignored_rules(change.paths) if change else ()
    instructions, cut = rule_instructions(
        turn.traits.told(fork=turn.part(OnFork).fork is not None), book, config.instructions
    )
    missing = [*album.notes, *cut, *_of_the_pull(ignored, base), *beside.missing]
    extras = [*_hunks(found.asked_at), *found.own_words, *beside.said, *await briefing.own_findings(services, turn)]
    if turn.traits.judges and change and diff:
        diff, more = await briefing.given(services, turn, change, diff)
        extras += more
    material = replace(_material(turn, thread, found, config, (diff, album, missing)), extras=extras, logs=beside.logs)
    composed = await asyncio.to_thread(prompt.compose, material, delimiter=secrets.token_hex(8))
    notes = (*composed.notes, *await briefing.untold(services, turn, book.unused))
    return Gathered(
        AgentReading(composed.text, instructions, notes, tuple(ignored)),
        files={**album.files, **{name: text.encode("utf-8", "replace") for name, text in composed.files.items()}},
        untrusted=composed.untrusted,
        discussions=found.asked_at,
    )


def _material(
    turn: Turn,
    thread: Thread,
    found: _Conversation,
    config: RepoConfig,
    beside: tuple[Diff | None, Album, Sequence[str]],
) -> Material:
    diff, album, missing = beside
    return Material(
        kind=turn.kind,
        repo=thread.repo.full_name,
        number=turn.number,
        is_pull=found.issue.is_pull,
        requester=turn.requester,
        request=turn.prompt,
        title=found.issue.title,
        opening=found.opening,
        remarks=[said for _, said in found.remarks],
        diff=diff,
        pictures=album.pictures,
        missing=missing,
        public=not thread.repo.private,
        read_outsiders=config.read_outsiders,
        discussions=[discussion_place(spot) for spot in found.asked_at],
    )


async def _conversation(services: Services, turn: Turn, thread: Thread) -> _Conversation:
    reads = services.github.installation(thread.installation)
    issue = await reads.issue(thread.repo, turn.number)
    comments = await reads.comments(thread.repo, turn.number, MOST_COMMENTS)
    trust = Trust(reads, thread.repo)
    if issue.is_pull:
        comments = sorted(
            [*comments, *await _reviews(reads, trust, thread, turn.number)], key=lambda one: one.created_at
        )
    me = (await services.github.identity()).bot_id
    asked_at = turn.asked_at or turn.created_at
    spots = _asked_about(turn, comments)
    remarks = [
        (comment, _named(await _said(_until(turn, comment, asked_at), comment, trust), comment, spots))
        for comment in comments
        if comment.author.id != me and _precedes(comment, turn, asked_at)
    ]
    opening = ThreadText(
        author=issue.author.login,
        trusted=await trust.of(issue),
        body=issue.body,
        at=issue.created_at,
        changed_since=turn.thread_sha256 not in (None, standing(issue.title, issue.body)),
    )
    ours = [one for one in comments if one.author.id == me and _precedes(one, turn, asked_at)]
    asking = (one for one in comments if one.id == turn.source_comment and one.updated_at == one.created_at)
    return _Conversation(issue, opening, tuple(remarks), next(asking, None), tuple(spots), _own_words(ours, spots))


def _own_words(ours: Sequence[Comment], spots: Sequence[Spot]) -> tuple[tuple[str, str], ...]:
    """A finding of a review that is answered "fix this", say."""
    numbers = {spot.comment_id: number for number, spot in enumerate(spots, 1)}
    named = [(numbers[one.spot.comment_id], one.body) for one in ours if one.spot and one.spot.comment_id in numbers]
    return tuple((f"{discussion_name(number)}: what you said there", visible(body)) for number, body in named)


def _asked_about(turn: Turn, comments: Sequence[Comment]) -> list[Spot]:
    """The place where the command stands; of one in the words of a review, all places that the review comments on."""
    if asked := turn.part(Places).asked:
        return list(asked)
    review = _review_of(turn)
    return distinct_places(one.spot for one in comments if one.spot and review is not None and one.review_id == review)


def _review_of(turn: Turn) -> int | None:
    said, number = turn.source.partition(":")[0], turn.source.rpartition(":")[2]
    return int(number) if said == "review" and number.isdigit() else None


def _until(turn: Turn, comment: Comment, asked_at: float) -> float:
    """A review's own comments are handed in with it, which GitHub may count as a change."""
    own = comment.review_id is not None and comment.review_id == _review_of(turn)
    return asked_at + HANDED_IN_SECONDS if own else asked_at


def _named(said: ThreadText, comment: Comment, spots: Sequence[Spot]) -> ThreadText:
    if comment.spot is None:
        return said
    ids = [spot.comment_id for spot in spots]
    if comment.spot.comment_id not in ids:
        return said
    return replace(said, kind=f"{discussion_name(ids.index(comment.spot.comment_id) + 1)}: {said.kind}")


async def _reviews(reads: InstallationClient, trust: Trust, thread: Thread, number: int) -> list[Comment]:
    """Leaves out whole reviews of people who are not trusted: nobody can tell whether they were changed since."""
    found = await reviews.on_lines(reads, thread.repo, number)
    return found + [one for one in await reviews.whole(reads, thread.repo, number) if await trust.of(one)]


def _hunks(spots: Sequence[Spot]) -> list[tuple[str, str]]:
    """The places in the diff where it was asked: the words there mean these lines."""
    return [(f"{discussion_name(number)}: {prompt.where(spot)}", spot.hunk) for number, spot in enumerate(spots, 1)]


def _precedes(comment: Comment, turn: Turn, asked_at: float) -> bool:
    """Written before the command: what comes after it is said to the agent while it works, or is the next turn.

    GitHub tells whole seconds only; within one, the numbers of texts of the same kind tell the order."""
    kind, number = turn.source.partition(":")[0], turn.source.rpartition(":")[2]
    if kind == _KINDS.get(comment.kind, "review_comment") and number.isdigit() and comment.id >= int(number):
        return False
    return _epoch(comment.created_at) <= _until(turn, comment, asked_at)


async def _said(asked_at: float, comment: Comment, trust: Trust) -> ThreadText:
    edited = comment.updated_at != comment.created_at
    return ThreadText(
        author=comment.author.login,
        trusted=await trust.of(comment),
        body=comment.body,
        at=comment.created_at,
        changed_since=edited and _epoch(comment.updated_at) >= asked_at,  # GitHub tells whole seconds
        kind=comment.kind,
    )


def _with_pictures(found: _Conversation) -> list[tuple[str, str]]:
    """Texts of trusted people, the request's first; the newest comments before the older ones."""
    texts = [("the request", found.request.body_html)] if found.request else []
    if found.opening.trusted and not found.opening.changed_since:
        texts.append((f"the text of the thread by {found.opening.author}", found.issue.body_html))
    for comment, said in reversed(found.remarks):
        if said.trusted and not said.changed_since:
            texts.append((f"the {said.kind} by {said.author} {said.at}", comment.body_html))
    return texts


async def _change(
    services: Services, turn: Turn, thread: Thread, base: str, start: Start
) -> tuple[Comparison | None, Diff | None]:
    """Reads the change from our own copy; from GitHub where that does not reach back far enough."""
    found = await _compared(services, turn, thread, base, start)
    if found is not None:
        between = f"{found.parted[:12]} of {base} to {found.head[:12]}"
        text = found.patch.decode("utf-8", "replace")
        unread = await asyncio.to_thread(_unread, text, found) if found.cut else ()
        return found, Diff(text, between, found.cut, unread)
    reads: InstallationClient = services.github.installation(thread.installation)
    shown = await reads.pull_diff(thread.repo, turn.number)
    return None, None if shown is None else Diff(shown[:MAX_DIFF_BYTES], "", len(shown) > MAX_DIFF_BYTES)


async def _compared(services: Services, turn: Turn, thread: Thread, base: str, start: Start) -> Comparison | None:
    if start.base is None or start.tip is None or start.ref is None:
        return None
    base_ref = f"refs/heads/{base}"
    return await compared(services, thread, (start.base, base_ref), (start.tip, start.ref), max_bytes=MAX_DIFF_BYTES)


def _unread(text: str, found: Comparison) -> tuple[str, ...]:
    """The last file of what was cut off may be there in part."""
    whole = {name for part in diffs.parse(text)[:-1] for name in part.names}
    return tuple(path for path in found.paths if path not in whole)


def _of_the_pull(ignored: Sequence[str], base: str) -> list[str]:
    if not ignored:
        return []
    named = ", ".join(map(rule_names, ignored[:MOST_NAMED]))
    more = f" and {len(ignored) - MOST_NAMED} more" if len(ignored) > MOST_NAMED else ""
    return [f"what the pull request itself says to agents and tools ({named}{more}): that of {base} counts"]


def _epoch(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
