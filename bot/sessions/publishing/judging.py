"""Whether work may be published: what policy holds of it, and whether its requester may still write."""

from __future__ import annotations

from bot import endings, repo_config
from bot.publish import policy, secrets_scan
from bot.sessions import trust
from bot.sessions.publishing.work import Work


async def held(work: Work, tree: str) -> str | None:
    """The sentence that names what policy holds, or None."""
    config = repo_config.load(work.turn.config)
    assert work.turn.base_sha is not None
    changes = await work.quarantine.changes(work.turn.base_sha, tree)
    paths = await work.quarantine.paths(tree)
    verdict = policy.check(changes, blocked=config.paths.blocked, sensitive=config.paths.sensitive, existing=paths)
    if verdict.held:
        return endings.held((item.path, item.why) for item in verdict.held)
    found = await secrets_scan.paths_with_secrets(work.quarantine, changes, work.services.redactor)
    return endings.secret_in_work(found) if found else None


async def not_allowed(work: Work) -> str | None:
    """Asked again now: somebody may have lost access while the agent worked."""
    reads = work.services.github.installation(work.session.installation_id)
    turn = work.turn
    if await trust.may_write(reads, work.session.thread.repo, turn.requester, turn.requester_id):
        return None
    return endings.permission_gone(turn.requester)
