"""`deny`: a no to exactly what was shown."""

from __future__ import annotations

from bot.commands import FREE_TEXT, CommandText, before_tail, trimmed
from bot.commands.options import NO_OPTIONS
from bot.events.threads import Remark
from bot.handlers import answers, turns
from bot.handlers.answers import Word
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.handlers.turns import Wish
from bot.store.approvals import ApprovalAnswer, ApprovalState
from bot.words import on_approvals


def read(text: CommandText) -> Word | None:
    match = answers.named(text, "deny")
    if match is None:
        return None
    words = trimmed(before_tail(text.after[match.end() :]))
    return text.without_options(Word("deny", words, approval=answers.name(match)))


async def handle(command: Word, remark: Remark, desk: Desk) -> Handled:
    approval = await answers.meant(command, remark, desk)
    if isinstance(approval, str):
        return await desk.refuse(remark, approval)
    given = ApprovalAnswer(ApprovalState.DENIED, remark.author.login, remark.source, over=answers.open_states(approval))
    answered = await answers.give(given, approval, remark, desk)
    if isinstance(answered, Handled):
        return answered
    if command.prompt:  # words for the waiting agent; a no starts no turn
        heard = await turns.steer(Wish(FREE_TEXT, command.prompt, NO_OPTIONS), remark, desk)
        if heard is None:
            await desk.reply(remark, on_approvals.words_below_a_no(desk.settings.command))
    await desk.react(remark, "+1")
    return acted(answered.session_id, f"{given.state} {answered.id}")


FEATURE = Feature("deny", "deny", "says no; words on the lines below go to the waiting agent", read=read, handle=handle)
