"""The way of one delivery through the modules is measured, and does not grow unnoticed."""

from __future__ import annotations

from pathlib import Path

from tests import walk

MOST = 172
"""Background work that happens to run meanwhile makes a difference of about ten."""


async def test_one_delivery_enters_no_more_modules_than_before() -> None:
    paths = await walk.walk()
    assert {Path("bot/web/webhooks.py"), Path("bot/sessions/flow.py"), Path("sandbox/execution.py")} <= {*paths}
    assert not [path for path in paths if "simulation" in path.parts]
    assert len(paths) <= MOST, walk.report(paths, files=False)
