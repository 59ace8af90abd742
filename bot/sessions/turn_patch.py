"""Keeps what a turn has changed as a patch for its page: at each checkpoint, and when its work came home.

A stored patch is redacted. So it may be shown to everyone who may see the page, and its facts say whether it is still
exactly the work."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bot.errors import BotError
from bot.git.inspection import Change
from bot.git.quarantine import Quarantine
from bot.kinds.shape import SecretFound
from bot.models import SessionId, TurnKey
from bot.outbound import patches
from bot.outbound.redact import Redactor
from bot.proposal import push_policy
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.files import KeptFiles
from bot.store.sessions import Turn

log = logging.getLogger(__name__)

FOLDER = "changes"
MOST_BYTES = 512 << 10
"""The redactor takes half a second for so much, beside the event loop."""
SMALL_BYTES = 32 << 10
MOST_SMALL = 400
"""If the whole patch is too long, it shows this many files of at most SMALL_BYTES."""
MOST_SCANNED = 8 << 20


class PatchFacts(msgspec.Struct, frozen=True):
    """`is_clean` decides who may download the work."""

    at: float
    """When the work was as the patch shows it."""
    base: str
    tree: str
    is_home: bool = False
    """False for a checkpoint."""
    is_exact: bool = False
    """All of the work, and nothing redacted: it applies."""
    is_clean: bool = False
    """It is exact, and every changed byte was searched for secrets: a binary file stands compressed in the patch."""


@dataclass(frozen=True)
class TurnPatch:
    facts: PatchFacts
    text: str


def is_withheld(turns: Iterable[Turn], n: int) -> bool:
    """Decide whether turn `n` may hold a secret that only GitHub has recognised, because it or an earlier one did."""
    return any(one.part(SecretFound).by == "github" for one in turns if one.n <= n)


def name_of(key: TurnKey, *, whole_session: bool = False) -> str:
    return f"{FOLDER}/{key.session}-{key.n:06}{'-all' if whole_session else ''}.patch"


async def names(files: KeptFiles, session: SessionId) -> list[str]:
    return await files.names(f"{FOLDER}/{session}-")


async def read(files: KeptFiles, key: TurnKey, *, whole_session: bool = False) -> TurnPatch | None:
    path = await files.fetch(name_of(key, whole_session=whole_session))
    return await asyncio.to_thread(_read, path) if path is not None else None


async def forget(services: Services, turn: Turn) -> None:
    await services.files.forget(name_of(turn.key), name_of(turn.key, whole_session=True))


async def save(
    services: Services, turn: Turn, quarantine: Quarantine, tree: str, *, at: float, is_home: bool = False
) -> None:
    """Save the work's patch, and for a later turn also that of its session so far; a failure costs the page only."""
    assert turn.base_sha is not None
    try:
        await _save(services, name_of(turn.key), quarantine, PatchFacts(at, turn.base_sha, tree, is_home))
        first = await _first_base(services, turn, quarantine) if is_home else None
        if first is not None:
            whole = name_of(turn.key, whole_session=True)
            await _save(services, whole, quarantine, PatchFacts(at, first, tree, is_home))
    except (BotError, OSError, ValueError) as error:
        log.warning("no patch for the page", extra={"turn": turn.key.workflow_id, "error": str(error)})


async def _first_base(services: Services, turn: Turn, quarantine: Quarantine) -> str | None:
    """Find where the session began, if this turn builds on that."""
    assert turn.base_sha is not None
    turns = await sessions.turns_of(services.store, turn.key.session)
    bases = [one.base_sha for one in turns if one.n < turn.n and one.traits.changes and one.base_sha is not None]
    for base in dict.fromkeys(bases):
        if base != turn.base_sha and await quarantine.continues(turn.base_sha, base):
            return base
    return None


async def _save(services: Services, name: str, quarantine: Quarantine, facts: PatchFacts) -> None:
    patch = await quarantine.patch(facts.base, facts.tree, MOST_BYTES)
    changes = await quarantine.changes(facts.base, facts.tree) if patch.cut or facts.is_home else []
    if patch.cut:
        small = [one.path for one in changes if one.size <= SMALL_BYTES and not one.binary][:MOST_SMALL]
        patch = await quarantine.patch(facts.base, facts.tree, MOST_BYTES, paths=small) if small else patch
        whole = False
    else:
        whole = True
    raw = patch.content.decode("utf-8", "replace")
    text = await asyncio.to_thread(patches.redacted, services.redactor, raw)
    is_exact = whole and text.encode() == patch.content
    is_clean = is_exact and await _is_clean(services.redactor, quarantine, changes)
    facts = msgspec.structs.replace(facts, is_exact=is_exact, is_clean=is_clean)
    await asyncio.to_thread(_write, services.files.path(name), facts, text)
    await services.files.save(name)


async def _is_clean(redactor: Redactor, quarantine: Quarantine, changes: Sequence[Change]) -> bool:
    """Search what the patch does not show as text; the redactor has read the rest."""
    unread = [one for one in changes if one.binary]
    if not unread:
        return True
    if sum(one.size for one in unread) > MOST_SCANNED:
        return False
    return not await push_policy.paths_with_secrets(quarantine, unread, redactor)


def _write(path: Path, facts: PatchFacts, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    arriving = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.partial")
    arriving.touch(mode=0o600)
    arriving.write_bytes(msgspec.json.encode(facts) + b"\n" + text.encode())
    arriving.replace(path)


def _read(path: Path) -> TurnPatch | None:
    try:
        head, _, text = path.read_bytes().partition(b"\n")
        return TurnPatch(msgspec.json.decode(head, type=PatchFacts), text.decode("utf-8", "replace"))
    except (OSError, msgspec.MsgspecError):
        return None
