"""Publishes work on a fork's code: into the fork if we may, else as suggestions and a patch."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import msgspec

from bot import repo_config
from bot.agent import diffs
from bot.agent.diffs import Suggested
from bot.authorisation import ServedBy
from bot.errors import GitHubRefused
from bot.git.errors import PushRaced, PushRefused
from bot.github.types import LineComment, Pull, ReviewDraft, TokenPurpose
from bot.kinds.shape import OnFork
from bot.models import Outcome, Repo, Thread
from bot.outbound import TextKind, neutralise
from bot.sessions import moves
from bot.sessions.moves import End, Move
from bot.sessions.publish import rescue, turn_commit
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.reviews import earlier
from bot.sessions.services import Services
from bot.sessions.starting_point import remote_access
from bot.store import approvals, sessions
from bot.store.approvals import ApprovalKind, ApprovalRequest
from bot.text import markup
from bot.words import endings, on_forks, on_pushes
from bot.words.on_forks import Patch

log = logging.getLogger(__name__)

PATCH_BYTES = 200 << 20
READ_BYTES = 4 << 20
MOST_SHOWN = 20_000


async def hand_over(work: TurnWork, pull: Pull, why: str) -> Move:
    """Hand the work over as suggestions and a patch, each found again by its marker.

    `why` tells what kept it from the fork's branch, if it had a chance."""
    services, turn = work.services, work.turn
    assert turn.base_sha is not None
    file = rescue.kept_patch(services, turn)
    await work.quarantine.mail(work.commit, file, max_bytes=PATCH_BYTES)
    await services.files.save(rescue.kept_name(file.name))
    made, many, url = 0, 0, ""
    if pull.head_sha != turn.base_sha:
        why = on_forks.moved(turn.base_sha, pull.head_sha)
    else:
        made, many, url = await _suggest(work, pull)
        # Ask whether it may become a branch here, with the fork's code below it: the answer must name that code.
        matter = {"sha": turn.base_sha, "commit": work.commit}
        question = ApprovalRequest(turn.key, ApprovalKind.FORK, matter, services.approval_deadline())
        await approvals.ask(services.store, question)
    await _show(work, pull, file)
    if made:
        outcome, words = Outcome.REVIEWED, f"{why} {on_forks.suggested(made, many, url)}".strip()
    else:
        outcome, words = Outcome.ANSWERED, on_forks.patched(why or on_forks.cannot_push())
    given = msgspec.structs.replace(turn.part(OnFork), patch=file.name)
    return End(outcome, words, {"kept": await rescue.keep_bundle(work)}, parts=(given,))


async def _suggest(work: TurnWork, pull: Pull) -> tuple[int, int, str]:
    """Return how many suggestions we posted, for how many changes, and the review's address."""
    services, turn = work.services, work.turn
    fitting, many = await _fitting(work, pull)
    bodies = [markup.code(one.text, "suggestion") if one.lines else "```suggestion\n```" for one in fitting]
    comments = tuple(
        LineComment(one.path, one.last, one.first if one.first != one.last else None, body)
        for one, body in zip(fitting, bodies, strict=True)
        if services.outbound.text(TextKind.COMMENT, body) == body  # a changed one would apply as nonsense
    )
    if not comments:
        return 0, many, ""
    marker = on_forks.review_marker(turn.key.session, turn.key.n)
    body = f"{marker}\n{on_forks.review_body(len(comments), many, turn.base_sha or '')}"
    draft = ReviewDraft(turn.base_sha, "COMMENT", body, comments)
    try:
        review = await services.outbound.review(_thread(work), draft, marker)
    except GitHubRefused as refused:  # GitHub may show less of the diff than we read; the patch remains
        log.warning("suggestions were not taken", extra={"turn": turn.key.workflow_id, "error": refused.message})
        return 0, many, ""
    return len(comments), many, f"{pull.url}#pullrequestreview-{review}"


async def _fitting(work: TurnWork, pull: Pull) -> tuple[list[Suggested], int]:
    turn = work.turn
    assert turn.base_sha is not None
    patch = await work.quarantine.patch(turn.base_sha, work.commit, READ_BYTES)
    if patch.cut:
        return [], 1
    text = patch.content.decode("utf-8", "replace")
    if "\ufffd" in text:
        return [], 1
    shown = await earlier.shown(work.services, turn, pull)
    return await asyncio.to_thread(diffs.suggestions_for, text, shown)


async def _show(work: TurnWork, pull: Pull, file: Path) -> None:
    services, turn = work.services, work.turn
    fork = turn.part(OnFork).fork
    assert fork is not None and turn.base_sha is not None
    public = services.settings.pages_url
    size = (await asyncio.to_thread(file.stat)).st_size
    patch = Patch(
        number=pull.number,
        fork=fork,
        sha=turn.base_sha,
        block=await asyncio.to_thread(_block, services, file, size),
        kilobytes=-(-size // 1024),
        page=f"{public}/sessions/{turn.key.session}/patch/{turn.key.n}" if public else "",
        command=f"forgehand sessions patch {turn.key.session} --turn {turn.key.n}",
    )
    marker = on_forks.patch_marker(turn.key.session, turn.key.n)
    await services.outbound.comment(_thread(work), f"{marker}\n{on_forks.patch_comment(patch)}", marker)


def _block(services: Services, file: Path, size: int) -> str | None:
    """Show it byte for byte or not at all: otherwise it would not apply."""
    if size > MOST_SHOWN:
        return None
    try:
        text = file.read_bytes().decode()
    except UnicodeError:
        return None
    block = neutralise.block(text.removesuffix("\n"), "diff")
    is_whole = text.removesuffix("\n") in block and services.outbound.text(TextKind.COMMENT, block) == block
    return block if is_whole and "\r" not in text else None


def _thread(work: TurnWork) -> Thread:
    return replace(work.session.thread, number=work.turn.number, is_pull=True)


async def publish(work: TurnWork, tree: str) -> Move:
    services, turn = work.services, work.turn
    judged = await turn_commit.judge(work, tree)
    if (held := judged.held or await turn_commit.permission_lost(work)) is not None:
        end = End(turn.outcome or Outcome.REFUSED, turn.detail or held, parts=judged.parts)
        return await rescue.keep_on_host(work, end)
    if turn.outcome is not None:
        return await rescue.keep_on_host(work, End(turn.outcome, turn.detail or ""))
    if not await sessions.begin_push(services.store, turn.key):
        return moves.stopped(await sessions.turn(services.store, turn.key))
    pull = await services.github.installation(work.session.installation_id).pull(work.session.thread.repo, turn.number)
    if pull.state != "open":
        return await rescue.keep_on_host(work, End(Outcome.STOPPED, endings.stopped_by(endings.CLOSED)))
    pushed, why_not = await _push_to_fork(replace(work, report=judged.report), pull)
    return pushed or await hand_over(work, pull, why_not)


async def _push_to_fork(work: TurnWork, pull: Pull) -> tuple[Move | None, str]:
    """Push to the fork's own branch, or tell why not (without words if it had no chance)."""
    services, turn = work.services, work.turn
    home = await _home(work, pull)
    if home is None:
        return None, ""
    is_default, reads = pull.head_branch == home.repo.default_branch, services.github.installation(home.installation)
    if is_default or await reads.is_protected(home.repo, pull.head_branch):
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
        return None, on_forks.push_refused(markup.fenced(services.outbound.text(TextKind.COMMENT, words)))
    told = (on_forks.pushed(fork, work.commit), on_pushes.look_closely(work.report))
    return End(Outcome.PUSHED, "\n\n".join(filter(None, told)), {"commit_sha": work.commit}), ""


async def _home(work: TurnWork, pull: Pull) -> Thread | None:
    """Return the fork if the App is installed on it for a served account, and the requester may write there.

    "Allow edits by maintainers" does not help: GitHub grants that to people, not to Apps."""
    services, turn = work.services, work.turn
    if pull.head_repo is None:
        return None
    app, accounts = await services.github.identity(), services.settings.github.accounts
    if not ServedBy(app.bot_id, app.owner, accounts).serves(pull.head_repo.partition("/")[0]):
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
