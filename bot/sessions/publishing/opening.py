"""The pull request: found or opened, as a draft, with what was asked, done and verified."""

from __future__ import annotations

from bot import endings, publications, repo_config
from bot.errors import GitHubRefused
from bot.models import Outcome
from bot.outbound import TextKind, neutralise
from bot.sessions.moves import End, Move
from bot.sessions.publishing.work import Work
from bot.store import gateway


async def open_pull(work: Work, branch: str) -> Move:
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


async def _pull_body(work: Work) -> str:
    services, turn = work.services, work.turn
    return publications.pull_body(
        turn,
        number=turn.number,
        files=turn.files_changed or (),
        verified=turn.verified or (),
        seconds=services.clock() - turn.created_at,
        cost=await gateway.turn_cost(services.store, turn.key),
        inert=neutralise.inert,
        block=neutralise.block,
    )
