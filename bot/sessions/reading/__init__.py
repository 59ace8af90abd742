"""Gathers the agent's reading from a thread and its repository, and its instructions."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.agent import diffs, prompt
from bot.agent.material import (
    Diff,
    Log,
    Material,
    Rulebook,
    ThreadText,
    discussion_name,
    discussion_place,
    distinct_places,
    ignored_rules,
    note_on_ignored,
    rule_instructions,
)
from bot.errors import GitHubRefused, NotFound
from bot.events.threads import text_digest
from bot.git.cache import Comparison
from bot.github import reviews
from bot.github.client import InstallationClient
from bot.github.types import Comment, Issue
from bot.kinds.shape import AgentReading, OnFork, Places, WorkFolders
from bot.models import Repo, Spot, Thread
from bot.repo_config import RepoConfig
from bot.sessions import account_repository
from bot.sessions.reading import briefing
from bot.sessions.reviews import scope
from bot.sessions.services import Services
from bot.sessions.starting_point import Start, compared
from bot.store import sessions
from bot.store.sessions import Turn
from bot.text.visible import visible

MOST_AUTHORS = 30
"""We ask about so many; the words of others are data."""
MOST_COMMENTS = 200
HANDED_IN_SECONDS = 10.0
_KINDS = {"comment": "comment", "review": "review"}
MAX_DIFF_BYTES = 900_000


async def may_write(reads: InstallationClient, repo: Repo, login: str, user_id: int) -> bool:
    """Ask GitHub now. A person, a repository or an installation that is gone means no."""
    try:
        answered_id, permission = await reads.permission(repo, login)
    except GitHubRefused:
        return False
    return answered_id == user_id and permission.may_write


class Trust:
    """Knows who may write in one repository."""

    def __init__(self, reads: InstallationClient, repo: Repo) -> None:
        self._reads = reads
        self._repo = repo
        self._known: dict[int, bool] = {}

    async def of(self, text: Issue | Comment) -> bool:
        """Trust only words written by hand: an App that writes in a person's name may pass on anybody's words."""
        person = text.author
        if not person.is_human or text.via_app:
            return False
        if person.id not in self._known:
            may = False
            with contextlib.suppress(NotFound):
                if len(self._known) < MOST_AUTHORS:
                    answered_id, permission = await self._reads.permission(self._repo, person.login)
                    may = answered_id == person.id and permission.may_write
            self._known[person.id] = may
        return self._known[person.id]


@dataclass(frozen=True)
class Evidence:
    """Data that only some kinds of turns read. It never holds an instruction."""

    logs: tuple[Log, ...] = ()
    said: tuple[tuple[str, str], ...] = ()
    """Texts with their names."""
    missing: tuple[str, ...] = ()
    """Sentences about everything that is missing, cut or left alone."""


@dataclass(frozen=True)
class Gathered:
    """The agent's whole reading, ready for the store."""

    reading: AgentReading
    files: Mapping[str, bytes]
    untrusted: bool
    """It has words of people who may not write here, or of an unknown author."""
    discussions: tuple[Spot, ...]
    where: WorkFolders


@dataclass(frozen=True)
class _Known:
    """The know-how that the agent gets is on the host's disk by now."""

    request: str
    has_files: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Conversation:
    """The thread as it is; each text knows whether we trust it."""

    issue: Issue
    opening: ThreadText
    remarks: tuple[tuple[Comment, ThreadText], ...]
    request: Comment | None
    asked_at: tuple[Spot, ...] = ()
    own_words: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Named:
    """What may name a folder: the thread, and the changed files of the pull request."""

    said: _Conversation
    changed: Sequence[str]


async def gather(
    services: Services, turn: Turn, config: RepoConfig, place: tuple[str, Start], beside: Evidence
) -> Gathered:
    """`place` is the base branch and the start of the work."""
    base, start = place
    session = await sessions.session(services.store, turn.key.session)
    thread = session.thread
    found = await _conversation(services, turn, thread)
    book = await briefing.read_rules(services, thread.repo.id, base, start.base)
    change, diff = await _change(services, turn, thread, base, start) if found.issue.is_pull else (None, None)
    known = await _know_how(services, turn, thread, (book, start))
    album = await briefing.gather_images(services.github.attachments, _with_pictures(found))
    ignored = ignored_rules(change.paths) if change else ()
    paths = change.paths if change else None
    where, book, instructions, cut = await _rules(services, turn, config, (start, book), _Named(found, paths or ()))
    if turn.traits.judges:
        instructions += await asyncio.to_thread(scope.rules, config, paths)
    of_the_base = note_on_ignored(ignored, base)
    missing = [*album.notes, *cut, *of_the_base, *beside.missing]
    # The words in a discussion mean the lines of its hunk.
    hunks = [(f"{discussion_name(at)}: {prompt.where(spot)}", spot.hunk) for at, spot in enumerate(found.asked_at, 1)]
    extras = [*hunks, *found.own_words, *beside.said, *await briefing.own_findings(services, turn)]
    if turn.traits.judges and diff:
        diff = await asyncio.to_thread(scope.without_ignored, diff, config.review)
        if change:
            diff, more = await briefing.diff_to_review(services, turn, change, diff, config.review)
            extras += more
    material = Material(
        kind=turn.kind,
        repo=thread.repo.full_name,
        number=turn.number,
        is_pull=found.issue.is_pull,
        requester=turn.requester,
        request=known.request,
        title=found.issue.title,
        opening=found.opening,
        remarks=[said for _, said in found.remarks],
        diff=diff,
        extras=extras,
        logs=beside.logs,
        pictures=album.pictures,
        missing=missing,
        public=not thread.repo.private,
        read_outsiders=config.read_outsiders,
        discussions=[discussion_place(spot) for spot in found.asked_at],
    )
    composed = await asyncio.to_thread(prompt.compose, material, delimiter=secrets.token_hex(8))
    once = [*of_the_base, *briefing.note_on_unused(book.unused), *known.left_out]
    fresh = await briefing.said_once(services, turn, once, ignored)
    notes = (*(note for note in composed.notes if note not in of_the_base), *fresh.notes)
    read = AgentReading(
        composed.text,
        instructions,
        notes,
        fresh.ignored,
        know_how=known.has_files,
        thread_title="" if found.opening.changed_since else found.issue.title,
        follows=found.issue.is_pull or (session.pull_number is not None and not turn.new_branch),
    )
    return Gathered(
        read,
        where=where,
        files={**album.files, **{name: text.encode("utf-8", "replace") for name, text in composed.files.items()}},
        untrusted=composed.untrusted,
        discussions=found.asked_at,
    )


async def _know_how(services: Services, turn: Turn, thread: Thread, base: tuple[Rulebook, Start]) -> _Known:
    """Pack the know-how for the agent, and write out the repository's command that the request names."""
    book, start = base
    reads = services.github.installation(thread.installation)
    shared = await account_repository.of(reads, services.store, thread.repo.owner)
    if not book.has_know_how and not shared.know_how and not turn.prompt.startswith("/"):
        return _Known(turn.prompt)
    from bot.sessions.reading import know_how

    found = await know_how.gather(services, thread, start.base if book.has_know_how else None, shared)
    request = await know_how.written_out(turn, found, services.settings.command)
    await know_how.shelve(services, turn, found)
    return _Known(request, any(one.files for one in found), tuple(said for one in found for said in one.left_out))


async def _rules(
    services: Services, turn: Turn, config: RepoConfig, place: tuple[Start, Rulebook], named: _Named
) -> tuple[WorkFolders, Rulebook, str, list[str]]:
    """Join all instructions. Return also the folders that the turn is about, and what was cut."""
    start, book = place
    told = turn.traits.told(fork=turn.part(OnFork).fork is not None)
    asked = turn.options is not None and turn.options.folder is not None
    imports = any("@" in text for _, text in book.files)
    if not (asked or imports or book.nested or config.paths):
        return WorkFolders(), book, *rule_instructions(told, book, config.instructions)
    from bot.sessions.reading import folder_rules  # only repositories that have such rules enter it

    opening = named.said.opening
    thread = "" if opening.changed_since else f"{named.said.issue.title}\n\n{visible(opening.body)}"
    spoken = folder_rules.Spoken(turn.prompt, thread, named.changed)
    found = await folder_rules.settled(services, turn, config, start, book, spoken)
    told = f"{told}\n{found.about}\n" if found.about else told
    instructions, cut = await asyncio.to_thread(rule_instructions, told, found.book, found.instructions)
    return found.where, found.book, instructions, [*found.notes, *cut]


async def _conversation(services: Services, turn: Turn, thread: Thread) -> _Conversation:
    reads = services.github.installation(thread.installation)
    issue = await reads.issue(thread.repo, turn.number)
    comments = await reads.comments(thread.repo, turn.number, MOST_COMMENTS)
    trust = Trust(reads, thread.repo)
    if issue.is_pull:
        # Leave out whole reviews of people without trust: nobody can tell whether they were changed since.
        on_lines = await reviews.on_lines(reads, thread.repo, turn.number)
        whole = [one for one in await reviews.whole(reads, thread.repo, turn.number) if await trust.of(one)]
        comments = sorted([*comments, *on_lines, *whole], key=lambda one: one.created_at)
    me = (await services.github.identity()).bot_id
    asked_at, review = turn.asked_at or turn.created_at, _review_of(turn)
    # A command in the words of a review means all places that the review comments on.
    spots = turn.part(Places).asked or distinct_places(
        one.spot for one in comments if one.spot and review is not None and one.review_id == review
    )
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
        changed_since=turn.thread_sha256 not in (None, text_digest(issue.title, issue.body)),
    )
    asking = (one for one in comments if one.id == turn.source_comment and one.updated_at == one.created_at)
    numbers = {spot.comment_id: number for number, spot in enumerate(spots, 1)}
    own_words = tuple(  # such as a finding of a review, answered with "fix this"
        (f"{discussion_name(numbers[one.spot.comment_id])}: what you said there", visible(one.body))
        for one in comments
        if one.author.id == me and one.spot and one.spot.comment_id in numbers and _precedes(one, turn, asked_at)
    )
    return _Conversation(issue, opening, tuple(remarks), next(asking, None), tuple(spots), own_words)


def _review_of(turn: Turn) -> int | None:
    said, number = turn.source.partition(":")[0], turn.source.rpartition(":")[2]
    return int(number) if said == "review" and number.isdigit() else None


def _until(turn: Turn, comment: Comment, asked_at: float) -> float:
    """Allow more time for a review's own comments: GitHub may count their submission as a change."""
    own = comment.review_id is not None and comment.review_id == _review_of(turn)
    return asked_at + HANDED_IN_SECONDS if own else asked_at


def _named(said: ThreadText, comment: Comment, spots: Sequence[Spot]) -> ThreadText:
    ids = [spot.comment_id for spot in spots]
    if comment.spot is None or comment.spot.comment_id not in ids:
        return said
    return replace(said, kind=f"{discussion_name(ids.index(comment.spot.comment_id) + 1)}: {said.kind}")


def _precedes(comment: Comment, turn: Turn, asked_at: float) -> bool:
    """Tell whether a comment came before the command: later ones reach the running agent or make the next turn.

    GitHub gives whole seconds only; within one, the numbers of texts of the same kind give the order."""
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
        changed_since=edited and _epoch(comment.updated_at) >= asked_at,  # GitHub gives whole seconds
        kind=comment.kind,
    )


def _with_pictures(found: _Conversation) -> list[tuple[str, str]]:
    """List the texts of trusted people, the request first, then newer comments before older ones."""
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
    """Read the change from our own copy; from GitHub if that does not reach back far enough."""
    found = None
    if start.base is not None and start.tip is not None and start.ref is not None:
        base_at, tip_at = (start.base, f"refs/heads/{base}"), (start.tip, start.ref)
        found = await compared(services, thread, base_at, tip_at, max_bytes=MAX_DIFF_BYTES)
    if found is not None:
        between = f"{found.parted[:12]} of {base} to {found.head[:12]}"
        text = found.patch.decode("utf-8", "replace")
        unread = await asyncio.to_thread(_unread, text, found) if found.cut else ()
        return found, Diff(text, between, found.cut, unread)
    reads: InstallationClient = services.github.installation(thread.installation)
    shown = await reads.pull_diff(thread.repo, turn.number)
    return None, None if shown is None else Diff(shown[:MAX_DIFF_BYTES], "", len(shown) > MAX_DIFF_BYTES)


def _unread(text: str, found: Comparison) -> tuple[str, ...]:
    whole = {name for part in diffs.parse(text)[:-1] for name in part.names}  # the last file may be there in part
    return tuple(path for path in found.paths if path not in whole)


def _epoch(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
