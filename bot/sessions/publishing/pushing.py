"""The push: one commit to the announced branch, or to one with the turn's number where its name is taken."""

from __future__ import annotations

from bot import endings, repo_config
from bot.errors import GitHubRefused
from bot.git.errors import PushRaced, PushRefused
from bot.github.types import Purpose
from bot.models import Outcome
from bot.outbound import TextKind
from bot.sessions.moves import End, Move
from bot.sessions.publishing import opening, saving
from bot.sessions.publishing.work import Work
from bot.sessions.remote import follow_move, remote_access
from bot.store import sessions


async def publish(work: Work) -> Move:
    services, turn, session = work.services, work.turn, work.session
    branch = session.branch or repo_config.load(turn.config).branch_name(turn.number, turn.key.session)
    try:
        branch = await _push(work, branch)
    except PushRefused as error:
        words = services.outbound.text(TextKind.COMMENT, error.words)
        return await saving.keep(work, End(Outcome.REFUSED, endings.push_refused(words)))
    except PushRaced:
        return await saving.rescue(work, End(Outcome.REFUSED, endings.branch_moved(branch)))
    except GitHubRefused as error:
        await follow_move(services, turn, error)
        words = services.outbound.text(TextKind.COMMENT, error.message)
        return await saving.keep(work, End(Outcome.REFUSED, endings.push_refused(words)))
    await sessions.update_turn(services.store, turn.key, commit_sha=work.commit)
    if session.pull_number is not None:
        return End(Outcome.PUSHED, "")
    return await opening.open_pull(work, branch)


async def _push(work: Work, branch: str) -> str:
    """The branch that was moved, or made: where its name is taken, one with the turn's number behind it."""
    services, turn = work.services, work.turn
    access = await remote_access(services, work.session.thread, Purpose.PUSH)
    another = f"{branch.removesuffix(f'-{turn.n}')}-{turn.n}"
    for name in dict.fromkeys((branch, another)):
        await sessions.update_session(services.store, turn.key.session, branch=name)
        try:
            await work.quarantine.push(access, work.commit, name, expect=turn.tip_sha)
        except PushRaced:
            if turn.tip_sha is not None or name == another:
                raise
            continue
        return name
    raise AssertionError("the last name was pushed or raised")
