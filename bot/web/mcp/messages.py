"""The messages of MCP as we let them pass, in both directions. Pure; whatever comes from a server is foreign text.

To the agent we are a server with tools and nothing else: no instructions, prompts or resources, and no questions."""

from __future__ import annotations

import base64
import binascii
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bot.outside import echoes
from sandbox.agents.base import clean, one_line

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Versions of the protocol with this transport, the newest first."""
MOST_DESCRIPTION = 2_000
MOST_SCHEMA_BYTES = 32 << 10
MOST_DEPTH = 12
MOST_NESTED = 50
MOST_ID = 200
MOST_BLOCKS = 100
MOST_RESULT_BYTES = 1 << 20
MOST_WORDS = 300
LEAST_SECRET = 4
"""A shorter text would be found in everything."""
ANYTHING = {"type": "object"}
PARSE, INVALID, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602


class Nonsense(Exception):
    """A message is not what the protocol says; the text ends a sentence."""


@dataclass(frozen=True)
class Asked:
    """A client's request; without an id it is a notification."""

    id: str | int | None
    method: str
    params: dict[str, Any]


def read(body: bytes) -> Asked:
    """Read a client's message; raise Nonsense."""
    message = decode(body)
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise Nonsense("is no request")
    number = message.get("id", 0)
    if not isinstance(number, int | str) or isinstance(number, bool) or len(str(number)) > MOST_ID:
        raise Nonsense("has an id of an unknown kind")
    params = message.get("params", {})
    return Asked(message.get("id"), message["method"], params if isinstance(params, dict) else {})


def decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise Nonsense("is not JSON") from None


def is_shallow(value: Any, depth: int = MOST_NESTED) -> bool:
    """Decide whether other code may walk through it: each level takes a place on the stack."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > 0 and all(is_shallow(one, depth - 1) for one in parts)


def result(asked: Asked, found: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.id, "result": found}


def error(asked: Asked | None, code: int, words: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.id if asked else None, "error": {"code": code, "message": words}}


def hello(asked: Asked, name: str) -> dict[str, Any]:
    """Answer `initialize`. A server's own instructions would stand among ours, so nobody hears them."""
    version = asked.params.get("protocolVersion")
    return {
        "protocolVersion": version if version in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": name, "version": "1"},
    }


def failed(words: str) -> dict[str, Any]:
    """Say as a tool's result what went wrong, so that the agent reads it."""
    return {"content": [{"type": "text", "text": words}], "isError": True}


def request(number: int, method: str, params: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method})


def answered(message: Any, number: int) -> dict[str, Any] | None:
    """Return the result if this is the answer to our request, and None for anything else that a server may say beside
    it. Raise Nonsense for what is no message, and McpRefused for an error."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Nonsense("is no message of JSON-RPC")
    if "method" in message:
        return None
    if message.get("id") != number or isinstance(message.get("id"), bool):
        if message.get("id") is None and "error" in message:
            raise McpRefused(_words(message["error"]))
        raise Nonsense("answers another request")
    if "error" in message:
        raise McpRefused(_words(message["error"]))
    if not isinstance(message.get("result"), dict):
        raise Nonsense("has no result")
    found: dict[str, Any] = message["result"]
    return found


class McpRefused(Exception):
    """The server answered with an error; the text is its own, in one line."""


def _words(told: Any) -> str:
    said = told.get("message") if isinstance(told, dict) else None
    return one_line(said, MOST_WORDS) if isinstance(said, str) else ""


def tools(name: str, listed: Iterable[Any], opened: Sequence[str]) -> list[dict[str, Any]]:
    """Describe the opened tools of a server, in the order in which they were opened. Annotations stay behind: a server
    could call a dangerous tool harmless."""
    found: dict[str, dict[str, Any]] = {}
    for one in listed:
        tool = one.get("name") if isinstance(one, dict) else None
        if isinstance(tool, str) and tool in opened and tool not in found:
            found[tool] = _described(name, one)
    return [found[tool] for tool in opened if tool in found]


def unknown(opened: Iterable[str], why: str) -> list[dict[str, Any]]:
    """List the opened tools of a server that does not answer: a call tries again, and says what is wrong."""
    return [{"name": tool, "description": why, "inputSchema": ANYTHING} for tool in opened]


def _described(name: str, one: dict[str, Any]) -> dict[str, Any]:
    said = one.get("description")
    words = _visible(said).strip() if isinstance(said, str) else ""
    schema = _plain(one.get("inputSchema"), MOST_DEPTH)
    if not isinstance(schema, dict) or schema.get("type") != "object":
        schema = ANYTHING
    elif len(msgspec.json.encode(schema)) > MOST_SCHEMA_BYTES:
        schema, words = ANYTHING, f"{words} (Its parameters are too long to be listed.)"
    return {
        "name": one["name"],
        "description": f"The server {name} describes this tool so: {words}" if words else f"A tool of {name}.",
        "inputSchema": schema,
    }


def _plain(value: Any, depth: int) -> Any:
    match value:
        case str():
            return _visible(value)
        case dict() if depth:
            return {_visible(key): _plain(one, depth - 1) for key, one in value.items()}
        case list() if depth:
            return [_plain(one, depth - 1) for one in value]
        case dict() | list():
            return type(value)()
    return value


def _visible(text: str) -> str:
    """Remove what people would not see: control characters, and letters without a form."""
    plain = clean(text[: 2 * MOST_DESCRIPTION])
    return "".join(one for one in plain if one.isascii() or unicodedata.category(one) != "Cf")[:MOST_DESCRIPTION]


def outcome(found: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's result with the kinds of content that are data, and nothing that leads elsewhere."""
    content = found.get("content")
    if not isinstance(content, list):
        raise Nonsense("has no content")
    blocks = [_block(one) for one in content[:MOST_BLOCKS]]
    if len(content) > MOST_BLOCKS:
        blocks.append(_text(f"[{len(content) - MOST_BLOCKS} more parts were left out]"))
    kept: dict[str, Any] = {"content": blocks}
    if isinstance(found.get("structuredContent"), dict):
        if not is_shallow(found["structuredContent"]):
            raise Nonsense("is nested too deeply")
        kept["structuredContent"] = found["structuredContent"]
    if found.get("isError") is True:
        kept["isError"] = True
    return kept


def _block(one: Any) -> dict[str, Any]:
    kind = one.get("type") if isinstance(one, dict) else None
    if kind == "text" and isinstance(one.get("text"), str):
        return _text(one["text"])
    if kind in ("image", "audio") and _is_media(one):
        return {"type": kind, "data": one["data"], "mimeType": one["mimeType"]}
    if kind == "resource" and isinstance(one.get("resource"), dict) and isinstance(one["resource"].get("text"), str):
        return _text(one["resource"]["text"])
    if kind == "resource_link" and isinstance(one.get("uri"), str):
        return _text(f"[a link to {one_line(one['uri'], 500)}]")
    return _text("[a part of a kind that is not passed on]")


def _is_media(one: dict[str, Any]) -> bool:
    data, kind = one.get("data"), one.get("mimeType")
    if not isinstance(data, str) or not isinstance(kind, str) or not kind.startswith(("image/", "audio/")):
        return False
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(kind) <= 100


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def without(body: bytes, hidden: Iterable[str]) -> bytes:
    """Take these secrets out of an answer: a server, or a proxy before it, may repeat what it was sent."""
    for secret in hidden:
        if len(secret) < LEAST_SECRET:
            continue
        for form in echoes.writings(secret):
            body = body.replace(form, b"[redacted]")
    return body
