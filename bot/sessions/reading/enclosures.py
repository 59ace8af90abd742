"""Images in words for an agent at work: fetched as those of the first prompt are, and laid beside it."""

from __future__ import annotations

from bot.agent import prompt
from bot.errors import GitHubRefused
from bot.sessions.reading import pictures
from bot.sessions.services import Services
from bot.store.messages import Message
from bot.store.sessions import Turn
from sandbox.execution import ExecutionEnvironment

_SIGNS = ("![", "<img", "/user-attachments/")
"""Without one of these there is no image to be asked for."""


async def added(services: Services, turn: Turn, message: Message, environment: ExecutionEnvironment, words: str) -> str:
    """The words with the paths of their images; unchanged where there are none."""
    album = pictures.Album()
    if (html := await _as_shown(services, message)) is not None:
        album = await pictures.gather(services.github.attachments, [(f"words of {message.author}", html)])
    named = {f"said-{message.place}-{name}": data for name, data in album.files.items()}
    paths = await environment.put_beside(turn.key.n, named) if named else []
    return prompt.with_images(words, paths, album.notes)


async def _as_shown(services: Services, message: Message) -> str | None:
    """As GitHub renders the comment, where that is still what was said; a word in a diff is not looked at."""
    new = message.request
    if new.source_comment is None or new.spot is not None or not any(sign in message.text for sign in _SIGNS):
        return None
    try:
        found = await services.github.installation(new.thread.installation).comment(new.thread.repo, new.source_comment)
    except GitHubRefused:  # deleted meanwhile: its words are heard, its images are gone
        return None
    return found.body_html if found.updated_at == found.created_at else None
