"""What only some turns have, each part stored under its name in one column, and typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from bot.models import Fork, Spot

_FACTS = {"HandedOver": ("posted",), "Merge": ("sha",), "TakenBack": ("turn",), "OnFork": ("fork",)}
"""What stays of a part when the words of a repository are forgotten."""


class TurnPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every field has a default: `turn.part(Merge)` is an empty one where the turn has none."""


P = TypeVar("P", bound=TurnPart)


class AgentReading(TurnPart, frozen=True):
    """What the agent of a turn is given to read."""

    context: str | None = None
    instructions: str | None = None
    """What it is told beside its prompt: our rules, and those of the base branch."""
    notes: tuple[str, ...] = ()
    """What was cut or withheld, in words."""
    ignored: tuple[str, ...] = ()
    """Paths of files that would steer an agent and were not used."""


class Places(TurnPart, frozen=True):
    """Where in a diff a turn was asked."""

    spot: Spot | None = None
    discussions: tuple[Spot, ...] = ()
    """Those that it is to answer, in the order in which the agent knows them."""

    @property
    def asked(self) -> tuple[Spot, ...]:
        return self.discussions or ((self.spot,) if self.spot else ())


class OnFork(TurnPart, frozen=True):
    """Work on a pull request of a fork."""

    fork: Fork | None = None
    """Where its head lives. Nothing of that is trusted."""
    patch: str | None = None
    """The file on the host that holds the work as a patch."""


class BroughtHome(TurnPart, frozen=True):
    """What was noticed when the work came home."""

    blocked: tuple[dict[str, Any], ...] = ()
    """Hosts that the environment asked for and was refused."""
    left_out: tuple[tuple[str, str], ...] = ()
    """What git did not take of the work tree: the path, and why."""


def part(payload: Mapping[str, Any], of: type[P]) -> P:
    return msgspec.convert(payload.get(of.__name__, {}), of)


def with_parts(payload: Mapping[str, Any], parts: Iterable[TurnPart]) -> dict[str, Any]:
    found = {**payload, **{type(one).__name__: msgspec.to_builtins(one) for one in parts}}
    return {name: part for name, part in found.items() if part}


def without_words(payload: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    kept = {name: {key: part[key] for key in _FACTS.get(name, ()) if key in part} for name, part in payload.items()}
    return {name: part for name, part in kept.items() if part}
