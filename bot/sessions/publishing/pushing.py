"""The push: one commit to the announced branch, on top of what came there meanwhile, or beside it; never by force."""

from __future__ import annotations

from bot import endings, pull_words, repo_config
from bot.errors import GitHubRefused
from bot.git.errors import PushRaced, PushRefused, Refusal
from bot.github.types import Purpose
from bot.models import Outcome
from bot.outbound import TextKind
from bot.sessions.moves import End, Move
from bot.sessions.publishing import aside, joining, judging, opening, replaying, saving, standing
from bot.sessions.publishing.work import Work
from bot.sessions.remote import follow_move, remote_access
from bot.store import sessions


async def publish(work: Work) -> Move:
    services = work.services
    pull = await standing.of(work)
    if (why := standing.in_the_way(work, pull)) is not None:
        return await saving.rescue(work, End(Outcome.REFUSED, why))
    try:
        return await _published(work, _together(joining.told(work.turn), standing.beside_it(work, pull)))
    except PushRefused as error:
        words = services.outbound.text(TextKind.COMMENT, error.words)
        return await saving.keep(work, End(Outcome.REFUSED, endings.push_refused(words)))
    except PushRaced as raced:
        return await saving.rescue(work, End(Outcome.REFUSED, endings.branch_moved(raced.branch)))
    except GitHubRefused as error:
        await follow_move(services, work.turn, error)
        words = services.outbound.text(TextKind.COMMENT, error.message)
        return await saving.keep(work, End(Outcome.REFUSED, endings.push_refused(words)))


async def _published(work: Work, words: str) -> Move:
    turn, session = work.turn, work.session
    branch = session.branch or repo_config.load(turn.config).branch_name(turn.number, turn.key.session)
    if aside.is_meant(work):
        return await aside.publish(work, branch, words)
    try:
        branch = await _push(work, branch)
    except PushRaced:
        if turn.tip_sha is None:
            raise
        return await _after_others(work, branch, words)
    except PushRefused as refused:
        if refused.kind is not Refusal.NON_FAST_FORWARD or turn.tip_sha is None:
            raise
        return await _after_others(work, branch, words)
    return await _pushed(work, branch, words)


async def _pushed(work: Work, branch: str, words: str) -> Move:
    await sessions.update_turn(work.services.store, work.turn.key, commit_sha=work.commit)
    if work.session.pull_number is not None:
        return End(Outcome.PUSHED, words)
    return await opening.open_pull(work, branch)


async def _push(work: Work, branch: str) -> str:
    """The branch that was moved, or made: where its name is taken, one with the turn's number behind it, and where a
    branch stands at what would be its folder, the same without folders."""
    services, turn = work.services, work.turn
    access = await remote_access(services, work.session.thread, Purpose.PUSH)
    another = f"{branch.removesuffix(f'-{turn.n}')}-{turn.n}"
    flat = another.replace("/", "-")
    for name in dict.fromkeys((branch, another, flat)):
        await sessions.update_session(services.store, turn.key.session, branch=name)
        try:
            await work.quarantine.push(access, work.commit, name, expect=turn.tip_sha)
        except (PushRaced, PushRefused) as error:
            if turn.tip_sha is not None or name == flat or not _is_name_taken(error):
                raise
            continue
        return name
    raise AssertionError("the last name was pushed or raised")


def _is_name_taken(error: PushRaced | PushRefused) -> bool:
    return isinstance(error, PushRaced) or error.kind is Refusal.NAME


async def _after_others(work: Work, branch: str, words: str) -> Move:
    """The branch is not where the work began: the same work on top of it, once; else beside it."""
    at = await replaying.head(work, branch)
    if at is None:
        return await saving.rescue(work, End(Outcome.REFUSED, pull_words.branch_deleted(branch)))
    if (landed := await replaying.landed(work, at)) is not None:
        return await _pushed(landed, branch, words)
    found = await replaying.on_top(work, at)
    if found is None:
        return await aside.publish(work, branch, pull_words.does_not_fit(branch, at))
    moved, tree = found
    if (held := await judging.held(moved, tree)) is not None:
        return await saving.keep(work, End(Outcome.REFUSED, held))
    told = _together(pull_words.put_on_top(branch, at, unchecked=bool(work.turn.verified)), words)
    try:
        await _push(moved, branch)
    except PushRaced:
        at_last = await replaying.head(work, branch)
        if at_last is not None and (landed := await replaying.landed(work, at_last)) is not None:
            return await _pushed(landed, branch, told)
        return await aside.publish(work, branch, pull_words.moved_again(branch))
    return await _pushed(moved, branch, told)


def _together(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
