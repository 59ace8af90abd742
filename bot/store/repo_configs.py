"""The result of the last look at each repository's config file: sound, missing, or wrong and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

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
    config_values: tuple[dict[str, str], ...] | None
    """What applied then: each key that is set, with its value and where that stands."""
    config_read_at: float | None

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


_SELECT = "SELECT id, owner, name, config_state, config_problem, config_values, config_read_at FROM repos "
_LOOK = _SELECT + "WHERE id = :id"
_NAMED = _SELECT + "WHERE lower(owner) = :owner AND lower(name) = :name AND removed_at IS NULL"
_LOOKS = (
    _SELECT
    + """
WHERE installation_id = :installation AND removed_at IS NULL
ORDER BY CASE config_state WHEN 'error' THEN 0 ELSE 1 END, owner, name LIMIT :limit
"""
)


async def note(
    store: Store,
    repo: RepoId,
    state: ConfigState,
    problem: str | None = None,
    values: Sequence[Mapping[str, str]] = (),
) -> None:
    """Store what a look has found. A repository without a row has no page that could show it."""
    row = await store.one(_LOOK, id=repo)
    if row is None:
        return
    last, now = ConfigLook.of(row), store.now()
    stored = msgspec.json.encode(values).decode()
    same = (last.config_state, last.config_problem) == (state, problem) and row["config_values"] == stored
    if same and last.config_read_at is not None and 0 <= now - last.config_read_at < NOTED_SECONDS:
        return
    sql = """
    UPDATE repos SET config_state = :state, config_problem = :problem, config_values = :stored, config_read_at = :at
    WHERE id = :id
    """
    await store.run(sql, state=state, problem=problem, stored=stored, at=now, id=repo)


async def named(store: Store, full_name: str) -> ConfigLook | None:
    owner, _, name = full_name.lower().partition("/")
    return await ConfigLook.one(store, _NAMED, owner=owner, name=name)


async def of_installation(store: Store, installation: InstallationId, limit: int) -> list[ConfigLook]:
    """Return the repositories that we know, those with a wrong file first."""
    return await ConfigLook.many(store, _LOOKS, installation=installation, limit=limit)
