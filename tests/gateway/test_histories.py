"""Whatever happens to requests, what is counted is what the provider charges at least, and never much too much."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import slices
from tests.gateway.histories import bench, history

WHOLE = 10_000
SLICE = 60
EACH = 20


@pytest.mark.review("security-2")
@pytest.mark.review("suspected-2")
@pytest.mark.acceptance("D14")
@pytest.mark.parametrize("first", range(0, WHOLE if slices.EVERY else SLICE, EACH))
async def test_confirmed_and_not_confirmed_pass_the_limit_by_one_reserve_at_most(tmp_path: Path, first: int) -> None:
    """The whole of it: `python -m tests.gateway.histories`."""
    async with bench(tmp_path, first) as made:
        for seed in range(first, first + EACH):
            billed, counted, most = await history(made, seed)
            assert billed <= counted + 1e-9 and counted <= most + 1e-9
