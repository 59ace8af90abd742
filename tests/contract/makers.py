"""Every provider of environments, for the suites that each of them must pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sandbox.primitives import EnvironmentProvider, EnvironmentSpec

SPEC = EnvironmentSpec(labels={"session": "abcd1234", "kind": "test"}, public_repository=False)


def make_local(root: Path, agent: Path) -> EnvironmentProvider:
    from sandbox.local.provider import LocalProvider

    return LocalProvider(root, agent)


def make_plain(root: Path, agent: Path) -> EnvironmentProvider:
    from sandbox.plain import PlainProvider, PlainSettings

    (root / "sockets").mkdir(parents=True, exist_ok=True)
    return PlainProvider(PlainSettings(root / "plain", root / "sockets", agent))


MAKERS: dict[str, Callable[[Path, Path], EnvironmentProvider]] = {"local": make_local, "plain": make_plain}
KINDS = [*MAKERS, "e2b"]
