"""Fixtures: each provider in turn, and an environment of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from sandbox.errors import IsolationMissing
from sandbox.primitives import EnvironmentPrimitives, EnvironmentProvider
from tests.contract.makers import KINDS, MAKERS, SPEC
from tests.world.e2b import e2b_maker
from tests.world.environments import short_folder, small_agent


@pytest.fixture
def root() -> Iterator[Path]:
    with short_folder() as found:
        yield found


@pytest.fixture(params=KINDS)
async def make(request: pytest.FixtureRequest, root: Path) -> AsyncIterator[Callable[[], EnvironmentProvider]]:
    agent = small_agent(root)
    if request.param == "e2b":
        async with e2b_maker(root, agent) as found:
            yield found
    else:
        yield lambda: MAKERS[request.param](root / "env", agent)


@pytest.fixture
async def provider(make: Callable[[], EnvironmentProvider]) -> AsyncIterator[EnvironmentProvider]:
    found = make()
    try:
        await found.find({})
    except IsolationMissing as error:
        pytest.skip(str(error))
    yield found
    for environment in await found.find({}):
        await environment.terminate()
    await found.close()


@pytest.fixture
async def env(provider: EnvironmentProvider) -> EnvironmentPrimitives:
    return await provider.create("one", SPEC)
