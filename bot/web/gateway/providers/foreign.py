"""Bedrock and Vertex both know fewer parts of Anthropic's API, and report errors in other forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bot.vendors import identity
from bot.web.gateway import clients, dialect, model_request
from bot.web.gateway.dialect import Dialect
from bot.web.gateway.providers import COUNT_TOKENS, AgentRequest, ProviderError, error_body

BETAS = frozenset({
    "context-1m-2025-08-07", "interleaved-thinking-2025-05-14", "thinking-display-updates-2026-08-18",
    "thinking-token-count-2026-05-13", "tool-search-tool-2025-10-19",
})  # fmt: skip
"""Those that Claude Code 2.1.326 sends to either; an unknown one makes them refuse the request."""
SAME = {"advanced-tool-use-2025-11-20": "tool-search-tool-2025-10-19"}
"""Betas that have another name there."""
NEEDS = {"context_management": "context-management-2025-06-27"}
"""Fields that are refused without their beta, and without which a request means the same."""
OF_OUTPUT = {"task_budget": "task-budgets-2026-03-13"}
"""The same inside of `output_config`."""
MOST_WORDS = 400
RETRY_AFTER = ("retry-after", "retry-after-ms")


class ForeignDialect:
    def __init__(self, admitted: frozenset[str], more: frozenset[str] = frozenset()) -> None:
        self._dialect = Dialect(admitted, BETAS | more)

    def betas(self, request: AgentRequest) -> list[str]:
        known, _ = self._dialect.betas(_renamed(request))
        return known

    def left_out(self, request: AgentRequest) -> tuple[list[str], list[str]]:
        """Return the betas; neither takes a query, and the usual one says nothing."""
        return self._dialect.betas(_renamed(request))[1], self._dialect.query(request.query)[1]

    def adapt(self, request: AgentRequest, body: dict[str, Any], version: str, *, stays: frozenset[str]) -> None:
        """Bring a body into the form that both take, in place; `stays` are the fields that one of them keeps."""
        betas = self.betas(request)
        output = body.get("output_config")
        for fields, needs in ((body, NEEDS), (output if isinstance(output, dict) else {}, OF_OUTPUT)):
            for name, beta in needs.items():
                if beta not in betas:
                    fields.pop(name, None)
        for name in {"model", "stream"} - stays:
            body.pop(name, None)
        body["anthropic_version"] = version
        if request.path == COUNT_TOKENS:
            body.pop("metadata", None)


def _renamed(request: AgentRequest) -> list[str]:
    values = [word.strip() for value in dialect.betas_of(request.headers) for word in value.split(",")]
    return [SAME.get(word, word) for word in values]


encode = model_request.encode


def words_of(said: str) -> str:
    """Return the provider's words on one line, without anything of a signature."""
    return identity.plain(said, MOST_WORDS)


def refused(title: str, trouble: str, said: str, reason: str) -> ProviderError:
    """Return an error that ends the run, because only the operator can do something."""
    complaint = f"{title} refuses the requests", f"{trouble} It said: {said}"
    return ProviderError(403, error_body(403, f"{title}: {trouble}"), clients.FINAL, complaint, reason)


def passing(status: int, title: str, said: str, headers: Mapping[str, str]) -> ProviderError:
    """Return an error with which the agent's program deals: it tries again, or makes its request shorter."""
    kept = {name: headers[name] for name in RETRY_AFTER if name in headers}
    kind = "timeout_error" if status == 504 else None
    words = said if status == 400 else f"{title}: {said or 'no words'}"
    return ProviderError(status, error_body(status, words, kind), kept)


def parsed(body: bytes | None) -> Any:
    try:
        return msgspec.json.decode(body or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
