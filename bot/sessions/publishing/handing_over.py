"""Work that may not be pushed, given to people: as suggestions at lines of the diff, as a patch, and as a question."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import msgspec

from bot import suggestions
from bot.errors import GitHubRefused
from bot.github.types import LineComment, Pull, ReviewDraft
from bot.kinds.parts import OnFork
from bot.models import Outcome, Thread
from bot.outbound import TextKind, neutralise
from bot.sessions import keeping
from bot.sessions.moves import End, Move
from bot.sessions.publishing import saving
from bot.sessions.publishing.work import Work
from bot.sessions.reviews import earlier
from bot.sessions.services import Services
from bot.store import approvals
from bot.store.approvals import Kind, Question
from bot.suggestions import Suggested
from bot.words import on_forks, quoting
from bot.words.on_forks import Patch

log = logging.getLogger(__name__)

PATCH_BYTES = 200 << 20
READ_BYTES = 4 << 20
MOST_SHOWN = 20_000
"""Letters of a patch that has its place in a comment."""
DAYS = 7


async def hand_over(work: Work, pull: Pull, why: str) -> Move:
    """Each part is found again by its marker; `why`: what kept it from the fork's branch, where there was a chance."""
    turn = work.turn
    assert turn.base_sha is not None
    file = await _kept(work)
    made, many, url = 0, 0, ""
    if pull.head_sha != turn.base_sha:
        why = on_forks.moved(turn.base_sha, pull.head_sha)
    else:
        made, many, url = await _suggest(work, pull)
        await _ask(work)
    await _show(work, pull, file)
    if made:
        outcome, words = Outcome.REVIEWED, f"{why} {on_forks.suggested(made, many, url)}".strip()
    else:
        outcome, words = Outcome.ANSWERED, on_forks.patched(why or on_forks.cannot_push())
    given = msgspec.structs.replace(turn.part(OnFork), patch=file.name)
    return End(outcome, words, {"kept": await saving.bundle(work)}, parts=(given,))


async def _kept(work: Work) -> Path:
    file = keeping.patch(work.services, work.turn)
    await work.quarantine.mail(work.commit, file, max_bytes=PATCH_BYTES)
    return file


async def _suggest(work: Work, pull: Pull) -> tuple[int, int, str]:
    """How many suggestions stand there, of how many changes, and where."""
    services, turn = work.services, work.turn
    fitting, many = await _fitting(work, pull)
    comments = tuple(filter(None, (_comment(services, one) for one in fitting)))
    if not comments:
        return 0, many, ""
    marker = on_forks.review_marker(turn.key.session, turn.key.n)
    body = f"{marker}\n{on_forks.review_body(len(comments), many, turn.base_sha or '')}"
    try:
        review = await services.outbound.review(
            _thread(work), ReviewDraft(turn.base_sha, "COMMENT", body, comments), marker
        )
    except GitHubRefused as refused:  # it may show less of the diff than we read; there is the patch
        log.warning("suggestions were not taken", extra={"turn": turn.key.workflow_id, "error": refused.message})
        return 0, many, ""
    return len(comments), many, f"{pull.url}#pullrequestreview-{review}"


async def _fitting(work: Work, pull: Pull) -> tuple[list[Suggested], int]:
    turn = work.turn
    assert turn.base_sha is not None
    patch = await work.quarantine.patch(turn.base_sha, work.commit, READ_BYTES)
    if len(patch) >= READ_BYTES:  # cut
        return [], 1
    text = patch.decode("utf-8", "replace")
    if "\ufffd" in text:
        return [], 1
    shown = await earlier.shown(work.services, turn, pull)
    return await asyncio.to_thread(suggestions.fitting, text, shown)


def _comment(services: Services, one: Suggested) -> LineComment | None:
    """None where it would not leave as it is: what was changed on the way would apply as nonsense."""
    body = quoting.code(one.text, "suggestion") if one.lines else "```suggestion\n```"
    if services.outbound.text(TextKind.COMMENT, body) != body:
        return None
    return LineComment(one.path, one.last, one.first if one.first != one.last else None, body)


async def _ask(work: Work) -> None:
    """Whether it may become a branch here, with the fork's code below it: answered by that code's name alone."""
    services, turn = work.services, work.turn
    matter = {"sha": turn.base_sha, "commit": work.commit}
    expires = services.clock() + DAYS * 24 * 3600
    await approvals.ask(services.store, Question(turn.key, Kind.FORK, matter, expires))


async def _show(work: Work, pull: Pull, file: Path) -> None:
    services, turn = work.services, work.turn
    fork = turn.part(OnFork).fork
    assert fork is not None and turn.base_sha is not None
    public = services.settings.public_url
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
    """Only as it is, byte for byte: else it would not apply."""
    if size > MOST_SHOWN:
        return None
    try:
        text = file.read_bytes().decode()
    except UnicodeError:
        return None
    block = neutralise.block(text.removesuffix("\n"), "diff")
    is_whole = text.removesuffix("\n") in block and services.outbound.text(TextKind.COMMENT, block) == block
    return block if is_whole and "\r" not in text else None


def _thread(work: Work) -> Thread:
    return replace(work.session.thread, number=work.turn.number, is_pull=True)
