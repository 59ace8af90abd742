"""Work on a fork's code: into the fork where we may, else as suggestions and a patch; never into the repository."""

from __future__ import annotations

from dataclasses import replace

from bot import repo_config
from bot.errors import GitHubRefused
from bot.git.errors import PushRaced, PushRefused
from bot.github.types import Pull, TokenPurpose
from bot.kinds.parts import OnFork
from bot.models import Outcome, Repo, Thread
from bot.outbound import TextKind
from bot.policy import Service
from bot.sessions import detours
from bot.sessions.moves import End, Move
from bot.sessions.publishing import handing_over, judging, saving
from bot.sessions.publishing.work import Work
from bot.sessions.remote import remote_access
from bot.store import sessions
from bot.words import endings, on_forks, on_pushes, quoting


async def publish(work: Work, tree: str) -> Move:
    services, turn = work.services, work.turn
    judged = await judging.judge(work, tree)
    if (held := judged.held or await judging.not_allowed(work)) is not None:
        return await saving.keep(work, End(turn.outcome or Outcome.REFUSED, turn.detail or held))
    if turn.outcome is not None:
        return await saving.keep(work, End(turn.outcome, turn.detail or ""))
    if not await sessions.begin_push(services.store, turn.key):
        return detours.stopped(await sessions.turn(services.store, turn.key))
    pull = await services.github.installation(work.session.installation_id).pull(work.session.thread.repo, turn.number)
    if pull.state != "open":
        return await saving.keep(work, End(Outcome.STOPPED, endings.stopped_by(endings.CLOSED)))
    pushed, why_not = await _pushed(replace(work, report=judged.report), pull)
    return pushed or await handing_over.hand_over(work, pull, why_not)


async def _pushed(work: Work, pull: Pull) -> tuple[Move | None, str]:
    """To the fork's own branch, or why not, in words (none where there was no chance of it)."""
    services, turn = work.services, work.turn
    home = await _home(work, pull)
    if home is None:
        return None, ""
    if await _is_guarded(work, home, pull.head_branch):
        return None, on_forks.not_to_the_default_branch(pull.head_branch)
    if repo_config.load(turn.config).commits == "verified":
        return None, on_forks.not_signed()
    fork = turn.part(OnFork).fork
    assert fork is not None
    try:
        access = await remote_access(services, home, TokenPurpose.PUSH)
        await work.quarantine.push(access, work.commit, pull.head_branch, expect=turn.base_sha)
    except PushRaced as raced:
        return None, on_forks.moved(turn.base_sha or "", raced.actual) if raced.actual else ""
    except (PushRefused, GitHubRefused) as error:
        words = error.words if isinstance(error, PushRefused) else error.message
        return None, on_forks.push_refused(quoting.fenced(services.outbound.text(TextKind.COMMENT, words)))
    told = (on_forks.pushed(fork, work.commit), on_pushes.look_closely(work.report))
    return End(Outcome.PUSHED, "\n\n".join(filter(None, told)), {"commit_sha": work.commit}), ""


async def _home(work: Work, pull: Pull) -> Thread | None:
    """The fork, where the App is installed on it for an account that is served, and the requester may write there.

    That its owner lets maintainers edit the branch is of no use: GitHub grants that to people, not to Apps."""
    services, turn = work.services, work.turn
    if pull.head_repo is None:
        return None
    app, accounts = await services.github.identity(), services.settings.github.accounts
    if not Service(app.bot_id, app.owner, accounts).serves(pull.head_repo.partition("/")[0]):
        return None
    try:
        installed = await services.github.installed_on(pull.head_repo)
        if installed is None:
            return None
        reads = services.github.installation(installed.id)
        found = await reads.repo(pull.head_repo)
        user_id, permission = await reads.permission(found, turn.requester)
    except GitHubRefused:
        return None
    if found.id != pull.head_repo_id or user_id != turn.requester_id or not permission.may_write or found.archived:
        return None
    repo = Repo(found.id, found.owner, found.name, found.private, found.default_branch)
    return Thread(repo, installed.id, turn.number, is_pull=True)


async def _is_guarded(work: Work, home: Thread, branch: str) -> bool:
    if branch == home.repo.default_branch:
        return True
    return await work.services.github.installation(home.installation).is_protected(home.repo, branch)
