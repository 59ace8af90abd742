"""How a commit gets onto its branch: pushed as it is, or as what GitHub has made and signed of it."""

from __future__ import annotations

from bot import repo_config
from bot.github.types import Purpose
from bot.sessions.publishing import signing
from bot.sessions.publishing.work import Work
from bot.sessions.remote import remote_access
from bot.store import signed


async def names(work: Work) -> tuple[str, ...]:
    """By which the commit may be found at the remote: its own, and that of what was made and signed of it."""
    made = await signed.of(work.services.store, work.session.id, work.commit)
    return (work.commit,) if made is None else (work.commit, made)


async def land(work: Work, branch: str) -> str:
    """The commit at which the branch then stands; PushRaced or PushRefused where it does not."""
    purpose = Purpose.PUSH_WORKFLOWS if work.let_go else Purpose.PUSH
    if repo_config.load(work.turn.config).commits == "verified":
        return await signing.land(work, branch, purpose)
    access = await remote_access(work.services, work.session.thread, purpose)
    await work.quarantine.push(access, work.commit, branch, expect=work.turn.tip_sha)
    return work.commit
