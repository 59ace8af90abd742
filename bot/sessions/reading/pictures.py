"""Brings images of trusted people's texts home as files, few and small, and only what truly is an image."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.agent import prompt
from bot.agent.material import Picture
from bot.errors import BotError, GitHubRefused
from bot.github.downloads import Attachments, images
from bot.sessions.services import Services
from bot.store.messages import StoredMessage
from bot.store.sessions import Turn
from sandbox.execution import ExecutionEnvironment

MOST = 10
MAX_BYTES = 5 << 20
"""Of one: what the model takes."""
MAX_BYTES_IN_ALL = 20 << 20
SECONDS = 60.0
_SIGNS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpg"), (b"GIF87a", "gif"), (b"GIF89a", "gif"))


@dataclass
class Album:
    """What was fetched, and a sentence for each kind of what was not."""

    pictures: list[Picture] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _addresses(texts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((where, url) for where, html in texts for url in images(html)))


async def gather(attachments: Attachments, texts: Sequence[tuple[str, str]]) -> Album:
    """`texts`: whose text it is, and the text as GitHub renders it; those that matter most come first."""
    found = await asyncio.to_thread(_addresses, texts)
    own = [(where, url) for where, url in found if attachments.is_own(url)]
    album = Album()
    lost = 0
    try:
        async with asyncio.timeout(SECONDS):
            for where, url in own[:MOST]:
                lost += not await _take(album, attachments, where, url)
    except TimeoutError:
        lost = len(own[:MOST]) - len(album.pictures)
    _tell(album, lost, "that could not be fetched, or that {are} too large or no PNG, JPEG, GIF or WebP")
    _tell(album, len(own) - len(own[:MOST]), f"beyond the first {MOST}")
    _tell(album, len(found) - len(own), "that {lie} on other hosts than GitHub's")
    return album


def extension(data: bytes) -> str | None:
    """Goes by the content and not by the name; None for all that the model does not take."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((name for sign, name in _SIGNS if data.startswith(sign)), None)


async def _take(album: Album, attachments: Attachments, where: str, url: str) -> bool:
    room = MAX_BYTES_IN_ALL - sum(map(len, album.files.values()))
    try:
        data = await attachments.fetch(url, min(MAX_BYTES, room))
    except BotError:
        return False
    kind = extension(data)
    if kind is None:
        return False
    name = f"image-{len(album.pictures) + 1}.{kind}"
    album.files[name] = data
    album.pictures.append(Picture(name, where))
    return True


def _tell(album: Album, count: int, why: str) -> None:
    if count == 1:
        album.notes.append(f"1 image {why.format(are='is', lie='lies')}")
    elif count:
        album.notes.append(f"{count} images {why.format(are='are', lie='lie')}")


_IMAGE_MARKS = ("![", "<img", "/user-attachments/")
"""Without one of these there is no image to be asked for."""


async def with_enclosures(
    services: Services, turn: Turn, message: StoredMessage, environment: ExecutionEnvironment, words: str
) -> str:
    """The words with the paths of their images; unchanged where there are none."""
    album = Album()
    if (html := await _as_shown(services, message)) is not None:
        album = await gather(services.github.attachments, [(f"words of {message.author}", html)])
    named = {f"said-{message.place}-{name}": data for name, data in album.files.items()}
    paths = await environment.put_beside(turn.key.n, named) if named else []
    return prompt.with_images(words, paths, album.notes)


async def _as_shown(services: Services, message: StoredMessage) -> str | None:
    """Takes the comment as GitHub renders it, where that is still what was said; not words in a diff."""
    new = message.request
    if new.source_comment is None or new.spot is not None or not any(sign in message.text for sign in _IMAGE_MARKS):
        return None
    try:
        found = await services.github.installation(new.thread.installation).comment(new.thread.repo, new.source_comment)
    except GitHubRefused:  # deleted meanwhile: its words are heard, its images are gone
        return None
    return found.body_html if found.updated_at == found.created_at else None
