"""What a new pull request gets beside its text: the labels of the config that exist, and a review by who asked."""

from __future__ import annotations

from dataclasses import replace

from bot import push_words, repo_config
from bot.errors import GitHubRefused
from bot.models import Thread
from bot.sessions.publishing.work import Work


async def dress(work: Work, number: int) -> str:
    """Done twice it is done once. What GitHub does not take of it is no reason to fail; a missing label is told."""
    config = repo_config.load(work.turn.config).pull
    thread = replace(work.session.thread, number=number, is_pull=True)
    missing: list[str] = []
    try:
        missing = await _labelled(work, thread, config.labels)
        if config.request_review:
            await work.services.outbound.request_review(thread, work.done.requester)
    except GitHubRefused:  # the person is no collaborator by name, or labels may not be set: the work is there
        pass
    return push_words.labels_missing(missing) if missing else ""


async def _labelled(work: Work, thread: Thread, wanted: tuple[str, ...]) -> list[str]:
    """Those that the repository does not have: GitHub would make them."""
    reads = work.services.github.installation(work.session.installation_id)
    there = [label for label in wanted if await reads.has_label(thread.repo, label)]
    if there:
        await work.services.outbound.label(thread, there)
    return [label for label in wanted if label not in there]
