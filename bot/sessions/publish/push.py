"""Pushes one commit to the announced branch, on top of what came there, or to a separate branch; never by force."""

from __future__ import annotations

from dataclasses import replace

from bot import repo_config
from bot.errors import GitHubRefused
from bot.git.errors import GitRefusal, PushRaced, PushRefused
from bot.models import Outcome
from bot.sessions.moves import End, Move
from bot.sessions.publish import pull_request, rescue, turn_commit
from bot.sessions.publish.turn_commit import TurnWork
from bot.store import sessions
from bot.words import endings, on_pulls, on_pushes


async def _publish_separately(work: TurnWork, onto: str, words: str) -> Move:
    """Publish on a separate branch, with a pull request to be merged into `onto`."""
    services, turn = work.services, work.turn
    name = f"{repo_config.load(turn.config).branch_name(turn.number, turn.key.session)}-{turn.n}"
    await sessions.update_turn(services.store, turn.key, branch=name)
    sha = await pull_request.push_commit(replace(work, turn=replace(turn, tip_sha=None)), name)
    await sessions.update_turn(services.store, turn.key, commit_sha=sha)
    move = await pull_request.open_pull(replace(work, turn=replace(turn, base=onto), landed=sha), name)
    if not isinstance(move, End):
        return move
    # The session stays with the pull request that it is about.
    opened = {name: value for name, value in move.session.items() if name == "pull_number"}
    return replace(move, detail=_together(words, move.detail), columns={**move.columns, **opened}, session={})


async def publish(work: TurnWork) -> Move:
    pull = await pull_request.pull_state(work)
    try:
        if pull is not None and pull.state != "open" and (sha := await pull_request.arrived_at_pull(work, pull)):
            told = on_pulls.ended_since(pull.number, pull.merged)
            return End(Outcome.PUSHED, told, replace(work, landed=sha).columns)
        if (why := pull_request.in_the_way(work, pull)) is not None:
            return await rescue.rescue(work, End(Outcome.REFUSED, why))
        words = _together(await turn_commit.words_on_merge(work), pull_request.words_on_new_base(work, pull))
        return await _publish_on_branch(work, words)
    except pull_request.Guarded as guarded:
        return await rescue.rescue(work, End(Outcome.REFUSED, guarded.why))
    except PushRefused as error:
        return await turn_commit.on_push_refused(work, error)
    except PushRaced as raced:
        return await rescue.rescue(work, End(Outcome.REFUSED, endings.branch_moved(raced.branch)))
    except GitHubRefused as error:
        return await turn_commit.without_access(work, error)


async def arrived(work: TurnWork) -> End | None:
    """Find the push of an earlier try of this turn, though its requester could not push it now."""
    turn, branch = work.turn, work.turn.branch or work.session.branch
    at = await pull_request.branch_head(work, branch) if branch and turn.push_began is not None else None
    found = await pull_request.landed_at(work, at) if at is not None else None
    if branch is None or found is None:
        return None
    done = replace(work, landed=found[1])
    return End(Outcome.PUSHED, on_pushes.there_already(branch, found[1], turn.requester), done.columns)


async def _publish_on_branch(work: TurnWork, words: str) -> Move:
    turn, session = work.turn, work.session
    branch = session.branch or repo_config.load(turn.config).branch_name(turn.number, turn.key.session)
    # Its requester wants a separate branch, or an earlier try has begun one, whose push may have arrived.
    if (turn.new_branch and session.pull_number is not None) or turn.branch is not None:
        return await _publish_separately(work, branch, words)
    try:
        branch, sha = await _push(work, branch)
    except (PushRaced, PushRefused) as error:
        has_moved = isinstance(error, PushRaced) or error.kind is GitRefusal.NON_FAST_FORWARD
        if not has_moved or turn.tip_sha is None or work.is_approved:  # an approved commit is pushed as it is, or not
            raise
        return await _publish_on_top(work, branch, words)
    return await _after_push(work, branch, sha, words)


async def _after_push(work: TurnWork, branch: str, sha: str, words: str) -> Move:
    """Store the pushed commit, then open the pull request or end its draft."""
    await sessions.update_turn(work.services.store, work.turn.key, commit_sha=sha)
    work = replace(work, landed=sha)
    if work.session.pull_number is None:
        return await pull_request.open_pull(work, branch)
    await pull_request.make_ready(work)
    return End(Outcome.PUSHED, _together(words, on_pushes.look_closely(work.report)), work.columns)


async def _push(work: TurnWork, branch: str) -> tuple[str, str]:
    """Push, and return the branch and its tip. If the name is taken, try it with the turn's number, then without
    folders, as a branch may have the name of one."""
    turn = work.turn
    another = f"{branch.removesuffix(f'-{turn.n}')}-{turn.n}"
    flat = another.replace("/", "-")
    for name in dict.fromkeys((branch, another, flat)):
        await sessions.update_session(work.services.store, turn.key.session, branch=name)
        try:
            return name, await pull_request.push_commit(work, name)
        except (PushRaced, PushRefused) as error:
            is_taken = isinstance(error, PushRaced) or error.kind is GitRefusal.NAME
            if turn.tip_sha is not None or name == flat or not is_taken:
                raise
    raise AssertionError("the last name was pushed or raised")


async def _publish_on_top(work: TurnWork, branch: str, words: str) -> Move:
    """Put the work on top of a branch that has moved, once; if it moves again, beside it."""
    at = await pull_request.branch_head(work, branch)
    if at is None:
        return await rescue.rescue(work, End(Outcome.REFUSED, on_pulls.branch_deleted(branch)))
    if (landed := await pull_request.landed_at(work, at)) is not None:
        return await _after_push(landed[0], branch, landed[1], words)
    found = await pull_request.put_on_top(work, at)
    if found is None:
        return await _publish_separately(work, branch, on_pulls.does_not_fit(branch, at))
    moved, tree = found
    if (held := (await turn_commit.judge(moved, tree)).held) is not None:
        return await rescue.keep_on_host(work, End(Outcome.REFUSED, held))
    told = _together(on_pulls.put_on_top(branch, at, unchecked=bool(work.turn.verified)), words)
    try:
        return await _after_push(moved, *await _push(moved, branch), told)
    except PushRaced:
        at_last = await pull_request.branch_head(work, branch)
        if at_last is not None and (landed := await pull_request.landed_at(work, at_last)) is not None:
            return await _after_push(landed[0], branch, landed[1], told)
        return await _publish_separately(work, branch, on_pulls.moved_again(branch))


def _together(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
