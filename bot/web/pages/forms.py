"""Reads the fields of a form: bounded, decoded, each once."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from bot.errors import UserError

MOST_BYTES = 64 * 1024
MOST_FIELDS = 20


async def read(request: Request) -> dict[str, str]:
    """Raise UserError if no form of ours would send this."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise UserError("That is too much for one form.")
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise UserError("The form could not be read.") from None
    return {name: value.strip() for name, value in pairs}
