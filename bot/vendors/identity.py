"""A credential that lasts some time: asked for in a thread, once for all who wait, and again before it ends."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bot.errors import BotError, TransientError
from bot.settings import Secret

log = logging.getLogger(__name__)

FETCH_SECONDS = 25.0
EARLY_SECONDS = 300.0
"""Before its end, a credential is renewed while it still serves."""
LEAST_SECONDS = 30.0
"""A credential must last at least this long, so that it is valid when the request arrives."""
AGAIN_SECONDS = 30.0
DOUBT_SECONDS = 60.0
"""A credential younger than this is refused for another reason than its age."""
LATE_SECONDS = 10.0
"""After one was dropped, the refusals of other requests with it may come for so long."""
SURPRISES = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What SDKs also raise about settings that they did not expect."""
MOST_WORDS = 300
SECRETIVE = re.compile(
    r"Credential=[^\s,]+|(?i:x-amz-security-token)[:=]\s*\S+|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\b\d{12}\b"
    r"|\bprojects/[^/\s`']+|[A-Za-z0-9+_=%-]{48,}|[A-Za-z0-9+/_=%-]{160,}"
)
"""Parts of a signature, ids of keys, the names of accounts and projects, and whatever is as long as a token: Amazon
repeats the whole signed request if a signature is wrong."""
T = TypeVar("T")


class IdentityRefused(BotError):
    """There is no credential until somebody changes something; the text says what."""


class IdentityUnavailable(TransientError):
    """The service that gives out credentials does not answer."""


@dataclass(frozen=True)
class Lasting(Generic[T]):
    value: T
    until: float
    """By the clock of `time.time`."""
    secrets: tuple[Secret, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class SecretWitness:
    """Hears of each secret while it counts, to keep it out of what people read."""

    on_secret: Callable[[str], None] = lambda _: None
    on_retired: Callable[[str], None] = lambda _: None


class Renewed(Generic[T]):
    def __init__(self, whose: str, fetch: Callable[[], Lasting[T]], witness: SecretWitness | None = None) -> None:
        """`fetch` may block; it raises IdentityRefused or IdentityUnavailable."""
        self._whose = whose
        self._fetch = fetch
        self._witness = witness or SecretWitness()
        self._hidden: list[frozenset[str]] = []
        """The secrets of the last two credentials: requests under way may still use the older one."""
        self._kept: Lasting[T] | None = None
        self._since = self._next = 0.0
        self._dropped_at = -math.inf
        self._under_way: asyncio.Task[T | BotError] | None = None

    async def current(self) -> T:
        now, kept = time.time(), self._kept
        if kept is not None and now < self._next:
            return kept.value
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.create_task(self._renew())
        if kept is not None and now < kept.until - LEAST_SECONDS:
            return kept.value
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                found = await asyncio.shield(self._under_way)
        except TimeoutError:
            raise IdentityUnavailable(f"{self._whose} gave no credential within {FETCH_SECONDS:.0f} s.") from None
        if isinstance(found, BotError):
            raise found
        return found

    def doubt(self) -> bool:
        """Drop the credential, which was refused; False if a new one would be refused too. Of several requests under
        way with it, the first refusal drops it."""
        now = time.time()
        if self._kept is not None and now - self._since >= DOUBT_SECONDS:
            self._kept, self._dropped_at = None, now
        return now - self._dropped_at < LATE_SECONDS

    async def _renew(self) -> T | BotError:
        """Return the new credential, or why there is none; perhaps nobody waits for it."""
        try:
            found = await asyncio.to_thread(self._fetch)
        except BotError as error:
            self._next = time.time() + AGAIN_SECONDS
            log.warning("%s gave no new credential: %s", self._whose, error)
            return error
        except SURPRISES as error:  # its words may repeat what is set
            self._next = time.time() + AGAIN_SECONDS
            words = f"There is no credential for {self._whose}: what is set does not fit ({type(error).__name__})."
            log.warning("%s", words)
            return IdentityRefused(f"{words} Make a new key, and set it.")
        new = frozenset(secret.reveal() for secret in found.secrets)
        self._hidden, old = [*self._hidden, new][-2:], self._hidden
        for secret in new:
            self._witness.on_secret(secret)
        for secret in frozenset[str]().union(*old) - frozenset[str]().union(*self._hidden):
            self._witness.on_retired(secret)
        self._kept, self._since = found, time.time()
        self._next = max(found.until - EARLY_SECONDS, self._since + AGAIN_SECONDS)
        return found.value


def shown(error: Exception) -> str:
    """Return an SDK's words on one line."""
    return plain(str(error), MOST_WORDS).rstrip(". ")


def plain(said: str, most: int) -> str:
    """Return a vendor's words on one line, without secrets; what is cut off is cut off afterwards."""
    hidden = SECRETIVE.sub("[redacted]", said[: 4 * most])
    return "".join(letter if letter.isprintable() else " " for letter in hidden)[:most]
