"""The push: one commit to the announced branch, or to one with the turn's number where its name is taken."""

from __future__ import annotations

from bot import endings, repo_config
from bot.errors import GitHubRefused
from bot.git.errors import PushRaced, PushRefused
from bot.models import Outcome
from bot.sessions.moves import End, Move
from bot.sessions.publishing import dressing, landing, opening, refusals, saving
from bot.sessions.publishing.work import Work
from bot.store import sessions


async def publish(work: Work) -> Move:
    services, turn, session = work.services, work.turn, work.session
    branch = session.branch or repo_config.load(turn.config).branch_name(turn.number, turn.key.session)
    try:
        branch, sha = await _push(work, branch)
    except PushRefused as error:
        return await refusals.settled(work, error)
    except PushRaced:
        return await saving.rescue(work, End(Outcome.REFUSED, endings.branch_moved(branch)))
    except GitHubRefused as error:
        return await refusals.unreachable(work, error)
    await sessions.update_turn(services.store, turn.key, commit_sha=sha)
    if session.pull_number is not None:
        await dressing.make_ready(work)
        return End(Outcome.PUSHED, "")
    return await opening.open_pull(work, branch)


async def _push(work: Work, branch: str) -> tuple[str, str]:
    """The branch that was moved, or made (a taken name gets the turn's number behind it), and its tip."""
    turn = work.turn
    another = f"{branch.removesuffix(f'-{turn.n}')}-{turn.n}"
    for name in dict.fromkeys((branch, another)):
        await sessions.update_session(work.services.store, turn.key.session, branch=name)
        try:
            return name, await landing.land(work, name)
        except PushRaced:
            if turn.tip_sha is not None or name == another:
                raise
    raise AssertionError("the last name was pushed or raised")
