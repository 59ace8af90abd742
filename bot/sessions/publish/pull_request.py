"""Finds or opens the pull request as its repository wants it, labels it, and knows how it stands before a push."""

from __future__ import annotations

from dataclasses import replace

from bot import repo_config
from bot.errors import GitHubRefused, NotFound
from bot.git.errors import RefMissing
from bot.github.types import Pull, TokenPurpose
from bot.kinds.resolve import Merge
from bot.models import Outcome, Thread
from bot.outbound import TextKind, neutralise
from bot.proposal import descriptions, pull_template
from bot.proposal.descriptions import Extras
from bot.sessions.moves import End, Move
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.starting_point import remote_access
from bot.store import spend
from bot.words import endings, on_pulls, on_pushes


async def dress(work: TurnWork, number: int) -> str:
    """Done twice it is done once. What GitHub does not take of it is no reason to fail; a missing label is told."""
    config = repo_config.load(work.turn.config).pull
    thread = replace(work.session.thread, number=number, is_pull=True)
    missing: list[str] = []
    try:
        missing = await _labelled(work, thread, config.labels)
        if config.request_review:
            await work.services.outbound.request_review(thread, work.done.requester)
    except GitHubRefused:  # the person is no collaborator by name, or labels may not be set: the work is there
        pass
    return on_pushes.labels_missing(missing) if missing else ""


async def make_ready(work: TurnWork) -> None:
    """Ends the draft where drafts last until the work is verified, and this push is."""
    config, number = repo_config.load(work.turn.config), work.session.pull_number
    if number is None or config.draft != "until_verified" or config.opens_draft(verified=work.is_verified):
        return
    thread = work.session.thread
    try:
        pull = await work.services.github.installation(work.session.installation_id).pull(thread.repo, number)
        if pull.draft:
            await work.services.outbound.make_ready(thread, pull)
    except GitHubRefused:
        return


async def _labelled(work: TurnWork, thread: Thread, wanted: tuple[str, ...]) -> list[str]:
    """Returns the labels that the repository does not have, which GitHub would make."""
    reads = work.services.github.installation(work.session.installation_id)
    there = [label for label in wanted if await reads.has_label(thread.repo, label)]
    if there:
        await work.services.outbound.label(thread, there)
    return [label for label in wanted if label not in there]


async def open_pull(work: TurnWork, branch: str) -> Move:
    services, turn = work.services, work.turn
    assert turn.base is not None
    try:
        pull = await services.outbound.open_pull(
            work.session.thread,
            title=descriptions.pull_title(work.done),
            body=await _pull_body(work),
            head=branch,
            base=turn.base,
            draft=repo_config.load(turn.config).opens_draft(verified=work.is_verified),
        )
    except GitHubRefused as error:
        words = services.outbound.text(TextKind.TITLE, error.message)
        return End(Outcome.PUSHED, endings.pull_not_opened(branch, words), work.columns)
    told = await dress(work, pull.number)
    return End(Outcome.PULL_REQUEST, told, work.columns, {"pull_number": pull.number, "pull_url": pull.url})


async def _pull_body(work: TurnWork) -> str:
    services, turn, config = work.services, work.done, repo_config.load(work.turn.config)
    template = await _template(work) if config.pull.template else None
    closes = config.pull.closes and not work.session.thread.is_pull
    return descriptions.pull_body(
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


async def _template(work: TurnWork) -> str | None:
    """Reads it from the default branch; one that cannot be read is as good as none."""
    services, repo = work.services, work.session.thread.repo
    try:
        access = await remote_access(services, work.session.thread, TokenPurpose.READ_REPOSITORY)
        head = await services.cache.fetch(repo.id, access, f"refs/heads/{repo.default_branch}")
    except (RefMissing, GitHubRefused):
        return None
    found = pull_template.find(await services.cache.paths(repo.id, head))
    content = await services.cache.file(repo.id, head, found) if found else None
    return content.decode("utf-8", "replace") if content else None


async def pull_state(work: TurnWork) -> Pull | None:
    """None where there is none yet, or none any more."""
    session = work.session
    if session.pull_number is None:
        return None
    reads = work.services.github.installation(session.installation_id)
    try:
        return await reads.pull(session.thread.repo, session.pull_number)
    except NotFound:
        return None


def in_the_way(work: TurnWork, pull: Pull | None) -> str | None:
    """Says why the work has no place there any more, or None."""
    if pull is None:
        return None
    if pull.state != "open":
        return on_pulls.closed_before_push(pull.number, pull.merged)
    if work.turn.part(Merge).sha is not None and pull.base_branch != work.turn.base:
        return on_pulls.merged_the_wrong_base(pull.number, work.turn.base or "", pull.base_branch)
    return None


def beside_it(work: TurnWork, pull: Pull | None) -> str:
    if pull is None or work.turn.base in (None, pull.base_branch):
        return ""
    return on_pulls.retargeted(pull.number, work.turn.base or "", pull.base_branch)
