"""The world on each kind of environment, and a list of its environments."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from sandbox.local.folders import EnvironmentsFolder
from tests.e2b_stand_in import E2BStandIn
from tests.world import World
from tests.world.e2b import e2b_spine

CONFIG = ".github/forgehand.yml"
everywhere = pytest.mark.parametrize("kind", ["local", "e2b"])


@dataclass
class Place:
    world: World
    e2b: E2BStandIn | None = None

    @classmethod
    @asynccontextmanager
    async def running(cls, kind: str, root: Path, **changes: str) -> AsyncIterator[Self]:
        if kind == "e2b":
            async with e2b_spine(root, **changes) as (world, e2b):
                yield cls(world, e2b)
        else:
            async with World.running(root, **changes) as world:
                yield cls(world)

    @property
    def base(self) -> EnvironmentsFolder:
        return EnvironmentsFolder(self.world.environments)

    def there(self) -> list[str]:
        """Return the names of existing environments."""
        if self.e2b is not None:
            return [one.metadata["forgehand-key"] for one in self.e2b.live]
        return self.base.environment_ids()

    def configure(self, text: str, **files: str) -> None:
        self.world.github.commit(self.world.repo, "main", {CONFIG: text, **files})
