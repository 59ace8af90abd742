"""`python -m tests.command_table` writes README's table of commands, which is the one of `bot/handlers/table.py`."""

from __future__ import annotations

import re
from pathlib import Path

from bot.handlers.table import TABLE

README = Path(__file__).parents[1] / "README.md"
_ROWS = re.compile(
    r"(?<=^<summary>All commands</summary>\n\n\| comment \| what happens \|\n\|---\|---\|\n)(?:\|.*\n)+", re.M
)


def rows() -> str:
    return "".join(f"| `/claude {one.usage}` | {one.what} |\n" for one in TABLE)


if __name__ == "__main__":
    README.write_text(_ROWS.sub(lambda _: rows(), README.read_text(encoding="utf-8"), count=1), encoding="utf-8")
