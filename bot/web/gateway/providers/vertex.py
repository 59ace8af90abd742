"""Google Vertex AI (rawPredict): the model in the path, the version in the body, a bearer token, the same stream back.

Only the betas of the agent's headers go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from bot.settings import VertexSettings
from bot.settings.providers import ModelProviderSettings
from bot.vendors import google
from bot.vendors.google import GoogleTokens
from bot.web.gateway.dialect import BETA
from bot.web.gateway.model_request import CheckedRequest
from bot.web.gateway.providers import (
    COUNT_TOKENS,
    AgentRequest,
    OutgoingRequest,
    PlainStream,
    ProviderError,
    StreamForm,
    foreign,
)
from bot.web.gateway.providers.foreign import ForeignDialect
from bot.web.gateway.providers.model_ids import model_id

VERSION = "vertex-2023-10-16"
BETAS = frozenset({"claude-code-20250219", "effort-2025-11-24", "web-search-2025-03-05"})
STATUSES = {
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 529,
    "DEADLINE_EXCEEDED": 504,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "ABORTED": 500,
    "CANCELLED": 500,
}
BY_NUMBER = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
BY_NUMBER |= {503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED", 529: "UNAVAILABLE"}


class Vertex:
    title = VertexSettings.title

    def __init__(
        self, provider: ModelProviderSettings, at: VertexSettings, tokens: GoogleTokens, admitted: frozenset[str]
    ) -> None:
        google.require()
        self.url = at.url
        self._settings = provider
        self._tokens = tokens
        self._dialect = ForeignDialect(admitted, BETAS)
        self._models = f"/v1/projects/{at.project}/locations/{at.region}/publishers/anthropic/models"

    def left_out(self, request: AgentRequest) -> tuple[list[str], list[str]]:
        return self._dialect.left_out(request)

    def encode(self, request: AgentRequest, model: str, body: dict[str, Any]) -> bytes:
        counts = request.path == COUNT_TOKENS
        self._dialect.adapt(request, body, VERSION, stays=frozenset({"model"} if counts else {"stream"}))
        if counts:
            body["model"] = model_id(self._settings, model)
        return foreign.encode(body)

    async def outgoing(self, request: AgentRequest, checked: CheckedRequest) -> OutgoingRequest:
        if request.path == COUNT_TOKENS:
            path = f"{self._models}/count-tokens:rawPredict"
        else:
            verb = "streamRawPredict" if checked.streams else "rawPredict"
            path = f"{self._models}/{quote(model_id(self._settings, checked.model), safe='@')}:{verb}"
        token = (await self._tokens.current()).reveal()
        headers = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
        if betas := self._dialect.betas(request):
            headers.append((BETA, ",".join(betas)))
        return OutgoingRequest(path, [*headers, ("accept-encoding", "identity")], checked.body, (token,))

    def returned(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: headers[name] for name in ("request-id",) if name in headers}

    def stream(self, kind: str) -> StreamForm | None:
        return PlainStream() if kind == "text/event-stream" else None

    def whole(self, path: str, body: bytes) -> bytes:
        return body

    def error(self, status: int, headers: Mapping[str, str], body: bytes | None) -> ProviderError | None:
        found = foreign.parsed(body)
        first = found[0] if isinstance(found, list) and found else found  # a stream's error comes in a list
        error = first.get("error") if isinstance(first, dict) else None
        if not isinstance(error, dict):
            return None
        said = foreign.words_of(str(error.get("message", "")))
        code = str(error.get("status") or BY_NUMBER.get(status, ""))
        if code == "UNAUTHENTICATED":
            if self._tokens.doubt():
                return foreign.passing(529, self.title, "The token has ended; a new one is made.", {"retry-after": "1"})
            trouble = "it does not accept the key's token. Set FORGEHAND_VERTEX_KEY_FILE to a key that is not revoked."
            return foreign.refused(self.title, trouble, said, "provider_key")
        if code == "PERMISSION_DENIED":
            trouble = (
                "the identity may not use the model. Give it the role roles/aiplatform.user in the project of "
                "FORGEHAND_VERTEX_PROJECT, and enable the model there."
            )
            return foreign.refused(self.title, trouble, said, "provider_denied")
        if code == "NOT_FOUND":
            trouble = "there is no such model in this region. Look at FORGEHAND_VERTEX_REGION and FORGEHAND_MODEL_IDS."
            return foreign.refused(self.title, trouble, said, "provider_model")
        return foreign.passing(STATUSES.get(code, 400 if status < 500 else 500), self.title, said, headers)
