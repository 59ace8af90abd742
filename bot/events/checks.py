"""Knows what GitHub tells of check runs and commit statuses: a button of ours was pressed, a check has ended."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bot.events import payloads
from bot.models import DeliveryId, InstallationId, Origin, Person, Repo, RepoId

EVENTS = ("check_run", "status")


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
    """A check or a status of a commit has come to its end, whoever runs it."""

    origin: Origin
    repo: Repo
    installation: InstallationId
    app_id: int
    """0 of a status: it is nobody's, and never ours."""
    sha: str


def decode(name: str, body: bytes | str, delivery: DeliveryId) -> CheckAsked | CheckEnded | None:
    """None for what we have no use for."""
    return _status(body, delivery) if name == "status" else _check(body, delivery)


def _status(body: bytes | str, delivery: DeliveryId) -> CheckEnded | None:
    payload = msgspec.json.decode(body, type=payloads.OfStatus)
    if payload.installation is None or payload.state == "pending":
        return None
    origin = Origin(delivery, "status", payload.state, _sender(payload.sender))
    return CheckEnded(origin, _repo(payload.repository), InstallationId(payload.installation.id), 0, payload.sha)


def _check(body: bytes | str, delivery: DeliveryId) -> CheckAsked | CheckEnded | None:
    payload = msgspec.json.decode(body, type=payloads.OfCheck)
    if payload.installation is None:
        return None
    found, where = payload.check_run, _repo(payload.repository)
    origin = Origin(delivery, "check_run", payload.action, _sender(payload.sender))
    installation, app_id = InstallationId(payload.installation.id), found.app.id if found.app else 0
    if payload.action == "completed":
        return CheckEnded(origin, where, installation, app_id, found.head_sha)
    if payload.action not in ("requested_action", "rerequested"):
        return None
    # GitHub's own button to run a check again means the same as ours
    wish = payload.requested_action.identifier if payload.requested_action else "retry"
    return CheckAsked(origin, where, installation, app_id, found.external_id or "", wish)


def _sender(user: payloads.User) -> Person:
    return Person(user.id, user.login, user.type)


def _repo(found: payloads.Repository) -> Repo:
    return Repo(RepoId(found.id), found.owner.login, found.name, found.private, found.default_branch)
