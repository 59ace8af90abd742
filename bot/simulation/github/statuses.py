"""Commit statuses: the older kind of check, which whoever may push sets by a word on a commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.simulation.github.payloads import Json, node_id, repo_url, stamp
from bot.simulation.github.state import Repository, State


@dataclass(eq=False)
class CommitStatus:
    """In a context of its own choosing; the last one in a context counts."""

    id: int
    repo: Repository = field(repr=False)
    sha: str
    context: str
    state: str
    description: str | None
    target_url: str | None
    created_at: float


def latest(repo: Repository, sha: str) -> list[CommitStatus]:
    """Of each context, the newest first."""
    return list({each.context: each for each in repo.statuses if each.sha == sha}.values())[::-1]


def combined(found: list[CommitStatus]) -> str:
    """Nothing at all is pending, too."""
    states = {each.state for each in found}
    if states & {"failure", "error"}:
        return "failure"
    return "success" if states == {"success"} else "pending"


def shown(state: State, one: CommitStatus) -> Json:
    """As the combined status lists it: without who has set it."""
    return {
        "id": one.id,
        "node_id": node_id("StatusContext", one.id),
        "url": f"{repo_url(state, one.repo)}/statuses/{one.sha}",
        "state": one.state,
        "context": one.context,
        "description": one.description,
        "target_url": one.target_url,
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.created_at),
    }
