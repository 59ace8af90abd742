"""A search in the operator's lists: by repository, state, outcome, person and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sought:
    """What somebody looks for; empty fields match everything."""

    repo: str = ""
    """As in `owner/name`."""
    state: str = ""
    outcome: str = ""
    by: str = ""
    since: float = 0.0
    without: tuple[str, ...] = ()
    """Reasons that are left out."""
    limit: int = 1000

    def where(self, columns: Mapping[str, str]) -> str:
        """Return a condition; `columns` names the column of each field that a list has."""
        at = columns["since"]
        parts = [f"{at} >= :since"]
        for name in ("repo", "by"):
            if getattr(self, name):
                parts.append(f"LOWER({columns[name]}) = :{name}")
        for name in ("state", "outcome"):
            if getattr(self, name):
                parts.append(f"{columns[name]} = :{name}")
        if self.without:
            listed = ", ".join(f":without_{n}" for n in range(len(self.without)))
            parts.append(f"COALESCE({columns['without']}, '') NOT IN ({listed})")
        return " AND ".join(parts)

    @property
    def narrows(self) -> bool:
        """Tell whether rows may exist that do not match."""
        return bool(self.repo or self.state or self.outcome or self.by or self.since or self.without)

    @property
    def values(self) -> dict[str, Any]:
        given = {"repo": self.repo.lower(), "by": self.by.lower(), "state": self.state, "outcome": self.outcome}
        left_out = {f"without_{n}": reason for n, reason in enumerate(self.without)}
        return (
            {name: value for name, value in given.items() if value}
            | left_out
            | {
                "since": self.since,
                "limit": self.limit,
            }
        )


EVERYTHING = Sought()
