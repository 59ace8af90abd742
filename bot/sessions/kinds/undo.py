"""Takes the session's last push back: finds it, and makes the branch's state without it."""

from __future__ import annotations

from collections.abc import Sequence

from bot import repo_config
from bot.errors import GitHubRefused
from bot.git.errors import GitRefusal, PushRaced, PushRefused, RefMissing
from bot.git.quarantine import Quarantine
from bot.github.types import TokenPurpose
from bot.kinds import undo
from bot.kinds.shape import OnFork
from bot.models import PUSHED, WHOLE_SECOND, Outcome, Step, TurnKey
from bot.outbound import TextKind
from bot.proposal import descriptions
from bot.sessions import starting_point, turn_patch
from bot.sessions.kinds import TurnKind
from bot.sessions.moves import End, Move, To
from bot.sessions.publish import pull_request, push, rescue, turn_commit
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.services import Services
from bot.sessions.starting_point import remote_access
from bot.store import sessions
from bot.store.sessions import Session, Turn
from bot.words import endings, on_pulls, on_pushes


class UndoTurn(TurnKind):
    traits = undo.TRAITS

    async def prepare(self, services: Services, turn: Turn) -> Move:
        """Go straight to the push, without an environment."""
        session = await sessions.session(services.store, turn.key.session)
        undone = last_push(await sessions.turns_of(services.store, session.id), before=turn.n)
        if undone is None or session.branch is None:
            return End(Outcome.NO_CHANGE, endings.nothing_to_take_back())
        if undone.branch is not None:
            return End(Outcome.REFUSED, on_pulls.stands_beside(undone.n, undone.branch, undone.pull_number))
        assert undone.commit_sha is not None
        began = undone.push_began or undone.created_at
        if turn.asked_at is not None and began >= turn.asked_at + WHOLE_SECOND:  # the requester has not seen this push
            return End(Outcome.REFUSED, endings.pushed_since(undone.n, undone.commit_sha, services.settings.command))
        if session.pull_number is not None:
            reads = services.github.installation(session.installation_id)
            pull = await reads.pull(session.thread.repo, session.pull_number)
            if pull.merged:
                return End(Outcome.REFUSED, endings.merged_already(pull.number))
        access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
        try:
            tip = await services.cache.fetch(session.repo_id, access, f"refs/heads/{session.branch}")
        except RefMissing:
            return End(Outcome.REFUSED, endings.branch_gone(session.branch))
        try:
            await services.cache.fetch(session.repo_id, access, undone.commit_sha)
        except RefMissing:
            return End(Outcome.REFUSED, endings.no_longer_on(session.branch, undone.n))
        config = repo_config.dump(await starting_point.read_config(services, session))
        columns = {"base": session.branch, "base_sha": tip, "tip_sha": tip, "config": config}
        return To(Step.PUBLISH, columns, parts=(undo.TakenBack(undone.n),))

    async def publish(self, services: Services, turn: Turn, session: Session) -> Move:
        """Safe to repeat: a repetition makes the same commit and finds it at the remote."""
        number = turn.part(undo.TakenBack).turn
        assert number is not None and turn.tip_sha is not None and session.branch is not None
        undone = await sessions.turn(services.store, TurnKey(turn.key.session, number))
        assert undone.commit_sha is not None
        async with services.cache.quarantine(session.repo_id) as quarantine:
            if not await _is_there(services, session, quarantine, turn.tip_sha, undone.commit_sha):
                return End(Outcome.REFUSED, endings.no_longer_on(session.branch, undone.n))
            before = await rescue.commit_below(services.store, session.id, quarantine, undone.commit_sha)
            tree = await quarantine.reverted(undone.commit_sha, before, turn.tip_sha) if before else None
            if tree is None:
                return End(Outcome.REFUSED, endings.does_not_revert(session.branch, undone.n))
            words = descriptions.undo_message(turn, undone.key, undone.commit_sha)
            commit = await turn_commit.make_commit(services, turn, quarantine, tree, [turn.tip_sha], words)
            work = TurnWork(services, turn, session, quarantine, commit)
            await turn_patch.save(services, turn, quarantine, tree, at=services.clock(), is_home=True)
            if (forbidden := await turn_commit.permission_lost(work)) is not None:
                return await push.arrived(work) or End(Outcome.REFUSED, forbidden)
            if (judged := await turn_commit.judge(work, tree)).allowable:
                return await turn_commit.hold_workflows(work, judged)
            return await _push_back(work, session.branch, endings.taken_back(undone.n, undone.commit_sha))


def last_push(turns: Sequence[Turn], *, before: int) -> Turn | None:
    """Find the latest push that no later turn has taken back, and that is no undo itself."""
    pushed = [one for one in turns if one.n < before and one.outcome in PUSHED]
    gone = {_undoes(one) for one in pushed}
    own = [one for one in pushed if _undoes(one) is None and one.commit_sha and one.part(OnFork).fork is None]
    return next((one for one in reversed(own) if one.n not in gone), None)


def _undoes(turn: Turn) -> int | None:
    return turn.part(undo.TakenBack).turn


async def _is_there(services: Services, session: Session, quarantine: Quarantine, tip: str, commit: str) -> bool:
    """Tell whether the commit is still part of the branch, also below its fetched history."""
    if await quarantine.continues(tip, commit):
        return True
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    try:
        await services.cache.fetch(session.repo_id, access, f"refs/heads/{session.branch}", depth=pull_request.DEEPER)
    except RefMissing:
        return False
    await quarantine.look_again()
    return await quarantine.continues(tip, commit)


async def _push_back(work: TurnWork, branch: str, words: str) -> Move:
    try:
        sha = await pull_request.push_commit(work, branch)
    except PushRaced:
        at = await pull_request.branch_head(work, branch)
        if at is None:
            return await _without_branch(work, branch, words)
        found = await pull_request.landed_at(work, at)
        if found is None:
            return End(Outcome.REFUSED, endings.branch_moved(branch))
        sha = found[1]
    except GitHubRefused as error:
        return End(Outcome.REFUSED, await turn_commit.refusal_words(work, error))
    except pull_request.Guarded as guarded:
        return End(Outcome.REFUSED, guarded.why)
    except PushRefused as error:
        words = work.services.outbound.text(TextKind.COMMENT, error.words)
        if error.kind is GitRefusal.WORKFLOW:
            return await turn_commit.hold_for_permission(work, words)
        return End(Outcome.REFUSED, on_pushes.refused(words, error.kind))
    return End(Outcome.PUSHED, words, {"commit_sha": sha})


async def _without_branch(work: TurnWork, branch: str, words: str) -> Move:
    """Find an earlier try of this push that arrived before the pull request ended and its branch was removed."""
    pull = await pull_request.pull_state(work)
    sha = await pull_request.arrived_at_pull(work, pull) if pull is not None and pull.state != "open" else None
    if pull is None or sha is None:
        return End(Outcome.REFUSED, endings.branch_gone(branch))
    told = f"{words} {on_pulls.ended_since(pull.number, pull.merged)}"
    return End(Outcome.PUSHED, told, {"commit_sha": sha})


KIND = UndoTurn()
