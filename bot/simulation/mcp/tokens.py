"""The token endpoint of a stand-in for an MCP server: client credentials, and refresh tokens that work once."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import JSONResponse


@dataclass
class TokenDesk:
    """Gives access tokens to one client. Each refresh token works once and is replaced."""

    client: str = "forgehand"
    secret: str = "mcp-client-secret-canary"
    refresh: str | None = None
    seconds: int = 3600
    given: list[str] = field(default_factory=list)
    """Access tokens in order; clear it to end them all."""

    async def answer(self, request: Request) -> JSONResponse:
        form = dict(parse_qsl((await request.body()).decode()))
        if request.headers.get("content-type") != "application/x-www-form-urlencoded":
            return _error(400, "invalid_request")
        if not self._knows(request.headers.get("authorization", "")):
            return _error(401, "invalid_client")
        match form.get("grant_type"):
            case "client_credentials" if self.refresh is None:
                return self._given()
            case "refresh_token" if self.refresh and form.get("refresh_token") == self.refresh:
                self.refresh = f"mcp-refresh-canary-{secrets.token_hex(8)}"
                return self._given()
            case "refresh_token":
                return _error(400, "invalid_grant")
        return _error(400, "unsupported_grant_type")

    def _knows(self, shown: str) -> bool:
        scheme, _, packed = shown.partition(" ")
        try:
            client, _, secret = base64.b64decode(packed, validate=True).decode().partition(":")
        except ValueError:
            return False
        return scheme == "Basic" and (unquote(client), unquote(secret)) == (self.client, self.secret)

    def _given(self) -> JSONResponse:
        self.given.append(f"mcp-access-canary-{secrets.token_hex(8)}")
        found = {"access_token": self.given[-1], "token_type": "Bearer", "expires_in": self.seconds}
        return JSONResponse(found | ({"refresh_token": self.refresh} if self.refresh else {}))


def _error(status: int, word: str) -> JSONResponse:
    return JSONResponse({"error": word}, status)
