"""Finds or opens the pull request as its repository wants it; pushes to its branch, and finds earlier pushes there."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from bot import repo_config
from bot.errors import GitHubRefused, NotFound
from bot.git.errors import GitRefusal, PushRefused, RefMissing
from bot.github.types import Pull, TokenPurpose
from bot.kinds.resolve import Merge
from bot.models import Outcome
from bot.outbound import TextKind, neutralise
from bot.proposal import descriptions
from bot.proposal.descriptions import Extras
from bot.sessions import starting_point
from bot.sessions.moves import End, Move
from bot.sessions.publish import signed_commits, turn_commit
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.starting_point import remote_access
from bot.store import posts, repos, spend
from bot.words import endings, on_pulls, on_pushes

DEEPER = 2000
"""Commits of history, if the usual number does not reach back to where the work began."""


async def label_and_request_review(work: TurnWork, number: int) -> str:
    """Set labels and reviewers, and return a note on missing labels, which GitHub would create. Safe to repeat."""
    config = repo_config.load(work.turn.config).pull
    reads = work.services.github.installation(work.session.installation_id)
    thread = replace(work.session.thread, number=number, is_pull=True)
    missing: list[str] = []
    with contextlib.suppress(GitHubRefused):  # the person is no collaborator, or labels may not be set: do without
        there = [label for label in config.labels if await reads.has_label(thread.repo, label)]
        if there:
            await work.services.outbound.label(thread, there)
        missing = [label for label in config.labels if label not in there]
        if config.request_review:
            await work.services.outbound.request_review(thread, work.done.requester)
    return on_pushes.labels_missing(missing) if missing else ""


async def make_ready(work: TurnWork) -> None:
    """End the draft if drafts last until the work is verified, and this push is."""
    config, number = repo_config.load(work.turn.config), work.session.pull_number
    if number is None or config.draft != "until_verified" or config.opens_draft(verified=work.is_verified):
        return
    thread = work.session.thread
    with contextlib.suppress(GitHubRefused):
        pull = await work.services.github.installation(work.session.installation_id).pull(thread.repo, number)
        if pull.draft:
            await work.services.outbound.make_ready(thread, pull)


async def open_pull(work: TurnWork, branch: str) -> Move:
    services, turn = work.services, work.turn
    assert turn.base is not None
    try:
        pull = await services.outbound.open_pull(
            work.session.thread,
            title=descriptions.title(work.done, descriptions.MAX_TITLE),
            body=await _pull_body(work),
            head=branch,
            base=turn.base,
            draft=repo_config.load(turn.config).opens_draft(verified=work.is_verified),
        )
    except GitHubRefused as error:
        words = services.outbound.text(TextKind.TITLE, error.message)
        return End(Outcome.PUSHED, endings.pull_not_opened(branch, words), work.columns)
    told = await label_and_request_review(work, pull.number)
    return End(Outcome.PULL_REQUEST, told, work.columns, {"pull_number": pull.number, "pull_url": pull.url})


async def _pull_body(work: TurnWork) -> str:
    services, turn, config = work.services, work.done, repo_config.load(work.turn.config)
    template = await _template(work) if config.pull.template else None
    return descriptions.pull_body(
        turn,
        number=turn.number,
        files=turn.files_changed or (),
        verified=work.checks,
        seconds=services.clock() - turn.created_at,
        cost=await spend.turn_cost(services.store, turn.key),
        extras=await _extras(work, template),
        inert=neutralise.inert,
        quoted=neutralise.quoted,
        block=neutralise.block,
    )


async def _extras(work: TurnWork, template: str | None) -> Extras:
    services, key, thread = work.services, work.done.key, work.session.thread
    config = repo_config.load(work.turn.config)
    state, comment = await services.board.folds.of(key), await posts.get(services.store, key)
    address = ""
    if comment is not None and comment.comment_id is not None:
        address = services.outbound.comment_address(thread, comment.comment_id)
    pages = services.settings.pages_url
    return Extras(
        work.report,
        template,
        closes=config.pull.closes and not thread.is_pull,
        command=services.settings.command,
        declared=config.has_checks,
        comment_url=address,
        session_url=f"{pages}/sessions/{key.session}" if pages else "",
        trial=(trial.command, trial.failed, trial.passed) if (trial := state.proof) else None,
        heard=tuple(state.heard),
        models=(switch.model, switch.fallback) if (switch := state.switch) else (),
    )


async def _template(work: TurnWork) -> str | None:
    """Read the template from the default branch; None if it cannot be read."""
    services, repo = work.services, work.session.thread.repo
    try:
        access = await remote_access(services, work.session.thread, TokenPurpose.READ_REPOSITORY)
        head = await services.cache.fetch(repo.id, access, f"refs/heads/{repo.default_branch}")
    except (RefMissing, GitHubRefused):
        return None
    found = descriptions.find_template(await services.cache.paths(repo.id, head))
    content = await services.cache.file(repo.id, head, found) if found else None
    return content.decode("utf-8", "replace") if content else None


async def pull_state(work: TurnWork) -> Pull | None:
    """Read the session's pull request; None if it does not exist (yet or any more)."""
    session = work.session
    if session.pull_number is None:
        return None
    reads = work.services.github.installation(session.installation_id)
    try:
        return await reads.pull(session.thread.repo, session.pull_number)
    except NotFound:
        return None


def in_the_way(work: TurnWork, pull: Pull | None) -> str | None:
    """Tell why the work has no place there any more; None if it has."""
    if pull is None:
        return None
    if pull.state != "open":
        return on_pulls.closed_before_push(pull.number, pull.merged)
    if work.turn.part(Merge).sha is not None and pull.base_branch != work.turn.base:
        return on_pulls.merged_the_wrong_base(pull.number, work.turn.base or "", pull.base_branch)
    return None


def words_on_new_base(work: TurnWork, pull: Pull | None) -> str:
    """Say that people have given the pull request another base since; empty if not."""
    if pull is None or work.turn.base in (None, pull.base_branch):
        return ""
    return on_pulls.retargeted(pull.number, work.turn.base or "", pull.base_branch)


class Guarded(PushRefused):
    """The owners have protected the branch since the turn was prepared; the text is one sentence for people."""

    def __init__(self, why: str) -> None:
        super().__init__(GitRefusal.PROTECTED, why)
        self.why = why


async def commit_names(work: TurnWork) -> tuple[str, ...]:
    """List the commit's possible names at the remote: its own, and that of its signed version."""
    made = await repos.signed_for(work.services.store, work.session.id, work.commit)
    return (work.commit,) if made is None else (work.commit, made)


async def push_commit(work: TurnWork, branch: str) -> str:
    """Push the work's commit, and return the branch's new tip. Raises PushRaced or PushRefused."""
    await _require_unguarded(work, branch)
    purpose = TokenPurpose.PUSH_WORKFLOWS if work.is_approved else TokenPurpose.PUSH
    if repo_config.load(work.turn.config).commits == "verified":
        return await signed_commits.push_signed(work, branch, purpose)
    access = await remote_access(work.services, work.session.thread, purpose)
    await work.quarantine.push(access, work.commit, branch, expect=work.turn.tip_sha)
    return work.commit


async def _require_unguarded(work: TurnWork, branch: str) -> None:
    """Ask again as when the turn began, which may be days ago if the work has waited for a yes."""
    session, tip = work.session, work.turn.tip_sha
    if tip is None or not starting_point.is_on_pull(work.done, session):
        return
    reads = work.services.github.installation(session.installation_id)
    if branch == (await reads.repo(session.thread.repo.full_name)).default_branch:
        why = endings.default_branch_is_head(branch)
    elif await reads.is_protected(session.thread.repo, branch):
        why = endings.head_is_protected(branch)
    else:
        return
    if await reads.branch_sha(session.thread.repo, branch) not in await commit_names(work):
        raise Guarded(why)


async def branch_head(work: TurnWork, branch: str) -> str | None:
    """Fetch the branch with enough of its history; None if it is gone."""
    return await _fetched(work, f"refs/heads/{branch}")


async def arrived_at_pull(work: TurnWork, pull: Pull) -> str | None:
    """Find the commit by which the pull request, open or not, already has the work; its branch may be gone."""
    at = await _fetched(work, f"refs/pull/{pull.number}/head")
    found = await landed_at(work, at) if at is not None else None
    return found[1] if found is not None else None


async def _fetched(work: TurnWork, ref: str) -> str | None:
    services, session = work.services, work.session
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    try:
        found = await services.cache.fetch(session.repo_id, access, ref)
        await work.quarantine.look_again()
        if not await _continues(work, found):
            found = await services.cache.fetch(session.repo_id, access, ref, depth=DEEPER)
            await work.quarantine.look_again()
    except RefMissing:
        return None
    return found


async def landed_at(work: TurnWork, at: str) -> tuple[TurnWork, str] | None:
    """Find the work and its commit on the branch, if a push had arrived, though its answer was lost."""
    for name in await commit_names(work):
        if await work.quarantine.continues(at, name):
            return work, name
    since = work.turn.tip_sha
    if since is None or not await _continues(work, at):
        return None
    made = await repos.signed_in(work.services.store, work.session.id)
    for one in await work.quarantine.made_at(since, at, int(work.turn.created_at), or_one_of=made):
        ours = await turn_commit.commit_on_top(work, one.tree, one.parent)
        if ours in (one.sha, made.get(one.sha)):
            return replace(work, commit=ours), one.sha
    return None


async def put_on_top(work: TurnWork, at: str) -> tuple[TurnWork, str] | None:
    """Put the work as one commit on top of `at`, and return its tree too; None after rewritten history, or if it
    does not fit."""
    if work.turn.part(Merge).sha is not None or not await _continues(work, at):
        return None
    base = await work.quarantine.merge_base(work.commit, at)
    tree = await work.quarantine.merged(base, at, work.commit) if base else None
    if tree is None:
        return None
    commit = await turn_commit.commit_on_top(work, tree, at)
    return replace(work, turn=replace(work.turn, base_sha=at, tip_sha=at), commit=commit), tree


async def _continues(work: TurnWork, at: str) -> bool:
    """Tell whether the commit where the work began is still part of it."""
    return work.turn.tip_sha is not None and await work.quarantine.continues(at, work.turn.tip_sha)
