"""Resolves discussions of a pull request's diff."""

from __future__ import annotations

import logging
from collections.abc import Collection

from bot.errors import GitHubRefused
from bot.github import reviews
from bot.github.client import GitHubApp
from bot.models import Thread
from bot.outbound import Outbound

log = logging.getLogger(__name__)


async def resolve(github: GitHubApp, outbound: Outbound, thread: Thread, comment_ids: Collection[int]) -> None:
    """Resolve the discussions that began with these comments; people can resolve those that fail here."""
    if not comment_ids:
        return
    reads = github.installation(thread.installation)
    try:
        for one in await reviews.discussions(reads, thread.repo, thread.number):
            if one.comment_id in comment_ids and not one.resolved:
                await outbound.resolve(thread, one.id)
    except GitHubRefused as refused:
        log.warning("discussions could not be resolved", extra={"error": str(refused)})
