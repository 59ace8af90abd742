"""Where GitHub does not sign what it is asked to commit: the one call that commits on a branch, and always signs.

It takes whole files of the plainest kind and one parent, and its commit is on the branch at once. So it is used for
nothing else, from exactly the place where the branch is to stand, and looked for before it is made a second time.
"""

from __future__ import annotations

import hashlib

from bot.errors import GitHubRefused
from bot.git.changes import ABSENT, Change
from bot.git.commits import Facts
from bot.git.errors import PushRefused, Refusal
from bot.git.push import Beginning
from bot.github.types import FileChanges, MadeCommit, TokenPurpose
from bot.sessions.publishing.work import Work
from bot.sessions.remote import remote_access
from bot.words import on_pushes

PLAIN = ("100644", ABSENT)
MAX_BYTES = 20 << 20
"""Of all contents: GitHub takes about twice as much, in base64 and with all the rest."""


async def commit(work: Work, branch: str, purpose: TokenPurpose, facts: Facts) -> str | None:
    """The commit at which the branch then stands; None where the change is not of the kind that this can carry."""
    changes = await _carried(work, facts)
    if changes is None:
        return None
    made = await found(work, branch, facts)
    if made is None:
        await _committed(work, branch, purpose, facts, changes)
        made = await found(work, branch, facts)
    await drop(work, mark(work, branch))
    if made is None or not made.verified:
        raise PushRefused(Refusal.UNVERIFIED, on_pushes.not_signed(made.reason if made else "unknown"))
    return made.sha


async def _committed(work: Work, branch: str, purpose: TokenPurpose, facts: Facts, changes: list[Change]) -> None:
    [parent] = facts.parents
    thread, commits = work.session.thread, work.services.outbound.commits
    new = work.turn.tip_sha is None and await stands(work, branch) is None
    if new:
        await (await _beginning(work, branch, purpose, facts)).run()
    try:
        files = await _files(work, changes)
        await commits.commit_on_branch(thread, purpose, branch, parent, message=facts.message, files=files)
    except GitHubRefused:
        if await found(work, branch, facts) is None:
            if new and await stands(work, branch) == parent:
                await commits.drop(thread, f"refs/heads/{branch}")
            await drop(work, mark(work, branch))
            raise


def mark(work: Work, branch: str) -> str:
    """Beside a branch that we have made and that holds nothing of ours yet: another's would look the same."""
    name = hashlib.sha256(branch.encode()).hexdigest()[:8]
    return f"refs/forgehand/signing/{work.turn.key.session}-{work.turn.key.n}-{name}"


async def is_begun(work: Work, branch: str, purpose: TokenPurpose, facts: Facts) -> bool:
    """Whether it was us who made the branch, where it has nothing on it yet."""
    return await (await _beginning(work, branch, purpose, facts)).has_been()


async def drop(work: Work, ref: str) -> None:
    try:
        await work.services.outbound.commits.drop(work.session.thread, ref)
    except GitHubRefused:  # it is no branch, and does no harm where it is
        return


async def _beginning(work: Work, branch: str, purpose: TokenPurpose, facts: Facts) -> Beginning:
    access = await remote_access(work.services, work.session.thread, purpose)
    [parent] = facts.parents
    return work.quarantine.beginning(access, branch, parent, mark=mark(work, branch), commit=work.commit)


async def found(work: Work, branch: str, facts: Facts) -> MadeCommit | None:
    """What an earlier try has made: our content, right on top of where the branch was."""
    tip = await stands(work, branch)
    if tip is None or (tip,) == facts.parents:
        return None
    reads = work.services.github.installation(work.session.installation_id)
    made = await reads.made_commit(work.session.thread.repo, tip)
    return made if made.tree == facts.tree and made.parents == facts.parents else None


async def stands(work: Work, branch: str) -> str | None:
    reads = work.services.github.installation(work.session.installation_id)
    return await reads.branch_sha(work.session.thread.repo, branch)


async def _carried(work: Work, facts: Facts) -> list[Change] | None:
    if len(facts.parents) != 1 or facts.parents[0] not in (work.turn.tip_sha, work.turn.base_sha):
        return None
    if work.turn.tip_sha not in (None, facts.parents[0]):
        return None
    changes = await work.quarantine.changes(facts.parents[0], facts.tree)
    plain = all(one.old_mode in PLAIN and one.new_mode in PLAIN for one in changes)
    return changes if plain and sum(one.size for one in changes) <= MAX_BYTES else None


async def _files(work: Work, changes: list[Change]) -> FileChanges:
    additions = {change.path: content async for change, content in work.quarantine.blobs(changes)}
    return FileChanges(additions, tuple(change.path for change in changes if change.is_deleted))
