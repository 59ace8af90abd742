"""Reads app.yml, the App that we ask GitHub for, and finds how a real App differs from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SOURCE = Path(__file__).with_name("app.yml")
_REASON = re.compile(r"^  (\w+): \w+ +# (.+)$", re.MULTILINE)
_RANKS = {"read": 1, "write": 2, "admin": 3}


@dataclass(frozen=True)
class Manifest:
    """The file before addresses are filled in."""

    content: Mapping[str, Any]
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why each permission is needed: its comment in the file."""

    @property
    def permissions(self) -> Mapping[str, str]:
        return dict(self.content["default_permissions"])

    @property
    def events(self) -> frozenset[str]:
        return frozenset(self.content["default_events"])

    def missing_permissions(self, granted: Mapping[str, str]) -> dict[str, str]:
        return {
            name: level
            for name, level in self.permissions.items()
            if _RANKS.get(granted.get(name, ""), 0) < _RANKS[level]
        }

    def missing_events(self, subscribed: frozenset[str]) -> list[str]:
        return sorted(self.events - subscribed)

    def filled(self, *, name: str, base_url: str, hook_url: str, public_url: str = "") -> dict[str, Any]:
        """Fill in the addresses: GitHub's form returns to `base_url`, and later sign-ins to either address."""
        places = dict.fromkeys(place for place in (public_url, base_url) if place)
        return {
            **self.content,
            "name": name,
            "hook_attributes": {"url": hook_url, "active": True},
            "redirect_url": f"{base_url}/setup/created",
            "callback_urls": [f"{place}/oauth/callback" for place in places],
        }


def read() -> Manifest:
    text = SOURCE.read_text(encoding="utf-8")
    asked = text.partition("\ndefault_permissions:\n")[2].partition("\n\n")[0]
    return Manifest(yaml.safe_load(text), dict(_REASON.findall(asked)))
