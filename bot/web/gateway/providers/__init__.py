"""The model's providers: Anthropic's API or a compatible one, Amazon Bedrock, and Google Vertex.

An agent speaks Anthropic's Messages API in every case. A provider turns its requests into its own form on the way out,
signs them, and turns the answers back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bot.models import InstallationId
from bot.web.gateway.clients import KINDS, error_object
from bot.web.gateway.dialect import RawHeaders
from bot.web.gateway.model_request import CheckedRequest

MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"


@dataclass(frozen=True)
class AgentRequest:
    """An agent's request, apart from its body."""

    path: str
    query: str
    headers: RawHeaders
    installation: InstallationId


@dataclass(frozen=True)
class OutgoingRequest:
    """A request as it is sent to the provider."""

    path: str
    headers: list[tuple[str, str]]
    body: bytes
    hidden: tuple[str, ...]
    """Values that no error may show."""


@dataclass(frozen=True)
class ProviderError:
    """An error in Anthropic's form, for the agent."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    complaint: tuple[str, str] | None = None
    """A trouble that the operator should know, and its evidence."""
    reason: str | None = None
    """Why the run ends, if people should read more than that the provider refused: a key of `endings.GATEWAY`."""


class BrokenStream(Exception):
    """The provider sent something else than a stream, or the stream ended early."""


class StreamForm(Protocol):
    """Turns one streamed answer into server-sent events, as it comes."""

    def feed(self, chunk: bytes) -> bytes:
        """Take bytes, cut anywhere; return what is whole by now. Raise BrokenStream."""

    def end(self) -> None:
        """Raise BrokenStream if something is missing."""


class ModelProvider(Protocol):
    title: str
    url: str

    def left_out(self, request: AgentRequest) -> tuple[list[str], list[str]]:
        """Return (the betas, the parts of the query) that do not go on."""

    def encode(self, request: AgentRequest, model: str, body: dict[str, Any]) -> bytes:
        """Encode a checked body; this may take long, and runs in a thread."""

    async def outgoing(self, request: AgentRequest, checked: CheckedRequest) -> OutgoingRequest:
        """Add path, headers and signature. Raise BotError without a credential."""

    def returned(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that the agent may see."""

    def stream(self, kind: str) -> StreamForm | None:
        """Return the form of a stream; None if the answer has another content type."""

    def whole(self, path: str, body: bytes) -> bytes:
        """Turn an answer that was not streamed."""

    def error(self, status: int, headers: Mapping[str, str], body: bytes | None) -> ProviderError | None:
        """Turn an error; None if the form is unknown. `body` is None if it was too large or broke off."""


class PlainStream:
    """A stream that is passed on as it comes."""

    def feed(self, chunk: bytes) -> bytes:
        return chunk

    def end(self) -> None:
        return


def error_body(status: int, message: str, kind: str | None = None) -> bytes:
    return json.dumps(error_object(kind or KINDS.get(status, "api_error"), message)).encode()
