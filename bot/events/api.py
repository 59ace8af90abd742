"""What a program asks for through the API. It is stored as a delivery, so that a request is handled like a comment."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bot.events.threads import Remark
from bot.models import DeliveryId, InstallationId, RepoId

EVENT = "api"
"""GitHub has no event of this name; one that came by `/webhook` would be kept without its body."""
START, STOP, SAY, ANSWER = "start", "stop", "say", "answer"


@dataclass(frozen=True)
class ApiRemark(Remark):
    """A command that came through the API, in the name of the person who made the token."""

    guid: str = ""
    token: str = ""
    """The token's name."""
    most_usd: float | None = None
    """What the token's budget leaves for the turn that it starts."""

    @property
    def source(self) -> str:
        return source_of(self.guid)

    @property
    def answered_elsewhere(self) -> bool:
        return True


class ApiAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the API has let in: whom it is of, where it goes, and its words."""

    token: str
    action: str
    installation: InstallationId
    repo_id: RepoId
    repository: str
    number: int
    at: float
    delivery: str = ""
    kind: str = "run"
    words: str = ""
    model: str | None = None
    base: str | None = None
    budget_usd: float | None = None
    approval: str | None = None
    says_yes: bool = False
    scope: str = "once"


def decode(body: bytes | str, delivery: DeliveryId) -> ApiAsked:
    return msgspec.structs.replace(msgspec.json.decode(body, type=ApiAsked), delivery=delivery)


def source_of(guid: str) -> str:
    """Name what a request starts, as a comment's number does."""
    return f"api:{guid}"
