"""Sends one request to the API of a running Forgehand, for `forgehand sessions start`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot import settings
from bot.errors import UserError
from bot.settings import Secret

SECONDS = 30.0
LARGEST = 1024
NOTHING_TO_SEND = "Set FORGEHAND_API_TOKEN, or name a file that holds the token with --token-file."


def read_token(file: Path | None, values: Mapping[str, str]) -> Secret:
    """Read the token from a file or the environment, never from arguments, which other users of the machine see."""
    given = settings.read_api_token(values) if file is None else None
    if file is not None:
        try:
            with file.open(encoding="utf-8") as opened:
                given = Secret(opened.read(LARGEST).strip())
        except (OSError, UnicodeDecodeError):
            raise UserError(f"The token cannot be read from {file}.") from None
    if given is None or not given.reveal():
        raise UserError(NOTHING_TO_SEND)
    return given


async def start(url: str, token: Secret, wish: dict[str, Any]) -> dict[str, Any]:
    import httpx

    key = f"cli-{uuid.uuid4().hex}"
    headers = {"Authorization": f"Bearer {token.reveal()}", "Idempotency-Key": key}
    try:
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            answer = await client.post(f"{url.rstrip('/')}/api/v1/sessions", headers=headers, json=wish)
        told = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise UserError(f"No answer of Forgehand came from {url} ({type(error).__name__}). Check --url.") from None
    if answer.status_code >= 400 or not isinstance(told, dict):
        problem = told.get("error") if isinstance(told, dict) else None
        raise UserError(problem["message"] if isinstance(problem, dict) else f"{url} answered {answer.status_code}.")
    return told
