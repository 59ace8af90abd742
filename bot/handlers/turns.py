"""The turns of a thread: how they start, get words and stop, and whether there is money for another."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, replace

from bot import funds
from bot.commands import Command
from bot.commands.options import NO_OPTIONS, Options
from bot.errors import GitHubRefused, TransientError
from bot.events.api import ApiRemark
from bot.events.threads import Remark, ReviewWanted
from bot.funds import BudgetTerms, Funds, FundsState, Raise
from bot.handlers.desk import Desk, Handled, acted, ignored, refused
from bot.kinds import TRAITS
from bot.kinds.shape import Aim, Places
from bot.knowhow import asking
from bot.models import SessionId, Spot, Step, Thread, TurnState
from bot.sessions.money import spending_limits
from bot.store import conversation, environments, sessions, spend
from bot.store.sessions import NewTurn, Turn
from bot.store.spend import Payers
from bot.words import endings, on_access, on_money

log = logging.getLogger(__name__)

SHORTEST_SECONDS = 10.0
CLOSED = {"locked": on_access.thread_locked(), "archived": on_access.repository_archived()}
"""Reasons for `why`, because nothing can be answered there now."""


@dataclass(frozen=True)
class Wish:
    """A turn that a remark asks for."""

    kind: str
    prompt: str
    options: Options
    extra_usd: float | None = None
    """`continue +3`: the money to add to the session's budget."""
    approval: str | None = None
    """The approval that starts it."""
    agreed: str | None = None
    """The approval that said yes to its price."""
    head_sha: str | None = None
    """The commit at which a check run shows it."""
    discussions: tuple[Spot, ...] = ()
    """Discussions in the diff to answer; a repeated turn has those of the turn before."""
    findings: tuple[str, ...] = ()
    """Findings of our reviews to fix; a repeated turn has those of the turn before."""
    unasked: bool = False
    """The repository's config wants it; no person said so in words."""
    told: bool = False
    """A reply says where it is, so its delivery is settled only after that: a lost reply is repeated."""


def as_before(turn: Turn, wish: Wish) -> Wish:
    """Give the wish the model, branch and discussions of the turn that it continues or repeats."""
    said = with_same_model(turn, wish.options)
    options = replace(said, new_branch=said.new_branch or turn.new_branch)
    return replace(wish, options=options, discussions=turn.part(Places).discussions, findings=turn.part(Aim).findings)


def options_of(turn: Turn) -> Options:
    return turn.options or NO_OPTIONS


def with_same_model(turn: Turn, options: Options) -> Options:
    """Keep the chosen models; all other options were for that turn alone."""
    before = options_of(turn)
    return replace(options, model=options.model or before.model, fallback=options.fallback or before.fallback)


async def handle(command: Command, remark: Remark, desk: Desk) -> Handled:
    return await begin(Wish(command.word, command.prompt, command.options), remark, desk)


async def work(wish: Wish, remark: Remark, desk: Desk) -> Handled:
    """Pass the words to the agent at work, or start a turn; words with options, and commands of the repository, are
    always a turn."""
    own = wish.prompt.startswith("/") and asking.name_of(wish.prompt) is not None
    if wish.prompt and not own and wish.options == NO_OPTIONS and not remark.closed_to_us:
        noted = await steer(wish, remark, desk)
        if noted is not None:
            return noted
    return await begin(wish, remark, desk)


async def ask(wish: Wish, remark: Remark, desk: Desk) -> Handled:
    """Ask the agent at work beside its work, or start a turn; a question with options is always a turn."""
    if wish.options == NO_OPTIONS and not remark.closed_to_us:
        noted = await steer(wish, remark, desk, beside=True)
        if noted is not None:
            return noted
    return await begin(wish, remark, desk)


async def steer(wish: Wish, remark: Remark, desk: Desk, *, beside: bool = False) -> Handled | None:
    """Pass the words to the agent at work, or about to be; None if there is none."""
    key = await conversation.keep_for_agent(desk.store, new_turn(wish, remark, desk), beside=beside)
    if key is None:
        return None
    desk.poke(key)
    await desk.react(remark, "eyes")
    return acted(key.session, f"passed on to turn {key.n}, which was under way")


async def begin(wish: Wish, remark: Remark, desk: Desk) -> Handled:
    """Queue the next turn of the thread's session, and post its live comment."""
    if remark.closed_to_us:
        return refused(CLOSED[remark.closed_to_us])
    if not TRAITS[wish.kind].is_free and (noted := await lacking(remark, desk, wish.extra_usd or 0.0)):
        return noted
    before = await sessions.latest(desk.store, remark.thread)
    if before is not None and (before.state is not TurnState.DONE or not await desk.board.boxes(before.key)):
        before = None
    new = new_turn(wish, remark, desk)
    key = await sessions.begin_turn(desk.store, new, outdates=before.key if before else None)
    if key is None:
        return await _begun_before(wish, remark, desk)
    desk.admit()
    try:
        await desk.board.post(key)
    except TransientError as error:  # the board keeps trying; the work need not wait for it
        log.info("a live comment waits", extra={"turn": key.workflow_id, "error": str(error)})
    desk.board.touch(key)
    if before is not None:  # its boxes no longer count
        desk.board.touch(before.key, final=True, pressing=True)
    if wish.extra_usd:
        await _tell_of_cut(wish.extra_usd, remark, desk)
    return acted(key.session)


def new_turn(wish: Wish, remark: Remark, desk: Desk) -> NewTurn:
    settings, options = desk.settings, wish.options
    by_api = remark if isinstance(remark, ApiRemark) else None
    budget_usd = options.budget_usd or 0.0
    if by_api and by_api.most_usd is not None:
        budget_usd = min(budget_usd or by_api.most_usd, by_api.most_usd)
    longest, asked = settings.limits.timeout_minutes * 60, options.timeout_seconds
    return NewTurn(
        thread=remark.thread,
        kind=wish.kind,
        prompt=wish.prompt,
        requester=remark.author.login,
        requester_id=remark.author.id,
        source=remark.source,
        source_comment=remark.react_to,
        asked_at=remark.created_at,
        thread_sha256=remark.thread_sha256,
        model=options.model or settings.model.model,
        budget_usd=budget_usd,
        api_token=by_api.token if by_api else "",
        more=_raise(wish.extra_usd, remark, desk) if wish.extra_usd else None,
        timeout_seconds=longest if asked is None else max(min(asked, longest), min(SHORTEST_SECONDS, longest)),
        base=options.base,
        approval=wish.approval,
        agreed=wish.agreed,
        spot=remark.spot,
        discussions=wish.discussions,
        findings=wish.findings,
        unasked=wish.unasked,
        head_sha=wish.head_sha,
        new_branch=options.new_branch,
        options=options,
        # With money, the delivery is settled only after the answer about a cut, so that a lost answer is repeated.
        delivery=None if wish.extra_usd or wish.told else remark.origin.delivery,
    )


async def _begun_before(wish: Wish, remark: Remark, desk: Desk) -> Handled:
    known = await sessions.by_source(desk.store, remark.source)
    if known is None:
        return ignored("it was taken back before it could begin")
    if wish.extra_usd:
        await _tell_of_cut(wish.extra_usd, remark, desk)
    elif not wish.told:
        return ignored(f"the same text was acted upon before (session {known.session})")
    return acted(known.session)


async def stop_all(session: SessionId, login: str, desk: Desk, *, only_fixes: bool = False) -> int:
    """Stop what runs, waits or is kept, or only attempts at failing checks; return how many turns."""
    found = await sessions.turns_of(desk.store, session)
    under_way = [one for one in found if one.state is not TurnState.DONE]
    if only_fixes:
        under_way = [one for one in under_way if TRAITS[one.asked_as].mends_checks]
    turns = [one for one in under_way if one.step is not Step.SETTLE or one.outcome is None]  # else only cleaning up
    for turn in reversed(turns):  # waiting ones first: none must start when the running one ends
        if await sessions.cancel_queued(desk.store, turn.key, endings.stopped_by(login)):
            desk.board.touch(turn.key, final=True)
        else:
            await sessions.request_stop(desk.store, turn.key, login)
            desk.poke(turn.key)
            desk.board.touch(turn.key, pressing=True)
    if not only_fixes and await environments.give_up_kept(desk.store, session):
        desk.sweep()
    return len(turns)


async def funds_of(thread: Thread, desk: Desk) -> Funds:
    """Return the session's funds, or those that a first one would start with."""
    last = await sessions.latest(desk.store, thread)
    if last is None:
        account = await spend.first_account(desk.store, thread.installation)
    else:
        account = await spend.account(desk.store, last.key.session)
    return funds.of(account, BudgetTerms.of(desk.settings.limits))


async def lacking(remark: Remark, desk: Desk, extra_usd: float = 0.0) -> Handled | None:
    """Refuse if a limit is reached, unless the turn exists already; a push gets no answer."""
    payers = Payers(remark.thread.installation, remark.thread.repo.id, remark.author.id)
    limits = await spending_limits.ceilings_of(desk.store, desk.settings.limits, remark.thread.installation)
    ceiling = await spending_limits.reached_ceiling(desk.store, limits, payers, desk.clock())
    sentence = ceiling.sentence() if ceiling else await _lacking_of_session(remark, desk, extra_usd)
    if sentence is None or await sessions.by_source(desk.store, remark.source):
        return None
    if isinstance(remark, ReviewWanted) and remark.is_push:
        return refused(sentence)
    return await desk.refuse(remark, sentence)


async def add_money(extra_usd: float, last: Turn, remark: Remark, desk: Desk, *, then: str = "") -> Handled:
    """Add money to the session without another turn; `then` says what follows."""
    await spend.raise_budget(desk.store, last.key.session, _raise(extra_usd, remark, desk))
    money = await funds_of(remark.thread, desk)
    added = await spend.raised_by(desk.store, remark.source)
    if added is None:
        return await desk.refuse(remark, on_money.cannot_be_raised(money, desk.settings.command))
    if last.state is TurnState.DONE:
        await desk.redraw(last.key)
    else:
        desk.board.touch(last.key)
    await desk.reply(remark, f"{on_money.raised(money, extra_usd, added)} {then}".rstrip())
    return acted(last.key.session, "added to what the session may spend")


def _raise(extra_usd: float, remark: Remark, desk: Desk) -> Raise:
    return Raise(remark.source, extra_usd, remark.author.login, BudgetTerms.of(desk.settings.limits))


async def _tell_of_cut(extra_usd: float, remark: Remark, desk: Desk) -> None:
    """Say so if the session got less money than its person asked for."""
    added = await spend.raised_by(desk.store, remark.source) or 0.0
    if words := on_money.cut_at_the_most(await funds_of(remark.thread, desk), extra_usd, added):
        with contextlib.suppress(GitHubRefused):  # deleted or locked meanwhile: the turn began all the same
            await desk.reply(remark, words)


async def _lacking_of_session(remark: Remark, desk: Desk, extra_usd: float) -> str | None:
    money = await funds_of(remark.thread, desk)
    granted = money.granted(extra_usd) if extra_usd else 0.0
    if extra_usd and granted <= 0:
        return on_money.cannot_be_raised(money, desk.settings.command)
    if money.after(granted).means is not FundsState.LEFT:
        return on_money.session_spent(money, desk.settings.command)
    return None
