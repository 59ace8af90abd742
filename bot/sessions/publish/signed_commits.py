"""`commits: verified`: the same trees as commits that GitHub makes and signs, on the branch by a ref that is moved.

Our commits travel to GitHub by a ref that is no branch. Whatever is made there of them is noted before the next step,
so that a repetition goes on where it was; the only thing that anybody sees is the branch, and it moves once.

Where GitHub does not sign what it is asked to commit, there is one call that commits on a branch, and always signs. It
takes whole files of the plainest kind and one parent, and its commit is on the branch at once. So it is used for
nothing else, from exactly the place where the branch is to stand, and looked for before it is made a second time.
"""

from __future__ import annotations

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
"""Of all contents: GitHub takes about twice as much, in base64 and with all the rest."""


async def commit_on_branch(work: TurnWork, branch: str, purpose: TokenPurpose, facts: Facts) -> str | None:
    """The commit at which the branch then stands; None where the change is not of the kind that this can carry."""
    changes = await _carried(work, facts)
    if changes is None:
        return None
    made = await found_on_branch(work, branch, facts)
    if made is None:
        await _committed(work, branch, purpose, facts, changes)
        made = await found_on_branch(work, branch, facts)
    await drop_ref(work, branch_mark(work, branch))
    if made is None or not made.verified:
        raise PushRefused(GitRefusal.UNVERIFIED, on_pushes.not_signed(made.reason if made else "unknown"))
    return made.sha


async def _committed(work: TurnWork, branch: str, purpose: TokenPurpose, facts: Facts, changes: list[Change]) -> None:
    [parent] = facts.parents
    thread, commits = work.session.thread, work.services.outbound.commits
    new = work.turn.tip_sha is None and await branch_stands(work, branch) is None
    if new:
        await (await _beginning(work, branch, purpose, facts)).run()
    try:
        additions = {change.path: content async for change, content in work.quarantine.blobs(changes)}
        files = FileChanges(additions, tuple(change.path for change in changes if change.is_deleted))
        await commits.commit_on_branch(thread, purpose, branch, parent, message=facts.message, files=files)
    except GitHubRefused:
        if await found_on_branch(work, branch, facts) is None:
            if new and await branch_stands(work, branch) == parent:
                await commits.drop(thread, f"refs/heads/{branch}")
            await drop_ref(work, branch_mark(work, branch))
            raise


def branch_mark(work: TurnWork, branch: str) -> str:
    """Marks a branch that we have made and that holds nothing of ours yet: another's would look the same."""
    name = hashlib.sha256(branch.encode()).hexdigest()[:8]
    return f"refs/forgehand/signing/{work.turn.key.session}-{work.turn.key.n}-{name}"


async def is_begun(work: TurnWork, branch: str, purpose: TokenPurpose, facts: Facts) -> bool:
    """Tells whether we made the branch, where it has nothing on it yet."""
    return await (await _beginning(work, branch, purpose, facts)).has_been()


async def drop_ref(work: TurnWork, ref: str) -> None:
    try:
        await work.services.outbound.commits.drop(work.session.thread, ref)
    except GitHubRefused:  # it is no branch, and does no harm where it is
        return


async def _beginning(work: TurnWork, branch: str, purpose: TokenPurpose, facts: Facts) -> Beginning:
    access = await remote_access(work.services, work.session.thread, purpose)
    [parent] = facts.parents
    return work.quarantine.beginning(access, branch, parent, mark=branch_mark(work, branch), commit=work.commit)


async def found_on_branch(work: TurnWork, branch: str, facts: Facts) -> MadeCommit | None:
    """Finds what an earlier try has made: our content, right on top of where the branch was."""
    tip = await branch_stands(work, branch)
    if tip is None or (tip,) == facts.parents:
        return None
    reads = work.services.github.installation(work.session.installation_id)
    made = await reads.made_commit(work.session.thread.repo, tip)
    return made if made.tree == facts.tree and made.parents == facts.parents else None


async def branch_stands(work: TurnWork, branch: str) -> str | None:
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
    """GitHub has made the commit, and does not vouch for it."""


async def land_signed(work: TurnWork, branch: str, purpose: TokenPurpose) -> str:
    """The commit at which the branch then stands. PushRefused also where GitHub does not sign: never ours instead."""
    try:
        known = await repos.signed_for(work.services.store, work.session.id, work.commit)
        if known is None or await branch_stands(work, branch) != known:
            known = await _moved(work, branch, purpose)
    except (PushRefused, PushRaced):
        for ref in (_temporary(work), branch_mark(work, branch)):
            await drop_ref(work, ref)
        raise
    await drop_ref(work, _temporary(work))
    return known


def _temporary(work: TurnWork) -> str:
    """Carries our commit to GitHub, and is there for as long as this is under way."""
    return f"refs/forgehand/signing/{work.turn.key.session}-{work.turn.key.n}"


async def _moved(work: TurnWork, branch: str, purpose: TokenPurpose) -> str:
    expected, facts = work.turn.tip_sha, await work.quarantine.facts(work.commit)
    if (actual := await branch_stands(work, branch)) != expected:
        return await _begun(work, branch, purpose, facts, actual)
    access = await remote_access(work.services, work.session.thread, purpose)
    if expected is None:
        await work.quarantine.require_free(access, branch)
    await work.quarantine.push(access, work.commit, _temporary(work), expect=None)
    try:
        sha = await _signed(work, purpose)
    except NotSigned:
        if (made := await commit_on_branch(work, branch, purpose, facts)) is None:
            raise
        await repos.put_signed(work.services.store, work.session.id, work.commit, made)
        return made
    await _set(work, branch, sha, purpose)
    return sha


async def _begun(work: TurnWork, branch: str, purpose: TokenPurpose, facts: Facts, actual: str | None) -> str:
    """The branch stands elsewhere: by an earlier try of the way that commits on it directly, or by somebody else."""
    half = work.turn.tip_sha is None and (actual,) == facts.parents
    if half and not await is_begun(work, branch, purpose, facts):  # somebody else's, made at the same place
        raise PushRaced(branch, actual)
    if not half and await found_on_branch(work, branch, facts) is None:
        raise PushRaced(branch, actual)
    made = await commit_on_branch(work, branch, purpose, facts)
    if made is None:
        raise PushRaced(branch, actual)
    await repos.put_signed(work.services.store, work.session.id, work.commit, made)
    return made


async def _set(work: TurnWork, branch: str, sha: str, purpose: TokenPurpose) -> None:
    expected = work.turn.tip_sha
    try:
        await work.services.outbound.commits.set_branch(work.session.thread, purpose, branch, sha, new=expected is None)
    except GitHubRefused as refused:
        if (actual := await branch_stands(work, branch)) not in (sha, expected):
            raise PushRaced(branch, actual) from None
        if actual != sha:
            raise remote.refusal(refused.message, "") from None


async def _signed(work: TurnWork, purpose: TokenPurpose) -> str:
    """Lets GitHub make the commit, and those of ours below it that are on no branch yet."""
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
    """Refused where it has no signature that GitHub holds for good, or another content than ours."""
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
