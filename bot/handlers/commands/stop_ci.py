"""`stop ci`: leaves the checks of a pull request alone, and stops turns that fix them; all else goes on."""

from __future__ import annotations

from dataclasses import replace

from bot.commands import Command
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.store import ci, sessions
from bot.words import on_ci, replies


async def handle(command: Command, remark: Remark, desk: Desk) -> Handled:
    number = await desk.pull_number(remark)
    if number is None:
        return await desk.refuse(remark, replies.needs_a_pull(command.word, desk.settings.command))
    thread = replace(remark.thread, number=number, is_pull=True)
    await ci.switch_off(desk.store, thread, remark.author.login)
    latest = await sessions.latest(desk.store, thread)
    if latest is not None:
        await turns.stop_all(latest.key.session, remark.author.login, desk, only_fixes=True)
    await desk.reply(remark, on_ci.stopped(desk.settings.command))
    return acted(latest.key.session if latest else None)


FEATURE = Feature("stop ci", "stop ci", "leaves the checks alone until the next `fix ci`", below=True, handle=handle)
