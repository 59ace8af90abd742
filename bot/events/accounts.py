"""Events about accounts: where the App is installed, and what people may see."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import msgspec

from bot import events
from bot.events.ignored import Ignored, useless
from bot.models import ACCOUNT_REPOSITORY, DeliveryId, InstallationId, Origin, Person, RepoId


@dataclass(frozen=True)
class InstalledRepo:
    id: RepoId
    owner: str
    name: str
    private: bool


@dataclass(frozen=True)
class InstallationChanged:
    """The App was installed, removed, suspended or given other repositories; safe in any order, and twice."""

    origin: Origin
    installation: InstallationId
    account: Person
    state: str
    """active, suspended or deleted."""
    added: tuple[InstalledRepo, ...] = ()
    removed: tuple[InstalledRepo, ...] = ()


@dataclass(frozen=True)
class AccessChanged:
    """A person's access has changed, or may have."""

    origin: Origin
    person: Person
    leaves: bool
    """True if they left the organisation, or no longer let us know who they are: their sign-in ends."""


@dataclass(frozen=True)
class AccountRepositoryPushed:
    """The default branch of an account's own repository has moved."""

    origin: Origin
    installation: InstallationId


PUSH = "push"


def decode_push(body: bytes | str, delivery: DeliveryId) -> AccountRepositoryPushed | Ignored:
    payload = msgspec.json.decode(body, type=events.OfPush)
    repo = payload.repository
    if payload.installation is None or (repo.name, payload.ref) != (
        ACCOUNT_REPOSITORY,
        f"refs/heads/{repo.default_branch}",
    ):
        return useless(delivery, PUSH)
    origin = Origin(delivery, PUSH, "", events.person(payload.sender))
    return AccountRepositoryPushed(origin, InstallationId(payload.installation.id))


_PEOPLE = {
    ("github_app_authorization", "revoked"): True,
    ("organization", "member_removed"): True,
    ("organization", "member_added"): False,
    ("member", "removed"): False,
    ("member", "edited"): False,
    ("member", "added"): False,
}
"""True where the person has left."""
ABOUT_PEOPLE = frozenset(name for name, _ in _PEOPLE)


def decode_access(name: str, body: bytes | str, delivery: DeliveryId) -> AccessChanged | Ignored:
    payload = msgspec.json.decode(body, type=events.OfPerson)
    leaves = _PEOPLE.get((name, payload.action))
    if leaves is None:
        return useless(delivery, name, payload.action)
    origin = Origin(delivery, name, payload.action, events.person(payload.sender))
    in_organization = payload.membership.user if payload.membership else None
    whose = {"github_app_authorization": payload.sender, "organization": in_organization, "member": payload.member}
    return AccessChanged(origin, events.person(whose[name]), leaves)


def decode_installation(name: str, body: bytes | str, delivery: DeliveryId) -> InstallationChanged | Ignored:
    payload = msgspec.json.decode(body, type=events.OfInstallation)
    origin = Origin(delivery, name, payload.action, events.person(payload.sender))
    known = _INSTALLATION_STATES.get((name, payload.action))
    if known is None:
        return useless(delivery, name, payload.action)
    account = payload.installation.account
    suspended = known == "active" and payload.installation.suspended_at is not None
    return InstallationChanged(
        origin=origin,
        installation=InstallationId(payload.installation.id),
        account=events.person(account),
        state="suspended" if suspended else known,
        added=_repos(payload.repositories, payload.repositories_added),
        removed=_repos(payload.repositories_removed),
    )


_INSTALLATION_STATES = {
    ("installation", "created"): "active",
    ("installation", "new_permissions_accepted"): "active",
    ("installation", "unsuspend"): "active",
    ("installation", "suspend"): "suspended",
    ("installation", "deleted"): "deleted",
    ("installation_repositories", "added"): "active",
    ("installation_repositories", "removed"): "active",
}


def _repos(*found: tuple[events.ShortRepo, ...] | None) -> tuple[InstalledRepo, ...]:
    repos = []
    for repo in chain.from_iterable(filter(None, found)):
        owner, slash, name = repo.full_name.partition("/")
        if slash and owner and name:
            repos.append(InstalledRepo(RepoId(repo.id), owner, name, repo.private))
    return tuple(repos)
