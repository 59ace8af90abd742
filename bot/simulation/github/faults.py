"""Faults of the simulated GitHub, and the record of its calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from starlette.types import ASGIApp, Scope

from bot.simulation import faults
from bot.simulation.faults import Cut
from bot.simulation.github.rest import BASE

Kind = Literal["fail", "fail_after", "delay", "hold", "reset", "lose", "truncate"]


@dataclass
class Call(faults.Call):
    """A call; its `path` is without the API's base."""

    credential: str = "none"
    """`app` (a JWT), `installation` (a token) or `none`."""


@dataclass
class Fault(faults.Fault):
    """A fault of GitHub. If a reused connection dies, git's HTTP client repeats the request, so git notices `lose` and
    `reset` on a push only with `times=2`."""

    kind: Kind
    status: int = 502


Faults: TypeAlias = faults.Faults[Fault]


class FaultyApp(faults.FaultyApp[Call, Fault]):
    def __init__(self, app: ASGIApp, faults: Faults, cut: Cut) -> None:
        super().__init__(app, faults, cut, [])

    def call_of(self, scope: Scope, headers: dict[str, str]) -> Call:
        return Call(scope["method"], scope["path"].removeprefix(BASE) or "/", headers=headers)

    def answered(self, call: Call, scope: Scope) -> None:
        call.credential = scope.get("forgehand.credential", "none")
