"""Anthropic's API, or one that is compatible: requests and answers pass as they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bot.models import InstallationId
from bot.web.gateway import clients, dialect, model_request
from bot.web.gateway.dialect import Credential, Dialect
from bot.web.gateway.model_request import CheckedRequest
from bot.web.gateway.providers import AgentRequest, OutgoingRequest, PlainStream, ProviderError, StreamForm

Credentials = Callable[[InstallationId], Awaitable[Credential]]
"""Called for each request; raises a BotError if the installation has none."""


class AnthropicApi:
    title = "Anthropic's API"

    def __init__(self, url: str, credentials: Credentials, dialect: Dialect | None = None) -> None:
        self.url = url
        self._credentials = credentials
        self._dialect = dialect or Dialect()

    def left_out(self, request: AgentRequest) -> tuple[list[str], list[str]]:
        _, betas = self._dialect.betas(dialect.betas_of(request.headers))
        return betas, self._dialect.query(request.query)[1]

    def encode(self, request: AgentRequest, model: str, body: dict[str, Any]) -> bytes:
        return model_request.encode(body)

    async def outgoing(self, request: AgentRequest, checked: CheckedRequest) -> OutgoingRequest:
        credential = await self._credentials(request.installation)
        headers = dialect.forwarded(request.headers, credential, self._dialect)
        query, _ = self._dialect.query(request.query)
        path = f"{request.path}?{query}" if query else request.path
        return OutgoingRequest(path, headers, checked.body, (credential.value.reveal(),))

    def returned(self, headers: Mapping[str, str]) -> dict[str, str]:
        return dialect.returned(headers)

    def stream(self, kind: str) -> StreamForm | None:
        return PlainStream() if kind == "text/event-stream" else None

    def whole(self, path: str, body: bytes) -> bytes:
        return body

    def error(self, status: int, headers: Mapping[str, str], body: bytes | None) -> ProviderError | None:
        if body is None or not body.lstrip().startswith(b"{"):
            return None
        shown = dialect.returned(headers)
        if status in (401, 403):
            complaint = "the model's provider refuses the credential", f"it answered {status}"
            return ProviderError(status, body, {**shown, **clients.FINAL}, complaint)
        if b"credit balance" in body:
            complaint = "the credit at the model's provider is used up", f"it answered {status}"
            return ProviderError(status, body, shown, complaint)
        return ProviderError(status, body, shown)
