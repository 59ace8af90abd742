"""The only list of the fields, betas and headers that the gateway passes on to the provider's API.

They were measured with Claude Code 2.1.326; `tests/gateway/test_with_claude.py` compares them with the installed one.
Anything that may cost money is listed with a reason, or does not pass. An unknown beta is left out of the header: the
provider then offers less, and the agent's program copes. A request with an unknown field is refused in the provider's
own words, because without the field it would mean something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.settings import Secret
from bot.web.gateway.clients import GatewayRefusal

FIELDS = frozenset({
    "context_management", "inference_geo", "max_tokens", "messages", "metadata", "model", "output_config", "speed",
    "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
})  # fmt: skip
LEFT_OUT = frozenset({"fallbacks", "safeguards"})
"""Fields without which a request means the same. `fallbacks` names models that the provider may use instead, whatever
they cost. With `safeguards`, another model looks at each call of a tool, at an unknown price."""
EMPTY = frozenset({"container", "mcp_servers"})  # fields that are allowed only if empty
EDITS = ("clear_thinking_", "clear_tool_uses_")
"""Edits of the context that only leave something out. A summary would be another answer, and cost money."""
TOKENS = ("total", "remaining")
OUTPUT = frozenset({"effort", "format", "task_budget"})
"""`task_budget` tells the model a number of tokens by which it paces itself. It adds a few tokens to the input, which
the provider's own usage states."""
BETAS = frozenset({
    "advanced-tool-use-2025-11-20", "afk-mode-2026-01-31", "claude-code-20250219", "context-1m-2025-08-07",
    "context-management-2025-06-27", "effort-2025-11-24", "extended-cache-ttl-2025-04-11",
    "fallback-credit-2026-06-01", "interleaved-thinking-2025-05-14", "mid-conversation-system-2026-04-07",
    "mid-conversation-tool-changes-2026-07-01", "oauth-2025-04-20", "per-turn-control-2026-07-01",
    "structured-outputs-2025-12-15", "task-budgets-2026-03-13", "thinking-display-updates-2026-08-18",
    "thinking-token-count-2026-05-13", "token-counting-2024-11-01", "tool-search-tool-2025-10-19",
    "web-search-2025-03-05",
})  # fmt: skip
QUERY = frozenset({"beta=true"})
"""Parts of the query. Others might cost money, like headers and fields."""
ANTHROPIC = "anthropic-"
HEADERS = frozenset({"anthropic-beta", "anthropic-dangerous-direct-browser-access", "anthropic-version"})
"""The provider's own headers. Others with its name might cost money."""

RawHeaders = Iterable[tuple[bytes, bytes]]

HOP_BY_HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-connection"}
OURS = {"host", "content-length", "content-type", "content-encoding", "accept-encoding", "expect", "cookie", "via"}
ASIDE = ("x-forwarded", "forwarded")
CREDENTIALS = ("api-key", "authorization")
"""Ends of the names of credential headers, also of those that only other providers accept: no request may be paid from
somebody else's account."""
PLAIN = re.compile(r"[a-z0-9-]+")  # without underscores, which some servers read as hyphens
ANSWERED = re.compile(r"request-id|retry-after(-ms)?|x-should-retry|anthropic-ratelimit-[a-z0-9-]+")
BETA, OAUTH_BETA = "anthropic-beta", "oauth-2025-04-20"


@dataclass(frozen=True)
class Dialect:
    """The lists above, and what the operator admits in addition, at their own risk."""

    admitted: frozenset[str] = field(default_factory=frozenset)
    known: frozenset[str] = BETAS
    """The betas that this provider takes."""

    def check(self, body: dict[str, Any]) -> frozenset[str]:
        """Remove the fields that do not go on, and return their names."""
        for name in EMPTY:
            if body.get(name) and name not in self.admitted:
                raise GatewayRefusal(403, "feature", f"{name}: not available through this gateway")
        left_out = (LEFT_OUT - self.admitted) & body.keys()
        for name in left_out:
            del body[name]
        for name in body.keys() - FIELDS - EMPTY - self.admitted:
            raise unknown(name)
        output = body.get("output_config")
        for name in output.keys() - OUTPUT - self.admitted if isinstance(output, dict) else ():
            raise unknown(f"output_config.{name}")
        if isinstance(output, dict):
            _check_task_budget(output.get("task_budget"))
        self._check_edits(body.get("context_management"))
        return left_out

    def betas(self, values: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return (those that go on, those that do not), each once."""
        words = dict.fromkeys(word.strip() for value in values for word in value.split(",") if word.strip())
        known = [word for word in words if word in self.known or word.lower() in self.admitted]
        return known, [word for word in words if word not in known]

    def query(self, raw: str) -> tuple[str, list[str]]:
        """Return (the parts that go on, the names of the others)."""
        parts = [(part, part.partition("=")[0]) for part in raw.split("&") if part]
        known = [part for part, name in parts if part in QUERY or name in self.admitted]
        return "&".join(known), [name for part, name in parts if part not in known]

    def may_pass(self, header: str) -> bool:
        return not header.startswith(ANTHROPIC) or header in HEADERS or header in self.admitted

    def _check_edits(self, value: Any) -> None:
        if value is None:
            return
        edits = value.get("edits", []) if isinstance(value, dict) and value.keys() <= {"edits"} else None
        if not isinstance(edits, list):
            raise unknown("context_management")
        for edit in edits:
            kind = edit.get("type") if isinstance(edit, dict) else None
            if not isinstance(kind, str) or not (kind.startswith(EDITS) or kind in self.admitted):
                raise unknown(f"context_management.edits.{kind}")


def _check_task_budget(value: Any) -> None:
    """Admit a plain number of tokens, as it was measured."""
    if value is None:
        return
    known = isinstance(value, dict) and value.get("type") == "tokens" and value.keys() <= {"type", *TOKENS}
    if not known or any(type(value.get(name, 0)) is not int for name in TOKENS):
        raise unknown("output_config.task_budget")


def unknown(name: str) -> GatewayRefusal:
    shown = re.sub(r"[^A-Za-z0-9_.-]", "?", name[:80])
    return GatewayRefusal(
        400,
        "field",
        f"{shown}: Extra inputs are not permitted. Forgehand does not know what this costs. The operator can admit it, "
        f"at their own risk, by naming {shown.rpartition('.')[2]} in FORGEHAND_GATEWAY_ALLOW.",
    )


@dataclass(frozen=True)
class Credential:
    value: Secret
    is_oauth: bool = False


def token(headers: RawHeaders) -> str:
    """Return the one token that the client shows. A refusal never repeats what it showed."""
    shown = {"x-api-key": list[str](), "authorization": list[str]()}
    for name, raw in headers:
        kind = name.decode("latin-1").lower()
        if kind in shown:
            value = raw.decode("latin-1").strip()
            if not (value.isascii() and value.isprintable()):
                raise GatewayRefusal(400, "smuggled", "A credential header has characters that it must not have.")
            shown[kind].append(value)
    if any(len(values) > 1 for values in shown.values()):
        raise GatewayRefusal(400, "smuggled", "A credential header was sent more than once.")
    found = {*shown["x-api-key"], *(_bearer(value) for value in shown["authorization"])}
    if len(found) > 1:
        raise GatewayRefusal(401, "smuggled", "x-api-key and authorization differ.")
    if not found or not (value := found.pop()):
        raise GatewayRefusal(401, "missing", "x-api-key header is required")
    if value.startswith("sk-"):
        words = "A key of the provider is not accepted here; use the token of the turn."
        raise GatewayRefusal(401, "provider_key", words)
    return value


def betas_of(headers: RawHeaders) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name.decode("latin-1").lower() == BETA]


def forwarded(headers: RawHeaders, credential: Credential, dialect: Dialect) -> list[tuple[str, str]]:
    """Return the headers for the provider."""
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
    named = {word.strip().lower() for name, value in pairs if name == "connection" for word in value.split(",")}
    dropped = HOP_BY_HOP | OURS | named
    kept = [
        (name, value)
        for name, value in pairs
        if name not in dropped
        and not name.startswith(ASIDE)
        and not name.endswith(CREDENTIALS)
        and PLAIN.fullmatch(name)
    ]
    betas, _ = dialect.betas(value for name, value in kept if name == BETA)
    kept = [(name, value) for name, value in kept if name != BETA and dialect.may_pass(name)]
    if credential.is_oauth:
        betas = [*betas, OAUTH_BETA] if OAUTH_BETA not in betas else betas
        kept.append(("authorization", f"Bearer {credential.value.reveal()}"))
    else:
        kept.append(("x-api-key", credential.value.reveal()))
    if betas:
        kept.append((BETA, ",".join(betas)))
    # identity: the meter must read the answer, and a compressor would hold back the stream
    return [*kept, ("content-type", "application/json"), ("accept-encoding", "identity")]


def returned(headers: Mapping[str, str]) -> dict[str, str]:
    """Keep the headers that the client may see: not, for example, which organisation pays."""
    return {name.lower(): value for name, value in headers.items() if ANSWERED.fullmatch(name.lower())}


def _bearer(value: str) -> str:
    scheme, _, rest = value.partition(" ")
    if scheme.lower() != "bearer":
        raise GatewayRefusal(401, "missing", "The authorization header must be of the Bearer kind.")
    return rest.strip()
