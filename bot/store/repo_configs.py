"""The result of the last look at each repository's config file: sound, missing, or wrong and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.models import InstallationId, RepoId
from bot.store.base import Store
from bot.store.records import Record

NOTED_SECONDS = 3600.0
"""The same result is noted again after so long, because each note costs a write."""


class ConfigState(StrEnum):
    OK = "ok"
    MISSING = "missing"
    ERROR = "error"


@dataclass(frozen=True)
class ConfigLook(Record):
    id: RepoId
    owner: str
    name: str
    config_state: ConfigState | None
    """None if nobody has looked yet."""
    config_problem: str | None
    config_read_at: float | None

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


_LOOK = "SELECT id, owner, name, config_state, config_problem, config_read_at FROM repos WHERE id = :id"
_LOOKS = """
SELECT id, owner, name, config_state, config_problem, config_read_at FROM repos
WHERE installation_id = :installation AND removed_at IS NULL
ORDER BY CASE config_state WHEN 'error' THEN 0 ELSE 1 END, owner, name LIMIT :limit
"""


async def note(store: Store, repo: RepoId, state: ConfigState, problem: str | None = None) -> None:
    """Store what a look has found. A repository without a row has no page that could show it."""
    row = await store.one(_LOOK, id=repo)
    if row is None:
        return
    last, now = ConfigLook.of(row), store.now()
    same = (last.config_state, last.config_problem) == (state, problem)
    if same and last.config_read_at is not None and 0 <= now - last.config_read_at < NOTED_SECONDS:
        return
    sql = """
    UPDATE repos SET config_state = :state, config_problem = :problem, config_read_at = :at WHERE id = :id
    """
    await store.run(sql, state=state, problem=problem, at=now, id=repo)


async def of_installation(store: Store, installation: InstallationId, limit: int) -> list[ConfigLook]:
    """Return the repositories that we know, those with a wrong file first."""
    return await ConfigLook.many(store, _LOOKS, installation=installation, limit=limit)
