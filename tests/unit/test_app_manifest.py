"""app.yml asks for what the code uses, and for nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bot import events

SOURCE = (Path(__file__).parents[2] / "app.yml").read_text(encoding="utf-8")


def manifest() -> dict[str, Any]:
    found = yaml.safe_load(SOURCE)
    assert isinstance(found, dict)
    return found


def test_the_events_are_those_that_we_handle() -> None:
    assert set(manifest()["default_events"]) == events.HANDLED_EVENTS - events.AUTOMATIC_EVENTS
    assert set(manifest()["default_events"]) == events.SUBSCRIBED_EVENTS


def test_the_permissions_are_the_least() -> None:
    assert manifest()["default_permissions"] == {
        "metadata": "read",
        "contents": "write",
        "issues": "write",
        "pull_requests": "write",
        "checks": "write",
        "members": "read",
        "actions": "read",
        "statuses": "read",
    }
    assert manifest()["public"] is False


def test_every_permission_and_event_gives_its_reason() -> None:
    names = [*manifest()["default_permissions"], *manifest()["default_events"]]
    for name in names:
        line = next(one for one in SOURCE.splitlines() if one.strip(" -").split(":")[0].split(" ")[0] == name)
        assert "#" in line, f"{name} has no reason beside it"
