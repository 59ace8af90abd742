"""The table of commands for the parser, `help`, the guess at misspelt words and the dispatch."""

from __future__ import annotations

from typing import Any

from bot.commands import Command
from bot.commands.options import USAGE
from bot.events.threads import Remark
from bot.handlers import own_commands
from bot.handlers.commands import (
    approve,
    ask,
    continuation,
    cost,
    dashboard,
    deny,
    fix_ci,
    fix_findings,
    init,
    is_a_bug,
    list_findings,
    models,
    not_a_bug,
    plan,
    resolve,
    retry,
    review,
    run,
    status,
    stop,
    stop_ci,
    undo,
    why,
)
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.words import replies


async def carry_out(command: Command, remark: Remark, desk: Desk) -> Handled:
    return await _BY_WORD[command.word].handle(command, remark, desk)


async def show_help(_: Command, remark: Remark, desk: Desk) -> Handled:
    lines = [(one.usage, one.what) for one in TABLE]
    config, _problem = await desk.config_of(remark.thread)
    closes = config is not None and config.pull.closes
    text = replies.help_text(desk.settings.command, lines, USAGE.values(), closes=closes)
    named = replies.own_commands(desk.settings.command, await own_commands.names(remark.thread, desk))
    await desk.answer(remark, "help", f"{text}\n\n{named}" if named else text)
    return acted()


TABLE: tuple[Feature[Any], ...] = (
    run.FEATURE,
    ask.FEATURE,
    plan.FEATURE,
    approve.FEATURE,
    deny.FEATURE,
    continuation.FEATURE,
    retry.FEATURE,
    review.FEATURE,
    fix_findings.FEATURE,
    not_a_bug.FEATURE,
    is_a_bug.FEATURE,
    list_findings.FEATURE,
    resolve.FEATURE,
    fix_ci.FEATURE,
    stop_ci.FEATURE,
    undo.FEATURE,
    stop.FEATURE,
    status.FEATURE,
    why.FEATURE,
    cost.FEATURE,
    dashboard.FEATURE,
    models.FEATURE,
    init.FEATURE,
    Feature("help", "help", "lists the commands", polite=True, handle=show_help),
)
_BY_WORD = {one.word: one for one in TABLE}
