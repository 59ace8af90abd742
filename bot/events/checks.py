"""Events about check runs and commit statuses: someone pressed a button of ours, or a check has ended."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bot import events
from bot.events.ignored import Ignored
from bot.models import DeliveryId, InstallationId, Origin, Repo

_NO_USE = "nothing is asked of us with it, and no check has ended"
EVENTS = ("check_run", "status")


@dataclass(frozen=True)
class CheckAsked:
    """Someone pressed a button of a check run, ours or another App's."""

    origin: Origin
    repo: Repo
    installation: InstallationId
    app_id: int
    external_id: str
    wish: str
    """retry or stop."""


@dataclass(frozen=True)
class CheckEnded:
    """Anyone's check or status of a commit has ended."""

    origin: Origin
    repo: Repo
    installation: InstallationId
    app_id: int
    """0 for a status, which belongs to no App."""
    sha: str


def decode(name: str, body: bytes | str, delivery: DeliveryId) -> CheckAsked | CheckEnded | Ignored:
    return _status(body, delivery) if name == "status" else _check(body, delivery)


def _status(body: bytes | str, delivery: DeliveryId) -> CheckEnded | Ignored:
    payload = msgspec.json.decode(body, type=events.OfStatus)
    if payload.installation is None or payload.state == "pending":
        return Ignored(delivery, _NO_USE)
    origin = Origin(delivery, "status", payload.state, events.person(payload.sender))
    installation = InstallationId(payload.installation.id)
    return CheckEnded(origin, events.repo(payload.repository), installation, 0, payload.sha)


def _check(body: bytes | str, delivery: DeliveryId) -> CheckAsked | CheckEnded | Ignored:
    payload = msgspec.json.decode(body, type=events.OfCheck)
    if payload.installation is None:
        return Ignored(delivery, _NO_USE)
    found, repo = payload.check_run, events.repo(payload.repository)
    origin = Origin(delivery, "check_run", payload.action, events.person(payload.sender))
    installation, app_id = InstallationId(payload.installation.id), found.app.id if found.app else 0
    if payload.action == "completed":
        return CheckEnded(origin, repo, installation, app_id, found.head_sha)
    if payload.action not in ("requested_action", "rerequested"):
        return Ignored(delivery, _NO_USE)
    # GitHub's own button to run a check again means the same as ours.
    wish = payload.requested_action.identifier if payload.requested_action else "retry"
    return CheckAsked(origin, repo, installation, app_id, found.external_id or "", wish)
