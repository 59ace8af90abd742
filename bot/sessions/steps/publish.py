"""Step 6: under policy, one push of one commit to the announced branch, and a draft pull request found or created.

Work that may not be published (stopped, over budget, held by policy) goes to a rescue ref or stays on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot import endings, publications, repo_config
from bot.errors import GitHubRefused
from bot.git.commits import Author
from bot.git.errors import PushRaced, PushRefused
from bot.git.quarantine import Quarantine
from bot.github.types import Purpose
from bot.live import saving
from bot.models import Outcome, TurnKey
from bot.outbound import TextKind, neutralise
from bot.publish import policy, secrets_scan
from bot.sessions import detours, keeping, reviewing, trust
from bot.sessions.moves import End, Move
from bot.sessions.remote import follow_move, remote_access
from bot.sessions.services import Services
from bot.store import gateway, sessions
from bot.store.sessions import Session, Turn


@dataclass(frozen=True)
class _Work:
    """What the turn brought home, opened in its quarantine."""

    services: Services
    turn: Turn
    session: Session
    quarantine: Quarantine
    commit: str


async def run(services: Services, turn: Turn) -> Move:
    session = await sessions.session(services.store, turn.key.session)
    if turn.kind in ("undo", "review"):
        return await _without_work(services, turn, session)
    assert turn.base_sha is not None
    async with services.cache.quarantine(session.repo_id) as quarantine:
        tree = await quarantine.admit(keeping.collected(services, turn), base=turn.base_sha)
        commit = await _commit(services, turn, quarantine, tree)
        work = _Work(services, turn, session, quarantine, commit)
        held = await _held(work, tree) or await _not_allowed(work)
        if held is not None:
            return await _keep(work, End(turn.outcome or Outcome.REFUSED, turn.detail or held))
        if turn.outcome is not None:
            return await _rescue(work, End(turn.outcome, turn.detail or ""))
        if not await sessions.begin_push(services.store, turn.key):
            return detours.stopped(await sessions.turn(services.store, turn.key))
        return await _publish(work)


async def _without_work(services: Services, turn: Turn, session: Session) -> Move:
    """Nothing has come home that would be lost."""
    if turn.outcome is not None:
        return End(turn.outcome, turn.detail or "")
    if not await sessions.begin_push(services.store, turn.key):
        return detours.stopped(await sessions.turn(services.store, turn.key))
    if turn.kind == "undo":
        return await _take_back(services, turn, session)
    return await reviewing.publish(services, turn, session)


async def _take_back(services: Services, turn: Turn, session: Session) -> Move:
    """Where this push, too, was cut off, its repetition makes the same commit and finds it at the remote."""
    assert turn.undoes is not None and turn.tip_sha is not None and session.branch is not None
    undone = await sessions.turn(services.store, TurnKey(turn.key.session, turn.undoes))
    assert undone.commit_sha is not None
    async with services.cache.quarantine(session.repo_id) as quarantine:
        tree = await quarantine.reverted(undone.commit_sha, turn.tip_sha)
        if tree is None:
            return End(Outcome.REFUSED, endings.does_not_revert(session.branch, undone.n))
        bot = await services.github.identity()
        message = services.outbound.text(
            TextKind.COMMIT, publications.undo_message(turn, undone.key, undone.commit_sha)
        )
        author = Author(bot.bot_login, bot.bot_email)
        commit = await quarantine.commit(tree, [turn.tip_sha], message, author, int(turn.created_at))
        work = _Work(services, turn, session, quarantine, commit)
        if (forbidden := await _not_allowed(work)) is not None:
            return End(Outcome.REFUSED, forbidden)
        return await _push_back(work, session.branch, endings.taken_back(undone.n, undone.commit_sha))


async def _push_back(work: _Work, branch: str, words: str) -> Move:
    access = await remote_access(work.services, work.session.thread, Purpose.PUSH)
    try:
        await work.quarantine.push(access, work.commit, branch, expect=work.turn.tip_sha)
    except PushRaced:
        return End(Outcome.REFUSED, endings.branch_moved(branch))
    except PushRefused as error:
        return End(Outcome.REFUSED, endings.push_refused(work.services.outbound.text(TextKind.COMMENT, error.words)))
    return End(Outcome.PUSHED, words, {"commit_sha": work.commit})


async def _commit(services: Services, turn: Turn, quarantine: Quarantine, tree: str) -> str:
    """One turn, one commit by the App; the same work gives the same commit, so a repetition pushes nothing new."""
    bot = await services.github.identity()
    message = services.outbound.text(TextKind.COMMIT, publications.commit_message(turn))
    author = Author(bot.bot_login, bot.bot_email)
    assert turn.base_sha is not None
    return await quarantine.commit(tree, [turn.base_sha], message, author, int(turn.created_at))


async def _held(work: _Work, tree: str) -> str | None:
    """The sentence that names what policy holds, or None."""
    config = repo_config.load(work.turn.config)
    assert work.turn.base_sha is not None
    changes = await work.quarantine.changes(work.turn.base_sha, tree)
    paths = await work.quarantine.paths(tree)
    verdict = policy.check(changes, blocked=config.paths.blocked, sensitive=config.paths.sensitive, existing=paths)
    if verdict.held:
        return endings.held((item.path, item.why) for item in verdict.held)
    found = await secrets_scan.paths_with_secrets(work.quarantine, changes, work.services.redactor)
    return endings.secret_in_work(found) if found else None


async def _not_allowed(work: _Work) -> str | None:
    """Asked again now: somebody may have lost access while the agent worked."""
    reads = work.services.github.installation(work.session.installation_id)
    turn = work.turn
    if await trust.may_write(reads, work.session.thread.repo, turn.requester, turn.requester_id):
        return None
    return endings.permission_gone(turn.requester)


async def _publish(work: _Work) -> Move:
    services, turn, session = work.services, work.turn, work.session
    branch = session.branch or repo_config.load(turn.config).branch_name(turn.number, turn.key.session)
    try:
        branch = await _push(work, branch)
    except PushRefused as error:
        words = services.outbound.text(TextKind.COMMENT, error.words)
        return await _keep(work, End(Outcome.REFUSED, endings.push_refused(words)))
    except PushRaced:
        return await _rescue(work, End(Outcome.REFUSED, endings.branch_moved(branch)))
    except GitHubRefused as error:
        await follow_move(services, turn, error)
        words = services.outbound.text(TextKind.COMMENT, error.message)
        return await _keep(work, End(Outcome.REFUSED, endings.push_refused(words)))
    await sessions.update_turn(services.store, turn.key, commit_sha=work.commit)
    if session.pull_number is not None:
        return End(Outcome.PUSHED, "")
    return await _open_pull(work, branch)


async def _push(work: _Work, branch: str) -> str:
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


async def _open_pull(work: _Work, branch: str) -> Move:
    services, turn = work.services, work.turn
    assert turn.base is not None
    try:
        pull = await services.outbound.open_pull(
            work.session.thread,
            title=publications.pull_title(turn),
            body=await _pull_body(work),
            head=branch,
            base=turn.base,
            draft=repo_config.load(turn.config).draft,
        )
    except GitHubRefused as error:
        words = services.outbound.text(TextKind.TITLE, error.message)
        return End(Outcome.PUSHED, endings.pull_not_opened(branch, words))
    return End(Outcome.PULL_REQUEST, "", session={"pull_number": pull.number, "pull_url": pull.url})


async def _pull_body(work: _Work) -> str:
    services, turn = work.services, work.turn
    return publications.pull_body(
        turn,
        number=turn.number,
        files=turn.files_changed or (),
        verified=turn.verified or (),
        seconds=services.clock() - turn.created_at,
        cost=await gateway.turn_cost(services.store, turn.key),
        inert=neutralise.inert,
    )


async def _rescue(work: _Work, end: End) -> Move:
    """Work cut short goes to a ref that is no branch; where even that cannot be pushed, it stays on the host."""
    ref = saving.rescue_ref(work.turn)
    try:
        access = await remote_access(work.services, work.session.thread, Purpose.PUSH)
        await work.quarantine.push(access, work.commit, ref, expect=None)
    except (PushRefused, PushRaced):
        return await _keep(work, end)
    except GitHubRefused as error:
        await follow_move(work.services, work.turn, error)
        return await _keep(work, end)
    return End(end.outcome, end.detail, {"rescue_ref": ref, "commit_sha": work.commit})


async def _keep(work: _Work, end: End) -> Move:
    kept = keeping.path(work.services, work.turn)
    await work.quarantine.keep(work.commit, kept)
    return End(end.outcome, end.detail, {"kept": kept.name})
