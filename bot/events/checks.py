"""Knows what GitHub tells of check runs: a button of ours that was pressed, and a check of anybody's that has ended."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bot.events import payloads
from bot.models import DeliveryId, InstallationId, Origin, Person, Repo, RepoId


@dataclass(frozen=True)
class CheckAsked:
    """Somebody pressed a button of a check run; of whose, the handler finds out."""

    origin: Origin
    repo: Repo
    installation: InstallationId
    app_id: int
    external_id: str
    wish: str
    """retry or stop."""


@dataclass(frozen=True)
class CheckEnded:
    """A check of a commit has come to its end, whoever runs it."""

    origin: Origin
    repo: Repo
    installation: InstallationId
    app_id: int
    sha: str


def decode(body: bytes | str, delivery: DeliveryId) -> CheckAsked | CheckEnded | None:
    """None for what we have no use for."""
    payload = msgspec.json.decode(body, type=payloads.OfCheck)
    if payload.installation is None:
        return None
    found, repo, sender = payload.check_run, payload.repository, payload.sender
    origin = Origin(delivery, "check_run", payload.action, Person(sender.id, sender.login, sender.type))
    where = Repo(RepoId(repo.id), repo.owner.login, repo.name, repo.private, repo.default_branch)
    installation, app_id = InstallationId(payload.installation.id), found.app.id if found.app else 0
    if payload.action == "completed":
        return CheckEnded(origin, where, installation, app_id, found.head_sha)
    if payload.action not in ("requested_action", "rerequested"):
        return None
    # GitHub's own button to run a check again means the same as ours
    wish = payload.requested_action.identifier if payload.requested_action else "retry"
    return CheckAsked(origin, where, installation, app_id, found.external_id or "", wish)
