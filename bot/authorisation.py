"""Decide who may start or steer us, from facts alone; the caller fetches them, and asks again before a push."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from bot.models import Permission, Person
from bot.words import on_access, replies


class AccessAnswer(StrEnum):
    """`IGNORED` stays silent; `REFUSED` says its sentence once for each thread."""

    ALLOWED = "allowed"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True)
class AccessDecision:
    answer: AccessAnswer
    reason: str
    """For the ledger and `why`."""
    sentence: str | None = None
    """For the person; None stays silent."""

    @property
    def allowed(self) -> bool:
        return self.answer is AccessAnswer.ALLOWED


_ALLOWED = AccessDecision(AccessAnswer.ALLOWED, "a person with write access asked")
GHOST = 10137
"""GitHub's stand-in for accounts that were deleted."""


@dataclass(frozen=True)
class ServedBy:
    bot_id: int
    app_owner: str
    accounts: Collection[str] = ()
    """Lower-case logins; empty: the App's owner."""

    def serves(self, owner: str) -> bool:
        return owner.lower() in (self.accounts or (self.app_owner.lower(),))


def screen(author: Person, *, repo_owner: str, service: ServedBy, via_app: int | None = None) -> AccessDecision:
    """Decide without asking GitHub: is it a person, and does the operator serve this account?"""
    if author.id == service.bot_id:
        return AccessDecision(AccessAnswer.IGNORED, replies.OWN_TEXT)
    if not author.is_human:
        return AccessDecision(
            AccessAnswer.IGNORED,
            f"{author.login} is not a person but a {author.type or 'thing'}: Forgehand takes no commands from bots",
        )
    if author.id == GHOST:
        return AccessDecision(AccessAnswer.IGNORED, "the account no longer exists")
    if via_app is not None:
        return AccessDecision(AccessAnswer.IGNORED, f"another App ({via_app}) wrote it in the name of {author.login}")
    if not service.serves(repo_owner):
        return AccessDecision(
            AccessAnswer.REFUSED,
            f"the account {repo_owner} is not among those that the operator serves",
            on_access.account_not_served(repo_owner),
        )
    return _ALLOWED


def authorise(author: Person, *, answered_id: int, permission: Permission) -> AccessDecision:
    """Decide by GitHub's answer: it must be about the author's account, whoever has the login now."""
    if answered_id != author.id:
        return AccessDecision(
            AccessAnswer.REFUSED,
            f"the login {author.login} now belongs to another account (id {answered_id}, not {author.id})",
            on_access.another_account(author.login),
        )
    if not permission.may_write:
        return AccessDecision(
            AccessAnswer.REFUSED,
            f"{author.login} has {permission} access to the repository; it takes write access",
            on_access.no_write_access(author.login),
        )
    return _ALLOWED


def unverified(author: Person, status: int) -> AccessDecision:
    """Let nobody in on a guess when GitHub refuses to say; while it does not answer at all, the delivery waits."""
    return AccessDecision(
        AccessAnswer.REFUSED,
        f"the permission of {author.login} could not be verified (GitHub answered {status})",
        on_access.could_not_verify(author.login, status),
    )
