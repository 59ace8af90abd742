"""What begins a turn without a command, where the repository's config says so: a label, an issue that was opened."""

from __future__ import annotations

from bot.commands.options import NO_OPTIONS
from bot.errors import BadRepoConfig
from bot.events.remarks import IssueOpened, Labeled
from bot.handlers import permission, start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted, ignored, refused
from bot.models import Thread, TurnState
from bot.repo_config import RepoConfig
from bot.sessions import configuring
from bot.store import sessions
from bot.words import replies

WORK = Wish("run", "", NO_OPTIONS)
"""The thread itself says what is to be done."""


async def labeled(event: Labeled, desk: Desk) -> Noted:
    config, problem = await config_of(event.thread, desk)
    if config is None:
        return refused(problem)
    wanted = config.triggers.label
    if wanted is None or wanted.casefold() != event.label.casefold():  # as GitHub compares labels
        return ignored("this label starts nothing here (`triggers.label` in `.github/forgehand.yml`)")
    if not (decision := await permission.judge(event, desk)).allowed:
        return refused(decision.reason)
    latest = await sessions.latest(desk.store, event.thread)
    if latest is not None and latest.state is not TurnState.DONE:
        return ignored("the thread is being worked on already")
    return await start.begin(WORK, event, desk)


async def opened(event: IssueOpened, desk: Desk) -> Noted:
    """Nobody is told that a trigger which they may not know of did not obey them."""
    config, problem = await config_of(event.thread, desk)
    if config is None:
        return refused(problem)
    if not config.triggers.issue_opened:
        return await desk.without_command(event, replies.opening_starts_nothing())
    if not (decision := await permission.judge(event, desk)).allowed:
        return refused(decision.reason)
    return await start.begin(WORK, event, desk)


async def config_of(thread: Thread, desk: Desk) -> tuple[RepoConfig | None, str]:
    """That of the default branch, or what is wrong with it; without a file there, as the account's owner has set it."""
    reads = desk.github.installation(thread.installation)
    try:
        return await configuring.of(reads, thread.repo, desk.store), ""
    except BadRepoConfig as error:
        return None, str(error)
