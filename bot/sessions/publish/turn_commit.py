"""Makes the one commit of a turn from its work, also for a merge, and judges whether it may be pushed.

The host makes it, and a repetition makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot import repo_config
from bot.errors import GitHubRefused
from bot.git.commits import Author, Joined, Left
from bot.git.errors import GitRefusal, PushRefused
from bot.git.inspection import Change
from bot.git.quarantine import Quarantine
from bot.kinds.resolve import Merge
from bot.kinds.shape import OnFork, SecretFound, TurnPart
from bot.models import Outcome, RepoId
from bot.outbound import TextKind
from bot.proposal import descriptions, push_policy, verification
from bot.proposal.push_policy import Hold
from bot.sessions import reading
from bot.sessions.moves import End, Move
from bot.sessions.publish import rescue
from bot.sessions.services import APPROVAL_DAYS, Services
from bot.sessions.starting_point import follow_rename
from bot.store import approvals, sessions
from bot.store.approvals import ApprovalKind, ApprovalRequest
from bot.store.sessions import Session, Turn
from bot.text import blocks
from bot.words import endings, on_lfs, on_pulls, on_pushes

MERGED = 2
MOST_SHOWN = 5_000
"""Bytes of the held files' patch; the bundle shows longer ones."""
ABOUT_THE_BRANCH = (GitRefusal.PROTECTED, GitRefusal.RULES, GitRefusal.NAME, GitRefusal.NON_FAST_FORWARD)
"""These do not refuse the commit itself: a ref of ours, which is no branch, may hold it."""


@dataclass(frozen=True)
class TurnWork:
    services: Services
    turn: Turn
    session: Session
    quarantine: Quarantine
    commit: str
    report: tuple[str, ...] = ()
    """Notes on the change for people, in a new pull request or beside the push."""
    done_by: Turn | None = None
    """The earlier turn whose agent did it, if this one only releases it."""
    whole: str | None = None
    """The same commit with the contents of LFS files in place of pointers, for the host's own safekeeping."""
    landed: str | None = None
    """The pushed commit that people see: ours, or GitHub's signed version."""

    @property
    def done(self) -> Turn:
        """Return the turn whose words the pull request has."""
        return self.done_by or self.turn

    @property
    def is_verified(self) -> bool:
        return verification.all_passed(self.done.verified, self.commit)

    @property
    def checks(self) -> list[dict[str, Any]]:
        """Name the checked commit as people see it: its content is the same."""
        return verification.renamed(self.done.verified or (), self.commit, self.landed or self.commit)

    @property
    def columns(self) -> dict[str, object]:
        return {"commit_sha": self.landed, **({"verified": self.checks} if self.turn.verified else {})}

    @property
    def is_approved(self) -> bool:
        """Tell whether somebody has approved this very commit, with its changes to workflow files."""
        return self.done_by is not None


async def commit_of_turn(services: Services, turn: Turn, quarantine: Quarantine, tree: str) -> str:
    """Make the turn's one commit; the same work gives the same commit, so a repetition pushes nothing new."""
    assert turn.base_sha is not None
    if turn.tree_sha is None:  # saved work that stays as it was
        return turn.base_sha
    config = repo_config.load(turn.config)
    if config.lfs and turn.part(OnFork).fork is None:
        from bot.git import large_files

        quarantine.large = await large_files.pointed(quarantine.git_dir, turn.base_sha, tree)
        tree = quarantine.large.tree
    return await _commit_with(services, turn, quarantine, tree)


async def commit_with_contents(services: Services, turn: Turn, quarantine: Quarantine, tree: str) -> str | None:
    """Make the turn's commit with the contents of LFS files; None if it has none that are new."""
    if quarantine.large is None or not quarantine.large.contents:
        return None
    return await _commit_with(services, turn, quarantine, tree)


async def _commit_with(services: Services, turn: Turn, quarantine: Quarantine, tree: str) -> str:
    assert turn.base_sha is not None
    # We never push the host's own join: the merge takes its place, with its two parents.
    parents = [turn.base_sha] if turn.part(Merge).sha is None else await quarantine.parents(turn.base_sha)
    return await make_commit(services, turn, quarantine, tree, parents, await _message(services, turn))


async def commit_on_top(work: TurnWork, tree: str, parent: str) -> str:
    """Make the turn's commit again on another parent."""
    words = await _message(work.services, work.turn)
    return await make_commit(work.services, work.turn, work.quarantine, tree, [parent], words)


async def make_commit(
    services: Services, turn: Turn, quarantine: Quarantine, tree: str, parents: Sequence[str], words: str
) -> str:
    bot, message = await services.github.identity(), services.outbound.text(TextKind.COMMIT, words)
    return await quarantine.commit(tree, parents, message, Author(bot.bot_login, bot.bot_email), int(turn.created_at))


async def _message(services: Services, turn: Turn) -> str:
    host = (await services.github.identity()).noreply_host
    merge = turn.part(Merge)
    if merge.sha is not None and turn.base is not None:
        return descriptions.merge_message(turn, turn.base, merge.conflicts, noreply_host=host)
    return descriptions.commit_message(turn, noreply_host=host)


async def tree_of(services: Services, turn: Turn, quarantine: Quarantine) -> str:
    """Return the tree that came home, or that of the start if nothing did: a clean merge, or saved work."""
    assert turn.base_sha is not None
    if turn.tree_sha is None:
        return (await quarantine.facts(turn.base_sha)).tree
    joined = await _begun_with(services, turn, quarantine)
    if joined is not None and turn.tree_sha == joined.tree:
        return joined.tree
    return await quarantine.admit(await rescue.collected(services, turn), base=turn.base_sha)


async def unsolved_conflicts(work: TurnWork, tree: str) -> str | None:
    """Name the files that still have marks of a conflict, in a sentence; None without any."""
    joined = await _begun_with(work.services, work.turn, work.quarantine)
    left = await work.quarantine.marked(tree, joined) if joined else []
    return on_pulls.conflicts_left(left) if left else None


async def words_on_merge(work: TurnWork) -> str:
    turn, merge = work.turn, work.turn.part(Merge)
    if merge.sha is None or turn.base is None:
        return ""
    if not merge.conflicts:
        return on_pulls.merged_in(turn.base, merge.sha)
    joined = await _begun_with(work.services, turn, work.quarantine)
    left = await work.quarantine.left(f"{work.commit}^{{tree}}", joined) if joined else Left((), ())
    return on_pulls.solved(turn.base, merge.sha, len(merge.conflicts), left.ours, left.theirs)


async def _begun_with(services: Services, turn: Turn, quarantine: Quarantine) -> Joined | None:
    """Find the merge that the turn began with, also one that an interrupted turn had saved."""
    if turn.base_sha in (None, turn.tip_sha):
        return None
    return await _host_merge(services, turn, await quarantine.parents(turn.base_sha))


async def _host_merge(services: Services, turn: Turn, parents: Sequence[str]) -> Joined | None:
    """Let git merge these, which gives the same each time; None if they are not two."""
    return await services.cache.join(RepoId(turn.repo_id), *parents) if len(parents) == MERGED else None


@dataclass(frozen=True)
class Judged:
    held: str | None
    allowable: tuple[str, ...] = ()
    """The held paths, if a person's yes is all that the commit needs."""
    report: tuple[str, ...] = ()
    before: str = ""
    """The commit that the work was compared with."""
    parts: tuple[TurnPart, ...] = ()
    """What the turn stores about it."""


async def judge(work: TurnWork, tree: str) -> Judged:
    """Judge everything that is new to the branch by today's rules, also the saved work of earlier turns below it."""
    config, saved = repo_config.load(work.turn.config), await _saved_below(work)
    before = await _commit_before(work, saved)
    changes = await work.quarantine.changes(before, tree)
    paths = await work.quarantine.paths(tree)
    pointers: dict[str, str | None] = {}
    if config.submodules and work.turn.part(OnFork).fork is None:
        from bot.sessions import submodules

        pointers = await submodules.pointer_faults(work.services, work.turn, work.session.thread, changes)
    verdict = push_policy.check(
        changes,
        blocked=config.push.blocked,
        workflows_approved=work.is_approved,
        existing=paths,
        pointers=pointers,
    )
    if any(item.kind is not Hold.WORKFLOW for item in verdict.held):
        return Judged(endings.held((item.path, item.why) for item in verdict.held))
    contents = [*changes, *await _changes_saved(work, saved)]
    found = await push_policy.paths_with_secrets(work.quarantine, contents, work.services.redactor)
    if found:
        return Judged(endings.secret_in_work(found), parts=(SecretFound("forgehand"),))
    if verdict.held:
        held = endings.held((item.path, item.why) for item in verdict.held)
        return Judged(held, tuple(item.path for item in verdict.held), before=before)
    by = work.turn.requester if work.is_approved else None
    return Judged(None, report=push_policy.look_closely(changes, sensitive=config.push.sensitive, let_go_by=by))


async def _saved_below(work: TurnWork) -> list[str]:
    """List saved commits of interrupted turns, right below the work and not on its branch; newest first."""
    saved, found = await rescue.saved_commits(work.services.store, work.session.id), list[str]()
    tip, at = work.turn.tip_sha, work.turn.base_sha
    while at in saved and not (tip is not None and await work.quarantine.continues(tip, at)):
        found.append(at)
        at = next(iter(await work.quarantine.parents(at)), None)
    return found


async def _commit_before(work: TurnWork, saved: Sequence[str]) -> str:
    """Find the commit below these saved ones; without any, the one where the work began."""
    assert work.turn.base_sha is not None
    if not saved:
        return work.turn.base_sha
    parents = await work.quarantine.parents(saved[-1])
    merge = await _host_merge(work.services, work.turn, parents)
    return parents[0] if merge is None else merge.commit


async def _changes_saved(work: TurnWork, saved: Sequence[str]) -> list[Change]:
    """List the changes of each saved commit, even those that a later one took back: the history would hold them."""
    found = list[Change]()
    for at, commit in enumerate(saved):
        before = await _commit_before(work, saved[: at + 1])
        found += await work.quarantine.changes(before, (await work.quarantine.facts(commit)).tree)
    return found


async def permission_lost(work: TurnWork) -> str | None:
    """Tell in a sentence that the requester has lost access while the agent worked; None if not."""
    reads, turn = work.services.github.installation(work.session.installation_id), work.turn
    if await reading.may_write(reads, work.session.thread.repo, turn.requester, turn.requester_id):
        return None
    return endings.permission_gone(turn.requester)


async def hold_workflows(work: TurnWork, judged: Judged) -> Move:
    """Hold the commit by our own policy, and show the changes that a yes would let through."""
    if work.whole is not None:  # a commit that waits has no place for contents that are not uploaded
        return await rescue.keep_on_host(work, End(Outcome.REFUSED, on_lfs.with_workflows()))
    paths = judged.allowable
    # A merge shows all that the branch gets: compared with both sides, it would show marks of conflicts.
    before = judged.before if work.turn.part(Merge).sha is None else work.turn.tip_sha or judged.before
    whole = await work.quarantine.patch(before, f"{work.commit}^{{tree}}", MOST_SHOWN, paths=paths)
    text = blocks.spelled_out(whole.content.decode("utf-8", "replace"))
    words = on_pushes.held(paths, work.commit, text, APPROVAL_DAYS, cut=whole.cut)
    if lacks := await _lacks_permission(work):
        words = on_pushes.needs_permission(words, (await work.services.github.identity()).slug)
    return await _offered(work, words, lacks=lacks)


async def hold_for_permission(work: TurnWork, words: str) -> Move:
    """Hold a commit with workflow files that the remote refused: with the permission, a yes pushes it."""
    app = await work.services.github.identity()
    told = on_pushes.no_permission if work.is_approved else on_pushes.takes_a_yes
    words = told(words, app.slug, work.commit, APPROVAL_DAYS)
    return await _offered(work, words, lacks=await _lacks_permission(work))


async def _lacks_permission(work: TurnWork) -> bool:
    """Tell whether GitHub would refuse workflow files of this App; if it does not say, a push will show it."""
    try:
        installed = await work.services.github.installed(work.session.installation_id)
    except GitHubRefused:
        return False
    return installed.permissions.get("workflows") != "write"


async def _offered(work: TurnWork, words: str, *, lacks: bool) -> Move:
    """Keep the commit, then offer it for a yes; without the permission there is nothing to tick yet."""
    services, kept = work.services, await rescue.keep_bundle(replace(work, whole=None))
    session = await sessions.session(services.store, work.turn.key.session)
    matter = {"commit": work.commit, "branch": session.branch, "done_by": work.done.n, "lacks": lacks}
    question = ApprovalRequest(work.turn.key, ApprovalKind.PUSH, matter, services.approval_deadline())
    approval = await approvals.ask(services.store, question)
    return End(Outcome.REFUSED, on_pushes.waits(words, approval.id), {"kept": kept})


async def on_push_refused(work: TurnWork, error: PushRefused) -> Move:
    words = work.services.outbound.text(TextKind.COMMENT, error.words)
    if error.kind is GitRefusal.WORKFLOW:
        return await hold_for_permission(work, words)
    parts = (SecretFound("github"),) if error.kind is GitRefusal.SECRET else ()
    end = End(Outcome.REFUSED, on_pushes.refused(words, error.kind), parts=parts)
    return await (rescue.rescue if error.kind in ABOUT_THE_BRANCH else rescue.keep_on_host)(work, end)


async def without_access(work: TurnWork, error: GitHubRefused) -> Move:
    """Keep work for which GitHub refuses a token or access; an approved commit may need one more permission."""
    words = await refusal_words(work, error)
    if work.is_approved and error.status in (403, 422):
        return await hold_for_permission(work, work.services.outbound.text(TextKind.COMMENT, error.message))
    return await rescue.keep_on_host(work, End(Outcome.REFUSED, words))


async def refusal_words(work: TurnWork, error: GitHubRefused) -> str:
    """Word GitHub's refusal; raises TransientError if the repository was only renamed."""
    await follow_rename(work.services, work.turn, error)
    return endings.push_refused(work.services.outbound.text(TextKind.COMMENT, error.message))
