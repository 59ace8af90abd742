"""Sorts the findings of a review (onto lines of the diff, below it, or said before) and finds the fixed ones."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot import repo_config
from bot.agent import diffs
from bot.agent.diffs import FileDiff
from bot.agent.findings import KeptBack, ReviewFinding, ReviewReport
from bot.git.errors import RefMissing
from bot.github.types import Pull, TokenPurpose
from bot.repo_config import Reviewing
from bot.sessions.reviews.sameness import Fingerprint, Likeness
from bot.sessions.reviews.scope import is_ignored
from bot.sessions.services import Services
from bot.sessions.starting_point import compared, remote_access
from bot.store import dismissals, findings, sessions
from bot.store.dismissals import Dismissal
from bot.store.findings import StoredFinding
from bot.store.sessions import Turn

MAX_DIFF_BYTES = 4 << 20
MAX_FILE_BYTES = 1 << 20
MOST_ON_LINES = 60


@dataclass(frozen=True)
class Placed:
    """A new finding, with its permanent name."""

    name: str
    place: int
    finding: ReviewFinding
    code_sha256: str
    shown: tuple[int, int] | None = None
    """The first and last of its lines where a comment can stand."""

    @property
    def is_whole(self) -> bool:
        return self.shown == (self.finding.first, self.finding.line)

    def said(self, turn: Turn, comment_id: int | None) -> StoredFinding:
        one = self.finding
        return StoredFinding(
            id=self.name,
            session_id=turn.key.session,
            turn=turn.key.n,
            place=self.place,
            repo_id=turn.repo_id,
            number=turn.number,
            path=one.path,
            line=one.line,
            body=one.body,
            code_sha256=self.code_sha256,
            code_lines=one.line - one.first + 1,
            comment_id=comment_id,
            severity=one.severity,
        )


@dataclass(frozen=True)
class Sorted:
    on_lines: tuple[Placed, ...]
    below: tuple[Placed, ...]
    repeated: int
    resolved: tuple[StoredFinding, ...]
    kept: tuple[ReviewFinding, ...] = ()
    """The new and the repeated ones together."""
    kept_back: KeptBack = field(default_factory=KeptBack)


async def sort(services: Services, turn: Turn, pull: Pull, review: ReviewReport) -> Sorted:
    """Sort the findings; a repetition sorts the same, as this very turn's own do not count as earlier."""
    known = await findings.open_findings(services.store, turn.repo_id, turn.number)
    before = [one for one in known if (one.session_id, one.turn) != (turn.key.session, turn.key.n)]
    printed = {one.id: Fingerprint(one.path, one.code_sha256, one.body) for one in before}
    code, there = _Code(services, turn), await shown(services, turn, pull)
    sieve = await _sieve(services, turn, code)
    new: list[Placed] = []
    again: set[str] = set()
    kept: list[ReviewFinding] = []
    repeated = 0
    for place, found in enumerate(review.comments, 1):
        one = replace(found, path=_path(found.path, there))
        digest = await code.digest(one.path, one.first, one.line)
        mine = Fingerprint(one.path, digest, one.body)
        same = {name for name, other in printed.items() if mine.is_same(other)}
        again |= same
        if not await sieve.lets(one, mine):
            continue
        kept.append(one)
        repeated += bool(same)
        if not same:
            lines = there[one.path].shown_of(one.first, one.line) if one.path in there else None
            new.append(Placed(findings.finding_name(turn.key, place), place, one, digest, lines))
    on_lines = [one for one in new if one.shown is not None][:MOST_ON_LINES]
    resolved = [  # the agent names it, or its code is gone
        one
        for one in before
        if one.id not in again and (one.id in review.resolved or (one.code_sha256 and not await code.holds(one)))
    ]
    below = [one for one in new if one not in on_lines]
    return Sorted(tuple(on_lines), tuple(below), repeated, tuple(resolved), tuple(kept), sieve.kept_back())


def _path(path: str, there: Mapping[str, FileDiff]) -> str:
    """Return the path in the diff: the agent may name a file as diffs do, or from the root."""
    bare = path.lstrip("/")
    return next((one for one in (path, bare, re.sub(r"^[ab]/", "", bare)) if one in there), path)


class _Sieve:
    """Keeps back what the repository does not want to hear, and counts it."""

    def __init__(self, config: Reviewing, dismissed: Sequence[Dismissal], code: _Code) -> None:
        self._config = config
        self._dismissed = [(one, Fingerprint(one.path, one.code_sha256, one.body)) for one in dismissed]
        self._code = code
        self._counts: Counter[str] = Counter()

    async def lets(self, one: ReviewFinding, mine: Fingerprint) -> bool:
        if await asyncio.to_thread(is_ignored, one.path, self._config):
            reason = "ignored"
        elif await self._is_dismissed(one, mine):
            reason = "dismissed"
        elif one.severity.rank > self._config.threshold.rank:
            reason = "mild"
        else:
            return True
        self._counts[reason] += 1
        return False

    async def _is_dismissed(self, one: ReviewFinding, mine: Fingerprint) -> bool:
        if await asyncio.to_thread(mine.is_dismissed_in, self._config.dismissed):
            return True
        for old, likeness in await asyncio.to_thread(self._like, mine):
            if likeness is Likeness.SAME:
                return True
            if likeness is Likeness.ALIKE:
                if one.severity.rank >= old.severity.rank and await self._code.stands_once(one):
                    return True
            elif not old.code_sha256 or not await self._code.holds(old):
                return True
        return False

    def _like(self, mine: Fingerprint) -> list[tuple[Dismissal, Likeness]]:
        return [(old, like) for old, theirs in self._dismissed if (like := mine.likeness(theirs)) is not None]

    def kept_back(self) -> KeptBack:
        return KeptBack(self._config.threshold, **self._counts)


async def _sieve(services: Services, turn: Turn, code: _Code) -> _Sieve:
    config = repo_config.load(turn.config).review
    return _Sieve(config, await dismissals.of_repo(services.store, turn.repo_id), code)


async def shown(services: Services, turn: Turn, pull: Pull) -> dict[str, FileDiff]:
    """Return by path all parts of the reviewed commit that can have comments, against today's base."""
    thread = (await sessions.session(services.store, turn.key.session)).thread
    access = await remote_access(services, thread, TokenPurpose.READ_REPOSITORY)
    assert turn.base_sha is not None
    base_ref, head = f"refs/heads/{pull.base_branch}", (turn.base_sha, f"refs/pull/{pull.number}/head")
    try:
        base = await services.cache.fetch(turn.repo_id, access, base_ref)
        await services.cache.fetch(turn.repo_id, access, turn.base_sha)
        found = await compared(services, thread, (base, base_ref), head, max_bytes=MAX_DIFF_BYTES)
    except RefMissing:  # no base, or a forced push removed the commit: no line can have a comment
        return {}
    parsed = await asyncio.to_thread(diffs.parse, found.patch.decode("utf-8", "replace")) if found else ()
    return {one.path: one for one in parsed if one.path is not None}


class _Code:
    """Lines of files at the reviewed commit."""

    def __init__(self, services: Services, turn: Turn) -> None:
        self._services = services
        self._turn = turn
        self._files: dict[str, list[str]] = {}

    async def lines(self, path: str) -> list[str]:
        if path not in self._files:
            repo, sha = self._turn.repo_id, self._turn.base_sha
            assert sha is not None
            data = await self._services.cache.file(repo, sha, path, max_bytes=MAX_FILE_BYTES)
            self._files[path] = (data or b"").decode("utf-8", "replace").split("\n")
        return self._files[path]

    async def digest(self, path: str, first: int, last: int) -> str:
        found = (await self.lines(path))[first - 1 : last]
        return _digest(found) if len(found) == last - first + 1 and any(line.strip() for line in found) else ""

    async def stands_once(self, one: ReviewFinding) -> bool:
        lines = [line.strip() for line in await self.lines(one.path)]
        mine, count = lines[one.first - 1 : one.line], one.line - one.first + 1
        return sum(lines[at : at + count] == mine for at in range(len(lines) - count + 1)) == 1

    async def holds(self, one: StoredFinding | Dismissal) -> bool:
        lines, count = await self.lines(one.path), one.code_lines
        return any(_digest(lines[at : at + count]) == one.code_sha256 for at in range(len(lines) - count + 1))


def _digest(lines: Sequence[str]) -> str:
    """Sum up the code without its indentation."""
    return hashlib.sha256("\n".join(line.strip() for line in lines).encode()).hexdigest()
