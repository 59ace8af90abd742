"""Brings images of trusted people's texts home as files, few and small, and only what truly is an image."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.errors import BotError
from bot.github.downloads import Attachments, images
from bot.material import Picture

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
    """By what it is and not by what it is called; None for all that the model does not take."""
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
