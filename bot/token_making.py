"""Makes a token of the API: checks what its owner wants, asks GitHub for the repositories, and stores its digest."""

from __future__ import annotations

import math
import re
import secrets
import string
from dataclasses import dataclass

from bot.errors import GitHubRefused, UserError
from bot.github.client import GitHubApp
from bot.models import RepoId
from bot.store import api_tokens
from bot.store.api_tokens import ApiToken, ScopedRepo
from bot.store.base import Store
from bot.store.operations import DAY
from bot.store.repos import InstallationRow

KINDS = ("run", "ask", "plan", "review")
PREFIX = "fhat_"
MOST_DAYS = 365
MOST_USD = 100_000.0
MOST_REPOSITORIES = 50
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_ALPHABET = string.ascii_lowercase + string.digits


@dataclass(frozen=True)
class TokenWish:
    """As it was typed."""

    name: str
    repositories: tuple[str, ...]
    kinds: tuple[str, ...]
    budget_usd: str
    days: str
    may_answer: bool = False


async def make(
    wish: TokenWish, maker: tuple[str, int], row: InstallationRow, store: Store, github: GitHubApp, *, by: str
) -> str:
    """Return the secret, which nobody can read again. `maker` is the login and number of whom it acts for."""
    budget, days = _checked(wish)
    found = tuple([await _found(name, row, github) for name in dict.fromkeys(wish.repositories)])
    secret, now = f"{PREFIX}{secrets.token_urlsafe(32)}", store.now()
    token = ApiToken(
        "".join(secrets.choice(_ALPHABET) for _ in range(8)),
        row.id,
        wish.name,
        *maker,
        repositories=found,
        kinds=wish.kinds,
        may_answer=wish.may_answer,
        budget_usd=budget,
        made_at=now,
        ends_at=now + days * DAY,
    )
    if not await api_tokens.put(store, token, secret, by=by, account=row.account):
        raise UserError(f"{row.account} has or had a token {wish.name}. Choose a new name: the audit log tells by it.")
    return secret


def _checked(wish: TokenWish) -> tuple[float, int]:
    if not _NAME.fullmatch(wish.name):
        raise UserError("The name has 1 to 40 lower-case letters, digits and hyphens, such as nightly-ci.")
    if not wish.repositories or len(wish.repositories) > MOST_REPOSITORIES:
        raise UserError(f"Name 1 to {MOST_REPOSITORIES} repositories, such as octo-org/shop.")
    if not wish.kinds or set(wish.kinds) - set(KINDS):
        raise UserError(f"Choose at least one kind of turn: {', '.join(KINDS)}.")
    try:
        budget, days = float(wish.budget_usd.removeprefix("$")), int(wish.days)
    except ValueError:
        budget, days = math.nan, 0
    if not 0.01 <= budget <= MOST_USD:
        raise UserError(f"The budget is a number of dollars from 0.01 to {MOST_USD:,.0f}, such as 20.")
    if not 1 <= days <= MOST_DAYS:
        raise UserError(f"The token ends after 1 to {MOST_DAYS} days.")
    return budget, days


async def _found(name: str, row: InstallationRow, github: GitHubApp) -> ScopedRepo:
    """Look the repository up now, because its number counts from here on."""
    full_name = name if "/" in name else f"{row.account}/{name}"
    missing = UserError(f"The App sees no repository {full_name} of {row.account}. Install it there, or fix the name.")
    if full_name.partition("/")[0].casefold() != row.account.casefold():
        raise missing
    try:
        view = await github.installation(row.id).repo(full_name)
    except GitHubRefused:
        raise missing from None
    return ScopedRepo(RepoId(view.id), view.full_name)
