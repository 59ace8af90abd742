"""Configures package clients inside, for each command by itself: the gateway's address inside is new each time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GATEWAY = "gateway.forgehand.invalid:1"
"""Stands in files and variables for the gateway's host and port inside."""
FOLDER = "/folder.forgehand.invalid"
"""Stands for the folder of the files. It lies outside the work tree, and goes when the command has ended."""


@dataclass(frozen=True)
class PackageClients:
    files: Mapping[str, str] = field(repr=False)
    """Texts by path below the folder; they may hold a token that reads packages."""
    variables: Mapping[str, str] = field(repr=False)

    def spec(self) -> dict[str, Any]:
        """Build what `runner/clients.py` reads."""
        return {"files": dict(self.files), "variables": dict(self.variables), "gateway": GATEWAY, "folder": FOLDER}
