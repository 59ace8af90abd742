"""The typed parts that only some turns store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from bot.models import Fork, Spot

_FACTS = {"HandedOver": ("posted",), "Merge": ("sha",), "TakenBack": ("turn",), "OnFork": ("fork",)}
"""Fields of a part that stay when the words of a repository are forgotten."""


class TurnPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every field has a default: `turn.part(Merge)` is an empty one if the turn has none.

    The store knows a part by the name of its class."""


P = TypeVar("P", bound=TurnPart)


class AgentReading(TurnPart, frozen=True):
    """The texts that the agent of a turn reads."""

    context: str | None = None
    instructions: str | None = None
    """Our rules, and those of the base branch, beside the prompt."""
    notes: tuple[str, ...] = ()
    """Sentences about everything that was cut or withheld."""
    ignored: tuple[str, ...] = ()
    """Paths of files that would steer an agent and were not used."""


class Places(TurnPart, frozen=True):
    """The places in a diff where people asked for the turn."""

    spot: Spot | None = None
    discussions: tuple[Spot, ...] = ()
    """Those that it answers, in the order in which the agent knows them."""

    @property
    def asked(self) -> tuple[Spot, ...]:
        return self.discussions or ((self.spot,) if self.spot else ())


class OnFork(TurnPart, frozen=True):
    """Work on a pull request of a fork."""

    fork: Fork | None = None
    """The home of its head. We trust nothing in it."""
    patch: str | None = None
    """The file on the host that holds the work as a patch."""


class BroughtHome(TurnPart, frozen=True):
    """Notes from bringing the work home."""

    blocked: tuple[dict[str, Any], ...] = ()
    """Hosts that the environment asked for and did not get."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Paths in the work tree that git did not take, each with the reason."""


def part(payload: Mapping[str, Any], of: type[P]) -> P:
    return msgspec.convert(payload.get(of.__name__, {}), of)


def with_parts(payload: Mapping[str, Any], parts: Iterable[TurnPart]) -> dict[str, Any]:
    found = {**payload, **{type(one).__name__: msgspec.to_builtins(one) for one in parts}}
    return {name: part for name, part in found.items() if part}


def without_words(payload: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    kept = {name: {key: part[key] for key in _FACTS.get(name, ()) if key in part} for name, part in payload.items()}
    return {name: part for name, part in kept.items() if part}
