"""Commit statuses: the older kind of check, which everybody who may push can set."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.simulation.github.payloads import Json, node_id, repo_url, stamp
from bot.simulation.github.state import Repository, State


@dataclass(eq=False)
class CommitStatus:
    """A status in a context; the last one in a context counts."""

    id: int
    repo: Repository = field(repr=False)
    sha: str
    context: str
    state: str
    description: str | None
    target_url: str | None
    created_at: float


def latest(repo: Repository, sha: str) -> list[CommitStatus]:
    """Return the latest status of each context, newest first."""
    return list({each.context: each for each in repo.statuses if each.sha == sha}.values())[::-1]


def combined(found: list[CommitStatus]) -> str:
    """Combine the statuses; without any, the result is pending."""
    states = {each.state for each in found}
    if states & {"failure", "error"}:
        return "failure"
    return "success" if states == {"success"} else "pending"


def shown(state: State, one: CommitStatus) -> Json:
    """Return the form in the combined status, which does not say who set it."""
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
