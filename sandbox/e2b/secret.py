"""Stores the model's key with E2B, whose proxy adds it to requests outside the sandbox: unmetered use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.e2b import faults
from sandbox.errors import EnvironmentBusy, SandboxError

ASK_SECONDS = 30.0
PASSING = 500
REFUSED = (
    "E2B does not keep the model's key as a secret of this account ({}), which FORGEHAND_E2B_UNMETERED needs. Leave "
    "that out: sandboxes then reach the model through Forgehand's gateway, and budgets hold."
)


@dataclass(frozen=True)
class Unmetered:
    """The model's address and key for requests that bypass our gateway."""

    key: str = field(repr=False)
    host: str
    header: str = "x-api-key"
    path: str = ""  # the gateway's path, which agents put before the provider's

    def rules(self, name: str) -> Mapping[str, object]:
        from e2b import Secret

        return {self.host: [{"transform": {"headers": {self.header: Secret.fill(name)}}}]}


class Secrets:
    """Stores one secret with E2B, once per process."""

    def __init__(self, secrets: Any, name: str, value: str) -> None:
        self._secrets = secrets
        self._name = name
        self._value = value
        self._lock = asyncio.Lock()
        self._kept = False

    async def keep(self) -> None:
        async with self._lock:
            if not self._kept:
                await self._put()
                self._kept = True

    async def _put(self) -> None:
        # Errors leave without E2B's words, which may contain the key.
        from e2b import SecretNotFoundException

        try:
            async with asyncio.timeout(ASK_SECONDS):
                try:
                    await self._secrets.update(self._name, self._value)
                except SecretNotFoundException:
                    await self._secrets.create(self._name, self._value)
        except Exception as error:  # noqa: BLE001 - any error of the SDK and its libraries
            faults.heed(error)
            status = _status(error)
            if status is None or status in (408, 409, 429) or status >= PASSING:
                raise EnvironmentBusy("E2B did not take the model's key; Forgehand tries again") from None
            raise SandboxError(REFUSED.format(status)) from None


def _status(error: Exception) -> int | None:
    """Return an error's HTTP status, which errors about secrets have only in their words."""
    from e2b import AuthenticationException, SecretException

    if isinstance(error, AuthenticationException):
        return 401
    found = str(error)[:3]
    return int(found) if isinstance(error, SecretException) and found.isdigit() else None
