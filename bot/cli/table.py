"""A table in the terminal: a line of headers, columns that line up, and no column that would be empty."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import typer

from bot.cli import console

GAP = "  "
LEAST_LAST = 20
"""The last column is cut to the terminal's width, but never below this."""


@dataclass(frozen=True)
class Column:
    title: str
    cell: Callable[[Any], str]
    right: bool = False
    """Numbers end at the right."""


def print_table(
    rows: Sequence[Any], columns: Sequence[Column], *, as_json: bool, none: str = "", end: str = ""
) -> None:
    """Print rows as JSON or as a table; `none` says that there are no rows, `end` is the line below them."""
    if as_json:
        console.print_json([asdict(row) if is_dataclass(row) and not isinstance(row, type) else row for row in rows])
        return
    if not rows:
        typer.echo(none or end)
        return
    header, *lines = laid_out(rows, columns, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
    typer.secho(header, bold=True)
    typer.echo("\n".join(lines))
    if end:
        typer.echo(end)


def laid_out(rows: Sequence[Any], columns: Sequence[Column], width: int | None) -> list[str]:
    """Return the header and a line for each row; `width` cuts the last column."""
    from bot.text.blocks import shown

    # one line for each row, without the control characters of what people or agents wrote
    filled = [(one, [" ".join(shown(one.cell(row)).split()) for row in rows]) for one in columns]
    filled = [(one, cells) for one, cells in filled if any(cells)]
    table = [[one.title for one, _ in filled], *zip(*(cells for _, cells in filled), strict=True)]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    if width is not None and not filled[-1][0].right:
        widths[-1] = min(widths[-1], max(LEAST_LAST, width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)))
    aligned = [(one.right, room) for (one, _), room in zip(filled, widths, strict=True)]
    lines = []
    for line in table:
        pieces = []
        for cell, (right, room) in zip(line, aligned, strict=True):
            cut = cell if len(cell) <= room else f"{cell[: room - 1]}…"
            pieces.append(cut.rjust(room) if right else cut.ljust(room))
        lines.append(GAP.join(pieces).rstrip())
    return lines
