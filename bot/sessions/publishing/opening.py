"""The pull request: found or opened, as its repository wants them, with what was asked, done and verified."""

from __future__ import annotations

from bot import publications, pull_template, repo_config
from bot.errors import GitHubRefused
from bot.git.errors import RefMissing
from bot.github.types import TokenPurpose
from bot.models import Outcome
from bot.outbound import TextKind, neutralise
from bot.publications import Extras
from bot.sessions.moves import End, Move
from bot.sessions.publishing import dressing
from bot.sessions.publishing.work import Work
from bot.sessions.remote import remote_access
from bot.store import spend
from bot.words import endings


async def open_pull(work: Work, branch: str) -> Move:
    services, turn = work.services, work.turn
    assert turn.base is not None
    try:
        pull = await services.outbound.open_pull(
            work.session.thread,
            title=publications.pull_title(work.done),
            body=await _pull_body(work),
            head=branch,
            base=turn.base,
            draft=repo_config.load(turn.config).opens_draft(verified=work.is_verified),
        )
    except GitHubRefused as error:
        words = services.outbound.text(TextKind.TITLE, error.message)
        return End(Outcome.PUSHED, endings.pull_not_opened(branch, words), work.columns)
    told = await dressing.dress(work, pull.number)
    return End(Outcome.PULL_REQUEST, told, work.columns, {"pull_number": pull.number, "pull_url": pull.url})


async def _pull_body(work: Work) -> str:
    services, turn, config = work.services, work.done, repo_config.load(work.turn.config)
    template = await _template(work) if config.pull.template else None
    closes = config.pull.closes and not work.session.thread.is_pull
    return publications.pull_body(
        turn,
        number=turn.number,
        files=turn.files_changed or (),
        verified=work.checks,
        seconds=services.clock() - turn.created_at,
        cost=await spend.turn_cost(services.store, turn.key),
        extras=Extras(work.report, template, closes),
        inert=neutralise.inert,
        quoted=neutralise.quoted,
        block=neutralise.block,
    )


async def _template(work: Work) -> str | None:
    """As it stands on the default branch; one that cannot be read is as good as none."""
    services, repo = work.services, work.session.thread.repo
    try:
        access = await remote_access(services, work.session.thread, TokenPurpose.READ_REPOSITORY)
        head = await services.cache.fetch(repo.id, access, f"refs/heads/{repo.default_branch}")
    except (RefMissing, GitHubRefused):
        return None
    found = pull_template.find(await services.cache.paths(repo.id, head))
    content = await services.cache.file(repo.id, head, found) if found else None
    return content.decode("utf-8", "replace") if content else None
