"""Whether work may be published: what policy holds of it, and whether its requester may still write."""

from __future__ import annotations

from dataclasses import dataclass

from bot import repo_config
from bot.publish import policy, report, secrets_scan
from bot.publish.policy import Hold
from bot.sessions.publishing.work import Work
from bot.sessions.reading import trust
from bot.words import endings


@dataclass(frozen=True)
class Judged:
    held: str | None
    """The sentence that names what policy holds, or None."""
    allowable: tuple[str, ...] = ()
    """The paths that are held where a person's yes would be enough: nothing else speaks against the commit."""
    report: tuple[str, ...] = ()


async def judge(work: Work, tree: str) -> Judged:
    config = repo_config.load(work.turn.config)
    assert work.turn.base_sha is not None
    changes = await work.quarantine.changes(work.turn.base_sha, tree)
    paths = await work.quarantine.paths(tree)
    verdict = policy.check(changes, blocked=config.paths.blocked, workflows_approved=work.let_go, existing=paths)
    if any(item.kind is not Hold.WORKFLOW for item in verdict.held):
        return Judged(endings.held((item.path, item.why) for item in verdict.held))
    found = await secrets_scan.paths_with_secrets(work.quarantine, changes, work.services.redactor)
    if found:
        return Judged(endings.secret_in_work(found))
    if verdict.held:
        held = endings.held((item.path, item.why) for item in verdict.held)
        return Judged(held, tuple(item.path for item in verdict.held))
    by = work.turn.requester if work.let_go else None
    return Judged(None, report=report.lines(changes, sensitive=config.paths.sensitive, let_go_by=by))


async def not_allowed(work: Work) -> str | None:
    """Asked again now: somebody may have lost access while the agent worked."""
    reads = work.services.github.installation(work.session.installation_id)
    turn = work.turn
    if await trust.may_write(reads, work.session.thread.repo, turn.requester, turn.requester_id):
        return None
    return endings.permission_gone(turn.requester)
