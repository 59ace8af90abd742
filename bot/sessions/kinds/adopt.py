"""Makes a branch and a pull request of work on a fork's commit that somebody approved by its name.

The approval covers one commit, which must still be the fork's head, also at the moment of the push.
"""

from __future__ import annotations

from dataclasses import replace

from bot import repo_config
from bot.errors import GitHubRefused
from bot.git.errors import PushRaced, PushRefused, RefMissing
from bot.github.types import TokenPurpose
from bot.kinds import adopt
from bot.kinds.shape import OnFork
from bot.models import Outcome, Step, TurnKey
from bot.outbound import TextKind
from bot.sessions import starting_point
from bot.sessions.kinds import TurnKind
from bot.sessions.moves import End, Move, To
from bot.sessions.publish import pull_request, rescue, turn_commit
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.services import Services
from bot.sessions.starting_point import compared, remote_access
from bot.store import approvals, sessions
from bot.store.sessions import Session, Turn
from bot.words import endings, on_forks, on_pushes


class AdoptTurn(TurnKind):
    traits = adopt.TRAITS

    async def prepare(self, services: Services, turn: Turn) -> Move:
        """Go straight to the push, without an environment."""
        worked = await _worked(services, turn)
        if worked is None or await rescue.kept_bundle(services, worked) is None:
            return End(Outcome.REFUSED, on_forks.gone(services.settings.command))
        session = await sessions.session(services.store, turn.key.session)
        config = repo_config.dump(await starting_point.read_config(services, session))
        return To(Step.PUBLISH, {"base": worked.base, "base_sha": worked.base_sha, "config": config})

    async def publish(self, services: Services, turn: Turn, session: Session) -> Move:
        worked = await _worked(services, turn)
        assert worked is not None and worked.base_sha is not None
        if (bundle := await rescue.kept_bundle(services, worked)) is None:
            return End(Outcome.REFUSED, on_forks.gone(services.settings.command))
        async with services.cache.quarantine(session.repo_id) as quarantine:
            tree = await quarantine.admit(bundle, base=worked.base_sha)
            commit = await turn_commit.commit_of_turn(services, worked, quarantine, tree)
            work = TurnWork(services, turn, session, quarantine, commit)
            if (there := await _there(work)) is not None:
                return await _opened(work, worked, *there)
            if (moved := await _moved(services, worked, session)) is not None:
                return End(Outcome.REFUSED, moved)
            if (held := await _held(work, tree) or await turn_commit.permission_lost(work)) is not None:
                return End(Outcome.REFUSED, held)
            return await _pushed(work, worked)


async def _worked(services: Services, turn: Turn) -> Turn | None:
    """Find the turn whose work was approved."""
    approval = await approvals.get(services.store, turn.approval) if turn.approval else None
    return None if approval is None else await sessions.turn(services.store, TurnKey(turn.key.session, approval.turn))


async def _moved(services: Services, worked: Turn, session: Session) -> str | None:
    """Ask git at the last moment: tell in a sentence if the fork has other commits now than the approved ones."""
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    assert worked.base_sha is not None
    try:
        now = await services.cache.fetch(session.repo_id, access, f"refs/pull/{worked.number}/head")
    except RefMissing:
        return on_forks.gone(services.settings.command)
    return None if now == worked.base_sha else on_forks.void(worked.base_sha, now, services.settings.command)


async def _held(work: TurnWork, tree: str) -> str | None:
    """Judge everything that the branch would bring, with the fork's own commits: a branch here runs here."""
    services, turn, session = work.services, work.turn, work.session
    assert turn.base is not None and turn.base_sha is not None
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    base_ref, head_ref = f"refs/heads/{turn.base}", f"refs/pull/{turn.number}/head"
    try:
        tip = await services.cache.fetch(session.repo_id, access, base_ref)
        found = await compared(services, session.thread, (tip, base_ref), (turn.base_sha, head_ref), max_bytes=1)
    except RefMissing:
        return endings.branch_missing(turn.base)
    parted = tip if found is None else found.parted
    return (await turn_commit.judge(replace(work, turn=replace(turn, base_sha=parted)), tree)).held


async def _there(work: TurnWork) -> tuple[str, str] | None:
    """Find the branch and commit of an earlier try's push, which later commits of the fork do not undo."""
    for name in _names(work):
        at = await pull_request.branch_head(work, name)
        found = await pull_request.landed_at(work, at) if at is not None else None
        if found is not None:
            return name, found[1]
    return None


def _names(work: TurnWork) -> tuple[str, str]:
    """Return the branch's name, and a second one in case the first is taken."""
    branch = repo_config.load(work.turn.config).branch_name(work.turn.number, work.turn.key.session)
    return branch, f"{branch}-{work.turn.n}"


async def _pushed(work: TurnWork, worked: Turn) -> Move:
    branch, another = _names(work)
    try:
        try:
            sha = await pull_request.push_commit(work, branch)
        except PushRaced:
            branch, sha = another, await pull_request.push_commit(work, another)
    except PushRaced as raced:
        return End(Outcome.REFUSED, endings.branch_moved(raced.branch))
    except PushRefused as error:
        words = work.services.outbound.text(TextKind.COMMENT, error.words)
        return End(Outcome.REFUSED, on_pushes.refused(words, error.kind))
    except GitHubRefused as error:
        return End(Outcome.REFUSED, await turn_commit.refusal_words(work, error))
    return await _opened(work, worked, branch, sha)


async def _opened(work: TurnWork, worked: Turn, branch: str, sha: str) -> Move:
    services, key = work.services, work.turn.key
    await sessions.update_session(services.store, key.session, branch=branch)
    await sessions.update_turn(services.store, key, commit_sha=sha)
    assert worked.base_sha is not None
    words = on_forks.adopted(worked.base_sha, worked.part(OnFork).fork)
    move = await pull_request.open_pull(replace(work, turn=worked, landed=sha), branch)
    return replace(move, detail="\n\n".join(filter(None, (words, move.detail)))) if isinstance(move, End) else move


KIND = AdoptTurn()
