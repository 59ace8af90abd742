"""Free text: words for the running agent, or the next turn of the thread's session."""

from __future__ import annotations

from bot.commands import FREE_TEXT, Command, answered_with, is_mere_answer
from bot.commands.options import NO_OPTIONS
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled
from bot.handlers.turns import Wish
from bot.store import approvals, sessions
from bot.store.approvals import ApprovalState
from bot.words import on_approvals


async def handle(command: Command, remark: Remark, desk: Desk) -> Handled:
    noted = await _for_an_answer(command, remark, desk)
    return noted or await turns.work(Wish(command.word, command.prompt, command.options), remark, desk)


def is_without_question(command: Command) -> bool:
    """Tell whether a thread without turns has nothing that the words could answer."""
    return command.options == NO_OPTIONS and is_mere_answer(command.prompt)


async def _for_an_answer(command: Command, remark: Remark, desk: Desk) -> Handled | None:
    """Ask for the exact words after a mere `yes` while an approval waits: it is no work."""
    word = answered_with(command.prompt) if command.options == NO_OPTIONS else None
    if word is None:
        return None
    latest = await sessions.latest(desk.store, remark.thread)
    if latest is None and is_without_question(command):
        return await desk.refuse(remark, on_approvals.nothing_waits(desk.settings.command))
    if latest is None:
        return None
    known = await approvals.of_session(desk.store, latest.key.session)
    names = [one.sha or one.id for one in known if one.state is ApprovalState.OPEN]
    return await desk.refuse(remark, on_approvals.say_it_by_name(names, word, desk.settings.command)) if names else None


FEATURE = Feature(
    FREE_TEXT,
    "fix this …",
    "does the work, pushes a branch and opens a draft pull request; the next such comment on the thread continues it",
    text=True,
    options=True,
    handle=handle,
)
