"""The second half of GitHub's manifest flow: the one-time code of the redirect becomes an App with its secrets."""

from __future__ import annotations

import re

import msgspec

from bot.errors import GitHubRefused
from bot.github.api import Api, Call, require
from bot.github.types import Converted
from bot.settings import Secret

_CODE = re.compile(r"[A-Za-z0-9_-]{10,100}")


class _Created(msgspec.Struct):
    id: int
    slug: str
    pem: str
    webhook_secret: str | None = None
    client_id: str = ""
    client_secret: str = ""
    html_url: str = ""


async def convert(api_url: str, code: str) -> Converted:
    """The code is good once, for an hour; a lost answer costs an App, which is then deleted by hand."""
    if not _CODE.fullmatch(code):
        raise GitHubRefused(404, "that is no code of GitHub's")
    api = Api(api_url)
    try:
        answer = require(await api.send(Call("POST", f"/app-manifests/{code}/conversions"), None))
    finally:
        await api.close()
    made = answer.decode(_Created)
    hook, client = Secret(made.webhook_secret or ""), Secret(made.client_secret)
    return Converted(made.id, made.slug, Secret(made.pem), hook, made.client_id, client, made.html_url)
