"""Whether somebody may ask for anything here: by what is known of them, and by GitHub's word."""

from __future__ import annotations

from bot import policy
from bot.errors import GitHubRefused
from bot.events.remarks import Remark
from bot.handlers.desk import Desk
from bot.policy import Decision


async def judge(remark: Remark, desk: Desk) -> Decision:
    """By what is known first; GitHub is asked only about somebody who could be allowed."""
    identity = await desk.github.identity()
    service = policy.Service(identity.bot_id, identity.owner, desk.settings.github.accounts)
    decision = policy.screen(
        remark.author, repo_owner=remark.thread.repo.owner, service=service, via_app=remark.via_app
    )
    if not decision.allowed:
        return decision
    reads = desk.github.installation(remark.thread.installation)
    try:
        answered_id, permission = await reads.permission(remark.thread.repo, remark.author.login)
    except GitHubRefused:
        return policy.unverified(remark.author)
    return policy.authorise(remark.author, answered_id=answered_id, permission=permission)
