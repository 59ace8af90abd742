"""Whether work may be published: what policy holds of it, and whether its requester may still write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot import repo_config
from bot.git.changes import Change
from bot.proposal import push_policy, secrets_scan
from bot.proposal.push_policy import Hold
from bot.sessions.publishing import joining, saving
from bot.sessions.publishing.work import TurnWork
from bot.sessions.reading import trust
from bot.words import endings


@dataclass(frozen=True)
class Judged:
    held: str | None
    """The sentence that names what policy holds, or None."""
    allowable: tuple[str, ...] = ()
    """The paths that are held where a person's yes would be enough: nothing else speaks against the commit."""
    report: tuple[str, ...] = ()
    over: str = ""
    """The commit that was there without it."""


async def judge(work: TurnWork, tree: str) -> Judged:
    """All that the branch would newly get: work of earlier turns that was saved beside it goes along, and the rules
    may have changed since."""
    config, along = repo_config.load(work.turn.config), await _going_along(work)
    over = await _over(work, along)
    changes = await work.quarantine.changes(over, tree)
    paths = await work.quarantine.paths(tree)
    verdict = push_policy.check(changes, blocked=config.paths.blocked, workflows_approved=work.let_go, existing=paths)
    if any(item.kind is not Hold.WORKFLOW for item in verdict.held):
        return Judged(endings.held((item.path, item.why) for item in verdict.held))
    contents = [*changes, *await _below(work, along)]
    found = await secrets_scan.paths_with_secrets(work.quarantine, contents, work.services.redactor)
    if found:
        return Judged(endings.secret_in_work(found))
    if verdict.held:
        held = endings.held((item.path, item.why) for item in verdict.held)
        return Judged(held, tuple(item.path for item in verdict.held), over=over)
    by = work.turn.requester if work.let_go else None
    return Judged(None, report=push_policy.look_closely(changes, sensitive=config.paths.sensitive, let_go_by=by))


async def _going_along(work: TurnWork) -> list[str]:
    """Commits of turns that were cut short, right below the work and not on its branch; newest first."""
    saved, tip, found = await saving.saved(work.services.store, work.session.id), work.turn.tip_sha, list[str]()
    at = work.turn.base_sha
    while at in saved and not (tip is not None and await work.quarantine.continues(tip, at)):
        found.append(at)
        at = next(iter(await work.quarantine.parents(at)), None)
    return found


async def _over(work: TurnWork, along: Sequence[str]) -> str:
    """What the repository itself has; below a merge, what git alone makes of its sides."""
    assert work.turn.base_sha is not None
    if not along:
        return work.turn.base_sha
    parents = await work.quarantine.parents(along[-1])
    merge = await joining.joined(work.services, work.turn, parents)
    return parents[0] if merge is None else merge.commit


async def _below(work: TurnWork, along: Sequence[str]) -> list[Change]:
    """What each of them changed, though a later one may have taken it away: the branch's history would hold it."""
    found = list[Change]()
    for at, commit in enumerate(along):
        below = await _over(work, along[: at + 1])
        found += await work.quarantine.changes(below, (await work.quarantine.facts(commit)).tree)
    return found


async def not_allowed(work: TurnWork) -> str | None:
    """Asked again now: somebody may have lost access while the agent worked."""
    reads = work.services.github.installation(work.session.installation_id)
    turn = work.turn
    if await trust.may_write(reads, work.session.thread.repo, turn.requester, turn.requester_id):
        return None
    return endings.permission_gone(turn.requester)
