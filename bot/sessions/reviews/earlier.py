"""Sorts the findings of a review (onto lines of the diff, below it, or said before) and finds the fixed ones."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.agent import diffs
from bot.agent.diffs import FileDiff
from bot.agent.findings import ReviewFinding, ReviewReport
from bot.git.errors import RefMissing
from bot.github.types import Pull, TokenPurpose
from bot.sessions.services import Services
from bot.sessions.starting_point import compared, remote_access
from bot.store import findings, sessions
from bot.store.findings import StoredFinding
from bot.store.sessions import Turn

MAX_DIFF_BYTES = 4 << 20
MAX_FILE_BYTES = 1 << 20
MOST_ON_LINES = 60
ALIKE = 0.5
"""Two findings at the same code are one if they share at least this part of their words."""


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
        )


@dataclass(frozen=True)
class Sorted:
    on_lines: tuple[Placed, ...]
    below: tuple[Placed, ...]
    repeated: int
    resolved: tuple[StoredFinding, ...]


async def sort(services: Services, turn: Turn, pull: Pull, review: ReviewReport) -> Sorted:
    """Sort the findings; a repetition sorts the same, as this very turn's own do not count as earlier."""
    known = await findings.open_findings(services.store, turn.repo_id, turn.number)
    before = [one for one in known if (one.session_id, one.turn) != (turn.key.session, turn.key.n)]
    code = _Code(services, turn)
    there = await shown(services, turn, pull)
    new: list[Placed] = []
    again: set[str] = set()
    repeated = 0
    for place, found in enumerate(review.comments, 1):
        # The agent may name a file as diffs do, or from the root.
        bare = found.path.lstrip("/")
        path = next((one for one in (found.path, bare, re.sub(r"^[ab]/", "", bare)) if one in there), found.path)
        one = replace(found, path=path)
        digest = await code.digest(path, one.first, one.line)
        same = [each.id for each in before if _is_same(each, one, digest)]
        again |= set(same)
        repeated += bool(same)
        if not same:
            lines = there[path].shown_of(one.first, one.line) if path in there else None
            new.append(Placed(findings.finding_name(turn.key, place), place, one, digest, lines))
    on_lines = [one for one in new if one.shown is not None][:MOST_ON_LINES]
    resolved = [  # the agent names it, or its code is gone
        one
        for one in before
        if one.id not in again and (one.id in review.resolved or (one.code_sha256 and not await code.holds(one)))
    ]
    below = [one for one in new if one not in on_lines]
    return Sorted(tuple(on_lines), tuple(below), repeated, tuple(resolved))


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

    async def holds(self, one: StoredFinding) -> bool:
        lines, count = await self.lines(one.path), one.code_lines
        return any(_digest(lines[at : at + count]) == one.code_sha256 for at in range(len(lines) - count + 1))


def _digest(lines: Sequence[str]) -> str:
    """Sum up the code without its indentation."""
    return hashlib.sha256("\n".join(line.strip() for line in lines).encode()).hexdigest()


def _is_same(known: StoredFinding, one: ReviewFinding, digest: str) -> bool:
    if known.path != one.path:  # most pairs: their words are not read, which takes long for many findings
        return False
    words, others = (re.findall(r"\w+", text.lower()) for text in (known.body, one.body))
    mine, theirs = set(words), set(others)
    is_alike = len(mine & theirs) / max(1, min(len(mine), len(theirs))) >= ALIKE
    at_same_code = bool(digest) and known.code_sha256 == digest
    return words == others or (at_same_code and is_alike)
