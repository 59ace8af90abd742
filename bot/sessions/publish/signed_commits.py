"""`commits: verified`: GitHub makes and signs commits with the same trees, and then the branch moves to them.

Our commits travel to GitHub by a ref that is no branch. The store notes each signed commit before the next step, so a
repetition goes on from there. People see only the branch, and it moves once.

If GitHub does not sign such a commit, one call remains that commits on a branch and always signs. It takes whole files
of the plainest kind and one parent, and its commit is on the branch at once. So we use it only in that case, from
exactly the place where the branch must stand, and look for its commit before we repeat it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence

from bot.errors import GitHubRefused
from bot.git import remote
from bot.git.commits import Facts
from bot.git.errors import GitRefusal, PushRaced, PushRefused
from bot.git.inspection import ABSENT, Change
from bot.git.remote import Beginning
from bot.github.types import FileChanges, MadeCommit, TokenPurpose
from bot.sessions.publish import rescue
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.starting_point import remote_access
from bot.store import repos
from bot.words import on_pushes

PLAIN = ("100644", ABSENT)
MAX_BYTES = 20 << 20
"""Limit for all contents: GitHub takes about twice as much, in base64 and with all the rest."""


async def _commit_on_branch(work: TurnWork, branch: str, purpose: TokenPurpose, facts: Facts) -> str | None:
    """Commit by the call that always signs, and return the branch's new tip; None if it cannot carry the change."""
    changes = await _carried(work, facts)
    if changes is None:
        return None
    made = await _found_on_branch(work, branch, facts)
    if made is None:
        await _make_on_branch(work, branch, purpose, facts, changes)
        made = await _found_on_branch(work, branch, facts)
    await _drop_ref(work, _branch_mark(work, branch))
    if made is None or not made.verified:
        raise PushRefused(GitRefusal.UNVERIFIED, on_pushes.not_signed(made.reason if made else "unknown"))
    await repos.put_signed(work.services.store, work.session.id, work.commit, made.sha)
    return made.sha


async def _make_on_branch(
    work: TurnWork, branch: str, purpose: TokenPurpose, facts: Facts, changes: list[Change]
) -> None:
    [parent] = facts.parents
    thread, commits = work.session.thread, work.services.outbound.commits
    new = work.turn.tip_sha is None and await _branch_tip(work, branch) is None
    if new:
        await (await _beginning(work, branch, purpose, facts)).run()
    try:
        additions = {change.path: content async for change, content in work.quarantine.blobs(changes)}
        files = FileChanges(additions, tuple(change.path for change in changes if change.is_deleted))
        await commits.commit_on_branch(thread, purpose, branch, parent, message=facts.message, files=files)
    except GitHubRefused:
        if await _found_on_branch(work, branch, facts) is None:
            if new and await _branch_tip(work, branch) == parent:
                await commits.drop(thread, f"refs/heads/{branch}")
            await _drop_ref(work, _branch_mark(work, branch))
            raise


def _branch_mark(work: TurnWork, branch: str) -> str:
    """Name the mark of a branch that we have made and that is still empty: another's would look the same."""
    return f"{_temporary(work)}-{hashlib.sha256(branch.encode()).hexdigest()[:8]}"


async def _drop_ref(work: TurnWork, ref: str) -> None:
    with contextlib.suppress(GitHubRefused):  # it is no branch, and does no harm
        await work.services.outbound.commits.drop(work.session.thread, ref)


async def _beginning(work: TurnWork, branch: str, purpose: TokenPurpose, facts: Facts) -> Beginning:
    access = await remote_access(work.services, work.session.thread, purpose)
    [parent] = facts.parents
    return work.quarantine.beginning(access, branch, parent, mark=_branch_mark(work, branch), commit=work.commit)


async def _found_on_branch(work: TurnWork, branch: str, facts: Facts) -> MadeCommit | None:
    """Find the commit of an earlier try: our content, right on top of the branch's old tip."""
    tip = await _branch_tip(work, branch)
    if tip is None or (tip,) == facts.parents:
        return None
    reads = work.services.github.installation(work.session.installation_id)
    made = await reads.made_commit(work.session.thread.repo, tip)
    return made if made.tree == facts.tree and made.parents == facts.parents else None


async def _branch_tip(work: TurnWork, branch: str) -> str | None:
    reads = work.services.github.installation(work.session.installation_id)
    return await reads.branch_sha(work.session.thread.repo, branch)


async def _carried(work: TurnWork, facts: Facts) -> list[Change] | None:
    if len(facts.parents) != 1 or facts.parents[0] not in (work.turn.tip_sha, work.turn.base_sha):
        return None
    if work.turn.tip_sha not in (None, facts.parents[0]):
        return None
    changes = await work.quarantine.changes(facts.parents[0], facts.tree)
    plain = all(one.old_mode in PLAIN and one.new_mode in PLAIN for one in changes)
    return changes if plain and sum(one.size for one in changes) <= MAX_BYTES else None


class NotSigned(PushRefused):
    """GitHub has made the commit, but has not signed it."""


async def push_signed(work: TurnWork, branch: str, purpose: TokenPurpose) -> str:
    """Push a signed commit, and return the branch's new tip. Raises PushRefused, also if GitHub does not sign."""
    try:
        known = await repos.signed_for(work.services.store, work.session.id, work.commit)
        if known is None or await _branch_tip(work, branch) != known:
            known = await _move_branch(work, branch, purpose)
    except (PushRefused, PushRaced):
        for ref in (_temporary(work), _branch_mark(work, branch)):
            await _drop_ref(work, ref)
        raise
    await _drop_ref(work, _temporary(work))
    return known


def _temporary(work: TurnWork) -> str:
    """Name the ref that carries our commit to GitHub, only for the time of the push."""
    return f"refs/forgehand/signing/{work.turn.key.session}-{work.turn.key.n}"


async def _move_branch(work: TurnWork, branch: str, purpose: TokenPurpose) -> str:
    expected, facts = work.turn.tip_sha, await work.quarantine.facts(work.commit)
    if (actual := await _branch_tip(work, branch)) != expected:
        return await _begun(work, branch, purpose, facts, actual)
    access = await remote_access(work.services, work.session.thread, purpose)
    if expected is None:
        await work.quarantine.require_free(access, branch)
    await work.quarantine.push(access, work.commit, _temporary(work), expect=None)
    try:
        sha = await _signed(work, purpose)
    except NotSigned:
        if (made := await _commit_on_branch(work, branch, purpose, facts)) is None:
            raise
        return made
    await _set(work, branch, sha, purpose)
    return sha


async def _begun(work: TurnWork, branch: str, purpose: TokenPurpose, facts: Facts, actual: str | None) -> str:
    """Go on from an earlier try that committed on the branch directly; raises PushRaced if it was somebody else."""
    if work.turn.tip_sha is None and (actual,) == facts.parents:  # still empty: ours, or another's at the same place
        is_ours = await (await _beginning(work, branch, purpose, facts)).has_been()
    else:
        is_ours = await _found_on_branch(work, branch, facts) is not None
    made = await _commit_on_branch(work, branch, purpose, facts) if is_ours else None
    if made is None:
        raise PushRaced(branch, actual)
    return made


async def _set(work: TurnWork, branch: str, sha: str, purpose: TokenPurpose) -> None:
    expected = work.turn.tip_sha
    try:
        await work.services.outbound.commits.set_branch(work.session.thread, purpose, branch, sha, new=expected is None)
    except GitHubRefused as refused:
        if (actual := await _branch_tip(work, branch)) not in (sha, expected):
            raise PushRaced(branch, actual) from None
        if actual != sha:
            raise remote.refusal(refused.message, "") from None


async def _signed(work: TurnWork, purpose: TokenPurpose) -> str:
    """Let GitHub make the commit, and those of ours below it that are on no branch yet."""
    store, session = work.services.store, work.session.id
    saved = await rescue.saved_commits(store, session)
    chain = [await work.quarantine.facts(work.commit)]
    while len(chain[0].parents) == 1 and chain[0].parents[0] in saved:
        chain.insert(0, await work.quarantine.facts(chain[0].parents[0]))
    for facts in chain:
        if await repos.signed_for(store, session, facts.sha) is None:
            parents = [await repos.signed_for(store, session, one) or one for one in facts.parents]
            made = await _made(work, purpose, facts, parents)
            await repos.put_signed(store, session, facts.sha, made.sha)
    sha = await repos.signed_for(store, session, work.commit)
    assert sha is not None
    return sha


async def _made(work: TurnWork, purpose: TokenPurpose, facts: Facts, parents: Sequence[str]) -> MadeCommit:
    """Let GitHub make one commit; raises PushRefused without a valid signature, or if its content is not ours."""
    thread, commits = work.session.thread, work.services.outbound.commits
    try:
        made = await commits.make(thread, purpose, message=facts.message, tree=facts.tree, parents=parents)
    except GitHubRefused as refused:
        if refused.status not in (404, 422) or not facts.parents:
            raise
        changes = await work.quarantine.changes(facts.parents[0], facts.tree)
        base = (await work.quarantine.facts(facts.parents[0])).tree
        tree = await commits.make_tree(thread, purpose, base, changes)
        made = await commits.make(thread, purpose, message=facts.message, tree=tree, parents=parents)
    if made.tree != facts.tree:
        raise PushRefused(GitRefusal.UNVERIFIED, on_pushes.another_tree(facts.tree, made.tree))
    if not made.verified:
        raise NotSigned(GitRefusal.UNVERIFIED, on_pushes.not_signed(made.reason))
    return made
