"""Recognises a sandbox's newest disk by a mark, which changes on the disk and in our store before each rest."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from sandbox.e2b.line import SandboxLine
from sandbox.errors import EnvironmentGone
from sandbox.primitives import Marks

OLDER = "the environment {} came back from a pause with an older disk"


class Remembered:
    """Marks in memory, for processes without a store."""

    def __init__(self) -> None:
        self._marks: dict[str, frozenset[str]] = {}

    async def known(self, environment_id: str) -> frozenset[str]:
        return self._marks.get(environment_id, frozenset())

    async def add(self, environment_id: str, mark: str) -> None:
        self._marks[environment_id] = await self.known(environment_id) | {mark}

    async def settle(self, environment_id: str, mark: str, instead_of: frozenset[str]) -> None:
        self._marks[environment_id] = (await self.known(environment_id) - instead_of) | {mark}

    async def forget(self, environment_id: str) -> None:
        self._marks.pop(environment_id, None)


class Marking:
    """Checks and renews marks. E2B serves the last disk that it saved, which is an older one after a failed pause."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks

    async def check(self, key: str, found: object) -> bool:
        """Check the mark on a disk; if none is stored, any is valid. False: a crash during a renewal left two valid
        marks, so renew again."""
        known = await self._marks.known(key)
        if known and found not in known:
            raise EnvironmentGone(OLDER.format(key))
        return len(known) <= 1

    async def renew(self, key: str, line: SandboxLine) -> None:
        before, mark = await self._added(key)
        await line.call("mark", key=key, mark=mark, seconds=60.0)
        await self._marks.settle(key, mark, before)

    async def furnished(self, key: str, line: SandboxLine, needed: Sequence[str]) -> dict[str, Any]:
        """Furnish the sandbox with a new mark; if it was furnished before, check its old one."""
        before, mark = await self._added(key)
        answer = await line.call("furnish", key=key, mark=mark, needed=needed, seconds=60.0)
        if answer["known"] and before and answer.get("mark") not in before:
            raise EnvironmentGone(OLDER.format(key))
        await self._marks.settle(key, mark, before)
        return answer

    async def _added(self, key: str) -> tuple[frozenset[str], str]:
        before, mark = await self._marks.known(key), secrets.token_hex(16)
        await self._marks.add(key, mark)
        return before, mark

    async def forget(self, key: str) -> None:
        await self._marks.forget(key)
