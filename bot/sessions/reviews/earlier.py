"""Sorts what a review has found: onto lines of the diff, below it, or said before; and what is mended of these."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from bot.agent import diffs
from bot.agent.diffs import FileDiff
from bot.agent.findings import ReviewFinding, ReviewReport
from bot.git.errors import RefMissing
from bot.github.types import Pull, TokenPurpose
from bot.sessions.services import Services
from bot.sessions.starting_point import compared, remote_access
from bot.store import posted_findings, sessions
from bot.store.posted_findings import StoredFinding
from bot.store.sessions import Turn

MAX_DIFF_BYTES = 4 << 20
MAX_FILE_BYTES = 1 << 20
MOST_ON_LINES = 60
ALIKE = 0.5
"""Share of their words that two findings at the same code have in common, to be one."""


@dataclass(frozen=True)
class Placed:
    """A new finding, with the name by which it is known from now on."""

    name: str
    place: int
    finding: ReviewFinding
    code_sha256: str
    shown: tuple[int, int] | None = None
    """Those of its lines, first and last, at which it can stand."""

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
        )


@dataclass(frozen=True)
class Sorted:
    on_lines: tuple[Placed, ...]
    below: tuple[Placed, ...]
    repeated: int
    resolved: tuple[StoredFinding, ...]


async def sort(services: Services, turn: Turn, pull: Pull, review: ReviewReport) -> Sorted:
    """The same however often it is asked: what this very turn has said already does not count as earlier."""
    known = await posted_findings.open_findings(services.store, turn.repo_id, turn.number)
    before = [one for one in known if (one.session_id, one.turn) != (turn.key.session, turn.key.n)]
    code = _Code(services, turn)
    there = await shown(services, turn, pull)
    new: list[Placed] = []
    again: set[str] = set()
    repeated = 0
    for place, found in enumerate(review.comments, 1):
        one = replace(found, path=_path(found.path, there))
        digest = await code.digest(one.path, one.first, one.line)
        same = [each.id for each in before if _is_same(each, one, digest)]
        again |= set(same)
        repeated += bool(same)
        if not same:
            new.append(Placed(posted_findings.finding_name(turn.key, place), place, one, digest, _shown(one, there)))
    on_lines = [one for one in new if one.shown is not None][:MOST_ON_LINES]
    resolved = [one for one in before if one.id not in again and await _is_mended(one, review, code)]
    below = [one for one in new if one not in on_lines]
    return Sorted(tuple(on_lines), tuple(below), repeated, tuple(resolved))


def _shown(one: ReviewFinding, there: dict[str, FileDiff]) -> tuple[int, int] | None:
    return there[one.path].shown_of(one.first, one.line) if one.path in there else None


def _path(given: str, there: Collection[str]) -> str:
    """Of a file of the diff also where it is named as diffs name it, or from the root."""
    if given in there:
        return given
    bare = given.lstrip("/")
    return next((one for one in (bare, re.sub(r"^[ab]/", "", bare)) if one in there), given)


async def shown(services: Services, turn: Turn, pull: Pull) -> dict[str, FileDiff]:
    """By path, what of the commit that was read can be commented on."""
    return {one.path: one for one in await _diff(services, turn, pull) if one.path is not None}


async def _diff(services: Services, turn: Turn, pull: Pull) -> Sequence[FileDiff]:
    """What the pull request shows of the commit that was read, against its base as it is now."""
    session = await sessions.session(services.store, turn.key.session)
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    assert turn.base_sha is not None
    base_ref, head_ref = f"refs/heads/{pull.base_branch}", f"refs/pull/{pull.number}/head"
    try:
        base = await services.cache.fetch(turn.repo_id, access, base_ref)
        await services.cache.fetch(turn.repo_id, access, turn.base_sha)
        found = await compared(
            services, session.thread, (base, base_ref), (turn.base_sha, head_ref), max_bytes=MAX_DIFF_BYTES
        )
    except RefMissing:  # no base, or the commit is gone with a forced push: nothing can stand on a line
        return ()
    return await asyncio.to_thread(diffs.parse, found.patch.decode("utf-8", "replace")) if found else ()


class _Code:
    """Lines of files at the commit that was read."""

    def __init__(self, services: Services, turn: Turn) -> None:
        self._services = services
        self._turn = turn
        self._files: dict[str, list[str]] = {}

    async def lines(self, path: str) -> list[str]:
        if path not in self._files:
            assert self._turn.base_sha is not None
            data = await self._services.cache.file(
                self._turn.repo_id, self._turn.base_sha, path, max_bytes=MAX_FILE_BYTES
            )
            self._files[path] = (data or b"").decode("utf-8", "replace").split("\n")
        return self._files[path]

    async def digest(self, path: str, first: int, last: int) -> str:
        found = (await self.lines(path))[first - 1 : last]
        return _digest(found) if len(found) == last - first + 1 and any(line.strip() for line in found) else ""

    async def holds(self, one: StoredFinding) -> bool:
        lines, count = await self.lines(one.path), one.code_lines
        return any(_digest(lines[at : at + count]) == one.code_sha256 for at in range(len(lines) - count + 1))


def _digest(lines: Sequence[str]) -> str:
    """Of the code, not of how far it is indented."""
    return hashlib.sha256("\n".join(line.strip() for line in lines).encode()).hexdigest()


def _is_same(known: StoredFinding, one: ReviewFinding, digest: str) -> bool:
    if known.path != one.path:
        return False
    if _words(known.body) == _words(one.body):
        return True
    return bool(digest) and known.code_sha256 == digest and _alike(known.body, one.body) >= ALIKE


def _alike(one: str, other: str) -> float:
    mine, theirs = set(_words(one)), set(_words(other))
    return len(mine & theirs) / max(1, min(len(mine), len(theirs)))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


async def _is_mended(one: StoredFinding, review: ReviewReport, code: _Code) -> bool:
    """The agent says so, or the code that it was about is no longer there."""
    return one.id in review.resolved or (bool(one.code_sha256) and not await code.holds(one))
