"""Whether there is money for what somebody asks, and what they are told where there is none."""

from __future__ import annotations

from bot import funds
from bot.events.remarks import Remark, ReviewWanted
from bot.funds import Funds, Means, Raise, Terms
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted, refused
from bot.models import Thread, TurnState
from bot.sessions.money import ceilings
from bot.store import budgets, sessions
from bot.store.sessions import Turn
from bot.store.spend import Payers
from bot.words import on_money


async def of_thread(thread: Thread, desk: Desk) -> Funds:
    """Its session's; where it has none, those that one would begin with."""
    last = await sessions.latest(desk.store, thread)
    if last is None:
        account = await budgets.at_first(desk.store, thread.installation)
    else:
        account = await budgets.account(desk.store, last.key.session)
    return funds.of(account, Terms.of(desk.settings.limits))


async def lacking(remark: Remark, desk: Desk, extra_usd: float = 0.0) -> Noted | None:
    """Said to the person, unless their turn was begun before the limit was reached; a push has asked for nothing."""
    sentence = await _ceiling(remark, desk) or await _session(remark, desk, extra_usd)
    if sentence is None or await sessions.by_source(desk.store, remark.source):
        return None
    if isinstance(remark, ReviewWanted) and remark.is_push:
        return refused(sentence)
    return await desk.refuse(remark, sentence)


def asked(extra_usd: float, remark: Remark, desk: Desk) -> Raise:
    return Raise(remark.source, extra_usd, remark.author.login, Terms.of(desk.settings.limits))


async def add(extra_usd: float, last: Turn, remark: Remark, desk: Desk, *, then: str = "") -> Noted:
    """To the session, without another turn; `then` says what comes of it."""
    await budgets.add(desk.store, last.key.session, asked(extra_usd, remark, desk))
    money = await of_thread(remark.thread, desk)
    added = await budgets.added(desk.store, remark.source)
    if added is None:
        return await desk.refuse(remark, on_money.cannot_be_raised(money, desk.settings.command))
    if last.state is TurnState.DONE:
        await desk.show_anew(last.key)
    else:
        desk.board.touch(last.key)
    await desk.reply(remark, f"{on_money.raised(money, extra_usd, added)} {then}".rstrip())
    return acted(last.key.session, "added to what the session may spend")


async def tell_of_cut(extra_usd: float | None, remark: Remark, desk: Desk) -> None:
    """Where a turn was begun with less than was asked for it."""
    if not extra_usd:
        return
    added = await budgets.added(desk.store, remark.source) or 0.0
    if words := on_money.cut_at_the_most(await of_thread(remark.thread, desk), extra_usd, added):
        await desk.reply(remark, words)


async def _ceiling(remark: Remark, desk: Desk) -> str | None:
    """Of the person, the repository or the installation, where it leaves nothing to begin with."""
    payers = Payers(remark.thread.installation, remark.thread.repo.id, remark.author.id)
    limits = await ceilings.of_account(desk.store, desk.settings.limits, remark.thread.installation)
    found = await ceilings.reached(desk.store, limits, payers, desk.clock())
    return found.sentence() if found else None


async def _session(remark: Remark, desk: Desk, extra_usd: float) -> str | None:
    money = await of_thread(remark.thread, desk)
    granted = money.granted(extra_usd) if extra_usd else 0.0
    if extra_usd and granted <= 0:
        return on_money.cannot_be_raised(money, desk.settings.command)
    if money.after(granted).means is not Means.LEFT:
        return on_money.session_spent(money, desk.settings.command)
    return None
