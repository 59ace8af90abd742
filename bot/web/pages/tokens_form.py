"""The API's tokens on an account's settings page: its owners make them, see each secret once, and revoke them."""

from __future__ import annotations

from collections.abc import Mapping

from bot import token_making
from bot.errors import UserError
from bot.github.client import GitHubApp
from bot.store import api_tokens
from bot.store.base import Store
from bot.store.repos import InstallationRow
from bot.token_making import KINDS, TokenWish
from bot.web.pages.gate import Fields
from bot.web.pages.visitors import Visitor


class TokensForm:
    def __init__(self, store: Store, github: GitHubApp) -> None:
        self._store = store
        self._github = github

    async def shown(self, row: InstallationRow) -> Mapping[str, object]:
        """Return what the page's part shows."""
        return {
            "made": await api_tokens.of_installation(self._store, row.id),
            "kinds": KINDS,
            "now": self._store.now(),
            "most_days": token_making.MOST_DAYS,
        }

    async def make(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        wish = TokenWish(
            fields.get("token", ""),
            tuple(fields.get("token_repositories", "").replace(",", " ").split()),
            tuple(kind for kind in KINDS if fields.get(f"kind_{kind}") == "yes"),
            fields.get("token_budget", ""),
            fields.get("token_days", ""),
            fields.get("may_answer") == "yes",
        )
        secret = await token_making.make(
            wish, (visitor.login, visitor.id), row, self._store, self._github, by=visitor.login
        )
        return f"The token {wish.name} is made. Copy it now, because nobody can read it again: {secret}"

    async def revoke(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        name = fields.get("token", "")
        if not await api_tokens.revoke(self._store, row.id, name, by=visitor.login, account=row.account):
            raise UserError("This token does not exist, or it was revoked before.")
        return f"The token {name} is revoked. Requests with it are refused from now on; what runs goes on."
