"""Messages to a running agent: left in its inbox, and known to be delivered or not, whichever of the two it was."""

from __future__ import annotations

import asyncio
import hashlib
import json
import posixpath
import re
import time
from collections.abc import Awaitable, Callable

from sandbox.errors import EnvironmentBusy
from sandbox.primitives import EnvironmentPrimitives
from sandbox.results import RunState, RunStatus

WAIT_SECONDS = 15.0
FIRST_POLL, LAST_POLL = 0.02, 0.5
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Mailbox:
    """The runner alone decides: it acknowledges what the agent's stdin took, or it marks stdin as closed."""

    def __init__(
        self, primitives: EnvironmentPrimitives, folder: str, status: Callable[[], Awaitable[RunStatus]]
    ) -> None:
        self._primitives = primitives
        self._folder = folder
        self._status = status

    @staticmethod
    def file(message_id: str, line: bytes, *, order: int) -> tuple[str, bytes]:
        """Name and content; the runner takes files in the order of their names."""
        known_as = _known_as(message_id)
        content = json.dumps({"id": known_as, "line": line.decode("utf-8", "replace")}).encode()
        return f"{order:020d}-{known_as}.json", content

    async def deliver(self, message_id: str, line: bytes) -> bool:
        """May be repeated with the same id: the agent is given the message once."""
        if (known := await self._known(message_id)) is not None:
            return known
        name, content = self.file(message_id, line, order=time.time_ns())
        await self._primitives.write(posixpath.join(self._folder, "inbox", name), content)
        deadline, pause = time.monotonic() + WAIT_SECONDS, FIRST_POLL
        while (known := await self._known(message_id)) is None:
            if time.monotonic() > deadline:
                raise EnvironmentBusy("The running agent's stdin did not take the message in time.")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_POLL)
        return known

    async def _known(self, message_id: str) -> bool | None:
        """None while it is open. The end is looked at first: a delivery before it is seen by the second look."""
        closed = await self._exists("closed") or (await self._status()).state is not RunState.RUNNING
        if await self._exists(posixpath.join("delivered", _known_as(message_id))):
            return True
        return False if closed else None

    async def _exists(self, name: str) -> bool:
        return await self._primitives.stat(posixpath.join(self._folder, name)) is not None


def _known_as(message_id: str) -> str:
    """A file name of one kind, whatever the id."""
    if _PLAIN.fullmatch(message_id):
        return message_id
    return hashlib.sha256(message_id.encode()).hexdigest()[:32]
