"""The attacks by name, each through its door. An attack returns when what it has sent was dealt with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.loop.field import Attack


@dataclass(frozen=True)
class Known:
    name: str
    door: str
    attack: Attack
    awaits: str = ""


_ALL: dict[str, Known] = {}


def attack(name: str, door: str) -> Callable[[Attack], Attack]:
    def known(one: Attack) -> Attack:
        assert name not in _ALL
        _ALL[name] = Known(name, door, one)
        return one

    return known


def every() -> Mapping[str, Known]:
    from tests.loop import doors  # noqa: F401 - they enter themselves

    return _ALL
