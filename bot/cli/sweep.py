"""Searches everything that a run left or said for credentials, in every encoding that could hide them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote


def credentials_in(
    values: Sequence[str], said_to_model: Iterable[Any], comments: Iterable[str], database: Path
) -> list[str]:
    """Name the places. The agent's environment shows in what it tells the model."""
    places: list[tuple[str, bytes]] = [
        ("what the agent told the model", json.dumps(list(said_to_model), default=str, ensure_ascii=False).encode()),
        ("comments", "\n".join(comments).encode()),
    ]
    files = sorted(database.parent.glob(f"{database.name}*"))
    places += [(f"the file {file.name}", file.read_bytes()) for file in files]
    forms = [form for value in values for form in forms_of(value)]
    return [name for name, content in places if any(form in content for form in forms)]


def forms_of(value: str) -> list[bytes]:
    """Return the encodings of a value; of a private key, those of each line, because JSON would split the key."""
    parts = [line for line in value.splitlines() if len(line) > 30 and "-----" not in line] or [value]
    found: list[bytes] = []
    for part in parts:
        raw = part.encode()
        found += [raw, base64.b64encode(raw).rstrip(b"="), raw.hex().encode(), quote(part, safe="").encode()]
    return found
