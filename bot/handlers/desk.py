"""What the handlers work with: enough to start, stop and answer, and nothing of how a turn is run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from bot.events import Remark
from bot.git.cache import RepositoryCache
from bot.github.client import GitHubApp
from bot.live.board import LiveBoard
from bot.models import TurnKey
from bot.outbound import Outbound
from bot.settings import Settings
from bot.store.base import Store


@dataclass(frozen=True)
class Desk:
    settings: Settings
    store: Store
    github: GitHubApp
    outbound: Outbound
    board: LiveBoard
    cache: RepositoryCache
    admit: Callable[[], None]
    """A turn waits."""
    poke: Callable[[TurnKey], None]
    """A turn's row has changed."""
    clock: Callable[[], float] = time.time

    async def reply(self, remark: Remark, text: str) -> None:
        """One answer to one remark, however often it is given."""
        marker = f"<!-- forgehand:reply={remark.source} -->"
        await self.outbound.comment(remark.thread, f"{marker}\n{text}", marker)
