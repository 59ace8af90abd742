"""What a pull request gets beside its text: the labels of the config, a review by who asked, the end as a draft."""

from __future__ import annotations

from dataclasses import replace

from bot import repo_config
from bot.errors import GitHubRefused
from bot.models import Thread
from bot.sessions.publishing.work import TurnWork
from bot.words import on_pushes


async def dress(work: TurnWork, number: int) -> str:
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
    return on_pushes.labels_missing(missing) if missing else ""


async def make_ready(work: TurnWork) -> None:
    """Where drafts last until the work is verified, and this push is."""
    config, number = repo_config.load(work.turn.config), work.session.pull_number
    if number is None or config.draft != "until_verified" or config.opens_draft(verified=work.is_verified):
        return
    thread = work.session.thread
    try:
        pull = await work.services.github.installation(work.session.installation_id).pull(thread.repo, number)
        if pull.draft:
            await work.services.outbound.make_ready(thread, pull)
    except GitHubRefused:
        return


async def _labelled(work: TurnWork, thread: Thread, wanted: tuple[str, ...]) -> list[str]:
    """Those that the repository does not have: GitHub would make them."""
    reads = work.services.github.installation(work.session.installation_id)
    there = [label for label in wanted if await reads.has_label(thread.repo, label)]
    if there:
        await work.services.outbound.label(thread, there)
    return [label for label in wanted if label not in there]
