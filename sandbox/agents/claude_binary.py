"""Where the Claude Code binary is on this host: in the wheel that carries it; its Python API is never imported."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from sandbox.errors import IsolationMissing

FLOOR = (2, 1, 300)
"""Older ones lack flags that we lean on."""


def find() -> Path:
    """The binary, or a sentence that says how to get it."""
    spec = find_spec("claude_agent_sdk")
    folder = Path(spec.origin).parent / "_bundled" if spec and spec.origin else None
    if folder is None or not (folder / "claude").is_file():
        raise IsolationMissing(
            "The Claude Code binary is not installed: pip install 'forgehand[local]' brings it "
            "(its wheels are for glibc Linux and macOS; there is none for Alpine)."
        )
    if (version := _version(folder)) < FLOOR:
        found, least = (".".join(map(str, one)) for one in (version, FLOOR))
        raise IsolationMissing(
            f"Claude Code {found} is too old: pip install -U 'forgehand[local]' brings {least} or newer."
        )
    return folder / "claude"


def _version(folder: Path) -> tuple[int, ...]:
    try:
        text = (folder / "claude.version").read_text(encoding="utf-8")
    except OSError:
        return ()
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in match.groups()) if match else ()
