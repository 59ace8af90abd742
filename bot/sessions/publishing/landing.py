"""How a commit gets onto its branch: pushed as it is, or as what GitHub has made and signed of it."""

from __future__ import annotations

from bot import repo_config
from bot.git.errors import PushRefused, Refusal
from bot.github.types import TokenPurpose
from bot.sessions import pinning
from bot.sessions.publishing import signing
from bot.sessions.publishing.work import Work
from bot.sessions.remote import remote_access
from bot.store import signed
from bot.words import endings


class Guarded(PushRefused):
    """By its owners, since the turn was prepared; the text is one sentence for people."""

    def __init__(self, why: str) -> None:
        super().__init__(Refusal.PROTECTED, why)
        self.why = why


async def names(work: Work) -> tuple[str, ...]:
    """By which the commit may be found at the remote: its own, and that of what was made and signed of it."""
    made = await signed.of(work.services.store, work.session.id, work.commit)
    return (work.commit,) if made is None else (work.commit, made)


async def land(work: Work, branch: str) -> str:
    """The commit at which the branch then stands; PushRaced or PushRefused where it does not."""
    await _require_unguarded(work, branch)
    purpose = TokenPurpose.PUSH_WORKFLOWS if work.let_go else TokenPurpose.PUSH
    if repo_config.load(work.turn.config).commits == "verified":
        return await signing.land(work, branch, purpose)
    access = await remote_access(work.services, work.session.thread, purpose)
    await work.quarantine.push(access, work.commit, branch, expect=work.turn.tip_sha)
    return work.commit


async def _require_unguarded(work: Work, branch: str) -> None:
    """As at the turn's beginning, which may be days ago where the work has waited for a yes."""
    session, tip = work.session, work.turn.tip_sha
    if tip is None or not pinning.is_on_pull(work.done, session):
        return
    reads = work.services.github.installation(session.installation_id)
    why = None
    if branch == (await reads.repo(session.thread.repo.full_name)).default_branch:
        why = endings.default_branch_is_head(branch)
    elif await reads.is_protected(session.thread.repo, branch):
        why = endings.head_is_protected(branch)
    if why is not None and await reads.branch_sha(session.thread.repo, branch) not in await names(work):
        raise Guarded(why)
