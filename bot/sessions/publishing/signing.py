"""`commits: verified`: the same trees as commits that GitHub makes and signs, on the branch by a ref that is moved.

Our commits travel to GitHub by a ref that is no branch. Whatever is made there of them is noted before the next step,
so that a repetition goes on where it was; the only thing that anybody sees is the branch, and it moves once.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.errors import GitHubRefused
from bot.git import remote
from bot.git.commits import Facts
from bot.git.errors import PushRaced, PushRefused, Refusal
from bot.github.types import MadeCommit, TokenPurpose
from bot.sessions.publishing import on_branch, saving
from bot.sessions.publishing.work import Work
from bot.sessions.remote import remote_access
from bot.store import signed
from bot.words import on_pushes


class NotSigned(PushRefused):
    """GitHub has made the commit, and does not vouch for it."""


async def land(work: Work, branch: str, purpose: TokenPurpose) -> str:
    """The commit at which the branch then stands. PushRefused also where GitHub does not sign: never ours instead."""
    try:
        known = await signed.of(work.services.store, work.session.id, work.commit)
        if known is None or await on_branch.stands(work, branch) != known:
            known = await _moved(work, branch, purpose)
    except (PushRefused, PushRaced):
        for ref in (_temporary(work), on_branch.mark(work, branch)):
            await on_branch.drop(work, ref)
        raise
    await on_branch.drop(work, _temporary(work))
    return known


def _temporary(work: Work) -> str:
    """Carries our commit to GitHub, and is there for as long as this is under way."""
    return f"refs/forgehand/signing/{work.turn.key.session}-{work.turn.key.n}"


async def _moved(work: Work, branch: str, purpose: TokenPurpose) -> str:
    expected, facts = work.turn.tip_sha, await work.quarantine.facts(work.commit)
    if (actual := await on_branch.stands(work, branch)) != expected:
        return await _begun(work, branch, purpose, facts, actual)
    access = await remote_access(work.services, work.session.thread, purpose)
    if expected is None:
        await work.quarantine.require_free(access, branch)
    await work.quarantine.push(access, work.commit, _temporary(work), expect=None)
    try:
        sha = await _signed(work, purpose)
    except NotSigned:
        if (made := await on_branch.commit(work, branch, purpose, facts)) is None:
            raise
        await signed.put(work.services.store, work.session.id, work.commit, made)
        return made
    await _set(work, branch, sha, purpose)
    return sha


async def _begun(work: Work, branch: str, purpose: TokenPurpose, facts: Facts, actual: str | None) -> str:
    """The branch stands elsewhere: by an earlier try of the way that commits on it directly, or by somebody else."""
    half = work.turn.tip_sha is None and (actual,) == facts.parents
    if half and not await on_branch.is_begun(work, branch, purpose, facts):  # somebody else's, made at the same place
        raise PushRaced(branch, actual)
    if not half and await on_branch.found(work, branch, facts) is None:
        raise PushRaced(branch, actual)
    made = await on_branch.commit(work, branch, purpose, facts)
    if made is None:
        raise PushRaced(branch, actual)
    await signed.put(work.services.store, work.session.id, work.commit, made)
    return made


async def _set(work: Work, branch: str, sha: str, purpose: TokenPurpose) -> None:
    expected = work.turn.tip_sha
    try:
        await work.services.outbound.commits.set_branch(work.session.thread, purpose, branch, sha, new=expected is None)
    except GitHubRefused as refused:
        if (actual := await on_branch.stands(work, branch)) not in (sha, expected):
            raise PushRaced(branch, actual) from None
        if actual != sha:
            raise remote.refusal(refused.message, "") from None


async def _signed(work: Work, purpose: TokenPurpose) -> str:
    """What GitHub has made of the commit, and of those of ours below it that are on no branch yet."""
    store, session = work.services.store, work.session.id
    saved = await saving.saved(store, session)
    chain = [await work.quarantine.facts(work.commit)]
    while len(chain[0].parents) == 1 and chain[0].parents[0] in saved:
        chain.insert(0, await work.quarantine.facts(chain[0].parents[0]))
    for facts in chain:
        if await signed.of(store, session, facts.sha) is None:
            parents = [await signed.of(store, session, one) or one for one in facts.parents]
            made = await _made(work, purpose, facts, parents)
            await signed.put(store, session, facts.sha, made.sha)
    sha = await signed.of(store, session, work.commit)
    assert sha is not None
    return sha


async def _made(work: Work, purpose: TokenPurpose, facts: Facts, parents: Sequence[str]) -> MadeCommit:
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
        raise PushRefused(Refusal.UNVERIFIED, on_pushes.another_tree(facts.tree, made.tree))
    if not made.verified:
        raise NotSigned(Refusal.UNVERIFIED, on_pushes.not_signed(made.reason))
    return made
