"""An MCP server as its owner enters it: checked for the store, put into words, and tried out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from bot.errors import UserError
from bot.models import InstallationId
from bot.outside import addresses, services
from bot.outside.client import OutsideClient
from bot.repo_config.mcp import MOST_TOOLS
from bot.sessions.tool_servers import ASK, FORKS, PERMISSION, TOOLS, YES
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.store.base import Store
from bot.store.outside_services import CredentialKind, OutsideService, Purpose
from bot.vault import Vault
from bot.web.mcp.credentials import (
    CLIENT_CREDENTIALS,
    GRANT,
    OAUTH_SCOPE,
    REFRESH_TOKEN,
    TOKEN_ADDRESS,
    McpCredentials,
)
from bot.web.mcp.remote import McpTrouble, RemoteServer
from sandbox.agents.base import one_line

KIND = "streamable http"
OAUTH = {"client": CLIENT_CREDENTIALS, "refresh": REFRESH_TOKEN}
CREDENTIALS = {
    "none": "no credential",
    "bearer": "a bearer token",
    "basic": "a user and password",
    "header": "a header with a name",
    "client": "an OAuth client (client credentials)",
    "refresh": "an OAuth client with a refresh token",
}
"""Kinds of credentials for people; the last two ask a token address for access tokens."""
MOST_SHOWN = 40
_TOOL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SCOPE = re.compile(r"[!#-\[\]-~ ]{0,500}")


@dataclass(frozen=True)
class ServerEntry:
    name: str
    address: str
    credential: str = "none"
    identity: str = ""
    """The user, the header's name or the client's id."""
    token_address: str = ""
    scope: str = ""
    tools: tuple[str, ...] = ()
    """The tools that repositories may open; empty: any."""
    asks: bool = False
    forks: bool = False

    @classmethod
    def of_fields(cls, fields: Mapping[str, str]) -> ServerEntry:
        """Read the fields of a form."""
        plain = {
            name: fields.get(name, "").strip() for name in ("name", "address", "identity", "token_address", "scope")
        }
        return cls(
            **plain,
            credential=fields.get("credential", ""),
            tools=tuple(fields.get("tools", "").replace(",", " ").split()),
            asks=fields.get("asks") == "yes",
            forks=fields.get("forks") == "yes",
        )

    def service(self, installation: InstallationId, by: str, inside: InsideHosts) -> OutsideService:
        """Raise UserError for what cannot be stored."""
        if self.credential not in CREDENTIALS:
            raise UserError(f"The credential must be one of {', '.join(CREDENTIALS)}.")
        if len(self.tools) > MOST_TOOLS or not all(_TOOL.fullmatch(tool) for tool in self.tools):
            raise UserError(f"Name up to {MOST_TOOLS} tools as the server does, such as `find_issue create_issue`.")
        options = {
            TOOLS: " ".join(self.tools),
            PERMISSION: ASK if self.asks else "",
            FORKS: YES if self.forks else "",
            **self._oauth(inside),
        }
        kind = CredentialKind.BASIC if self.credential in OAUTH else CredentialKind(self.credential)
        return OutsideService(
            installation,
            Purpose.MCP,
            self.name,
            KIND,
            self.address,
            stored_by=by,
            options={name: value for name, value in options.items() if value},
            credential=kind,
            credential_name=self.identity if kind in (CredentialKind.BASIC, CredentialKind.HEADER) else "",
        )

    def _oauth(self, inside: InsideHosts) -> dict[str, str]:
        if self.credential not in OAUTH:
            if self.token_address or self.scope:
                raise UserError("Only an OAuth client has a token address and a scope.")
            return {}
        if not self.token_address:
            raise UserError("An OAuth client needs the address that gives out its access tokens.")
        if not _SCOPE.fullmatch(self.scope):
            raise UserError("The scope must be words such as `issues:read issues:write`.")
        addresses.read(self.token_address, inside)
        return {GRANT: OAUTH[self.credential], TOKEN_ADDRESS: self.token_address, OAUTH_SCOPE: self.scope}


def credential_words(service: OutsideService) -> str:
    kinds = {grant: kind for kind, grant in OAUTH.items()}
    return CREDENTIALS[kinds.get(service.options.get(GRANT, ""), service.credential.value)]


def rules_words(service: OutsideService) -> str:
    """Say what its tools may do."""
    tools = service.options.get(TOOLS, "").split()
    words = f"repositories may open {', '.join(tools)}" if tools else "repositories may open any of its tools"
    asks = "; people are asked about each call" if service.options.get(PERMISSION) == ASK else ""
    forks = "; also for work on forks" if service.options.get(FORKS) == YES else ""
    return words + asks + forks


async def keep(
    store: Store, vault: Vault, service: OutsideService, secret: str, *, account: str, inside: InsideHosts
) -> None:
    """Store it with its secret, which is empty if it needs none."""
    value = Secret(secret) if secret.strip() else None
    await services.keep(store, vault, service, value, account=account, inside=inside)


async def try_out(store: Store, vault: Vault, service: OutsideService, inside: InsideHosts) -> tuple[bool, str]:
    """Ask a stored server for its tools. Return (whether it answered, a sentence)."""
    client = OutsideClient(inside)
    credentials = McpCredentials(store, vault, client)
    server = RemoteServer(service.name, service.address, client, partial(credentials.header, service))
    try:
        found = await server.tools()
        await server.end()
    except McpTrouble as trouble:
        return False, _without(str(trouble), credentials.hidden(service))
    finally:
        await client.close()
    names = [one_line(str(one.get("name")), 64) for one in found if isinstance(one, dict)]
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    listed = f"{', '.join(names[:MOST_SHOWN])}{more}" if names else "none"
    return True, _without(f"{service.name} answers. Its tools: {listed}.", credentials.hidden(service))


def _without(text: str, hidden: tuple[str, ...]) -> str:
    for secret in hidden:
        text = text.replace(secret, "[redacted]")
    return text
