"""`fix ci`: has the failing checks of a pull request fixed; `handlers/ci_rounds` does it."""

from __future__ import annotations

from dataclasses import replace

from bot.commands import FREE_TEXT, Command
from bot.commands.options import NO_OPTIONS
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled, acted, refused
from bot.handlers.turns import Wish
from bot.kinds import TRAITS
from bot.models import TurnState
from bot.store import ci, sessions
from bot.store.ci import FixRequest
from bot.words import endings, on_ci, on_forks


async def handle(command: Command, remark: Remark, desk: Desk) -> Handled:
    """Watch the checks of the head; without a pull request the words are ordinary work."""
    number = await desk.pull_number(remark)
    if number is None:
        words = f"fix ci\n{command.prompt}".strip()
        return await turns.work(Wish(FREE_TEXT, words, command.options), remark, desk)
    if remark.closed_to_us:
        return refused(turns.CLOSED[remark.closed_to_us])
    thread = replace(remark.thread, number=number, is_pull=True)
    pull = await desk.github.installation(thread.installation).pull(thread.repo, number)
    if pull.state != "open":
        return await desk.refuse(remark, endings.pull_closed(number))
    if pull.head_repo_id != thread.repo.id:
        return await desk.refuse(remark, on_forks.no_ci(desk.settings.command))
    latest = await sessions.latest(desk.store, thread)
    if latest is not None and TRAITS[latest.asked_as].mends_checks and latest.state is not TurnState.DONE:
        noted = None
        if command.prompt and command.options == NO_OPTIONS:
            noted = await turns.steer(Wish("fix_ci", command.prompt, NO_OPTIONS), remark, desk)
        return noted or await desk.refuse(remark, on_ci.under_way(desk.settings.command))
    await ci.ask(desk.store, thread, pull.head_sha, _asked(command, remark, number))
    await desk.react(remark, "eyes")
    return acted(latest.key.session if latest else None, "the checks of the head are looked at")


def _asked(command: Command, remark: Remark, number: int) -> FixRequest:
    on_pull = remark.thread.number == number
    return FixRequest(
        login=remark.author.login,
        id=remark.author.id,
        source=remark.source,
        words=command.prompt,
        at=remark.created_at,
        comment_id=remark.react_to if remark.spot is None and on_pull else None,
        thread_sha256=remark.thread_sha256 if on_pull else "",
        options=command.options,
    )


FEATURE = Feature(
    "fix ci",
    "fix ci",
    "fixes the checks that fail because of this pull request, in up to three attempts; you can put hints on the "
    "lines below",
    text=True,
    below=True,
    options=True,
    handle=handle,
)
