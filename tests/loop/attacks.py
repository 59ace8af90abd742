"""The attacks by name, each through its door. An attack returns when what it has sent was dealt with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tests.loop.field import Attack

A = TypeVar("A", bound=Attack)


@dataclass(frozen=True)
class Known:
    name: str
    door: str
    attack: Attack
    before: Attack | None = None
    """What leads to it, and is not measured."""


_ALL: dict[str, Known] = {}


def attack(name: str, door: str, before: Attack | None = None) -> Callable[[A], A]:
    def known(one: A) -> A:
        assert name not in _ALL
        _ALL[name] = Known(name, door, one, before)
        return one

    return known


def every() -> Mapping[str, Known]:
    from tests.loop import doors_agent, doors_flood, doors_github, doors_pages, doors_webhook  # noqa: F401 - they enter themselves

    return _ALL
