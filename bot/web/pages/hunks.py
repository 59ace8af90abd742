"""Reads a patch for people: files and hunks within bounds, each hunk with the calls that wrote its lines. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bot.agent import diffs
from bot.agent.diffs import FileDiff
from bot.outbound.patches import is_binary
from bot.text import blocks
from bot.web.pages.edits import EditCall

MOST_FILES = 200
MOST_LINES = 6_000
MOST_LINES_EACH = 1_500
LONGEST_LINE = 400
MOST_CALLS = 5
_MODES = {"100755": "executable", "120000": "symbolic link", "160000": "submodule"}
_KINDS = {"+": "add", "-": "del", " ": "same"}
Lines = list[tuple[str, str]]
"""Pairs of (add, del, same or hunk; the line)."""


@dataclass
class ShownHunk:
    head: str
    lines: Lines = field(default_factory=list)
    calls: list[EditCall] = field(default_factory=list)
    """The calls that wrote most of it, in their order."""


@dataclass
class ShownFile:
    number: int
    path: str
    was: str = ""
    """Its former name, if it was renamed."""
    note: str = ""
    """Changes beside its lines: new, deleted, binary, another mode."""
    hunks: list[ShownHunk] = field(default_factory=list)
    added: int = 0
    removed: int = 0
    left_out: int = 0
    """Lines beyond the bounds."""


def shown(patch: str, calls: Iterable[EditCall]) -> list[ShownFile]:
    room, found, by_path = MOST_LINES, list[ShownFile](), dict[str, list[EditCall]]()
    for call in calls:
        by_path.setdefault(call.path, []).append(call)
    for number, part in enumerate(diffs.parse(patch)[:MOST_FILES], 1):
        file = _file(number, part, room)
        room -= sum(len(hunk.lines) for hunk in file.hunks)
        authors = by_path.get(file.path, [])
        last = _last_writers(authors)
        for hunk in file.hunks:
            most = Counter(last[line] for line in hunk.lines if line in last).most_common(MOST_CALLS)
            hunk.calls = [authors[at] for at in sorted(at for at, _ in most)]
        _make_visible(file)
        found.append(file)
    return found


def edited(calls: Iterable[EditCall]) -> list[ShownFile]:
    """Show what editing tools report, call by call: nobody has compared it with the files yet."""
    found: list[ShownFile] = []
    room = MOST_LINES
    ordered = sorted(calls, key=lambda one: one.path)
    for number, (path, group) in enumerate(groupby(ordered, key=lambda one: one.path), 1):
        if number > MOST_FILES:
            break
        file = ShownFile(number, path)
        for call in sorted(group, key=lambda one: one.at):
            file.added += sum(kind == "add" for kind, _ in call.diff)
            file.removed += sum(kind == "del" for kind, _ in call.diff)
            taken = call.diff[: max(0, min(room, MOST_LINES_EACH))]
            file.left_out += len(call.diff) - len(taken)
            room -= len(taken)
            if taken:
                file.hunks.append(ShownHunk("", list(taken), [call]))
        _make_visible(file)
        found.append(file)
    return found


def by_folder(files: Iterable[ShownFile]) -> list[tuple[str, list[ShownFile]]]:
    """Group the files for a tree: the folders in order, each with its files."""
    found: dict[str, list[ShownFile]] = {}
    for file in files:
        found.setdefault(file.path.rpartition("/")[0], []).append(file)
    return sorted(found.items())


def _last_writers(calls: Sequence[EditCall]) -> dict[tuple[str, str], int]:
    """Find for each changed line the last of these calls that has it."""
    found: dict[tuple[str, str], int] = {}
    for at, call in enumerate(calls):
        found |= {(kind, text): at for kind, text in call.diff if kind in ("add", "del") and text.strip()}
    return found


def _file(number: int, part: FileDiff, room: int) -> ShownFile:
    lines = part.text.split("\n")
    begin = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    names = part.names or ("?",)
    file = ShownFile(number, part.path or names[-1], names[0] if len(names) > 1 else "", _note(lines[:begin]))
    room = max(0, min(room, MOST_LINES_EACH))
    for kind, text in _body(lines[begin:]):
        if kind == "hunk":
            file.hunks.append(ShownHunk(text))
            continue
        file.added, file.removed = file.added + (kind == "add"), file.removed + (kind == "del")
        if room > 0 and file.hunks:
            file.hunks[-1].lines.append((kind, text))
            room -= 1
        else:
            file.left_out += 1
    file.hunks = [hunk for hunk in file.hunks if hunk.lines]
    return file


def _body(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each line with its kind. Only a line that begins like a hunk can begin one: others have a sign in front."""
    for line in lines:
        if line.startswith("@@ "):
            yield "hunk", line
        elif line.startswith("\\"):
            yield "same", f"({line[2:].lower()})"
        elif line:
            yield _KINDS.get(line[:1], "same"), line[1:]


def _note(head: Sequence[str]) -> str:
    """Say what the lines above the first hunk mean."""
    modes = [line.rpartition(" ")[2] for line in head if line.startswith(("old mode ", "new mode "))]
    new = next((line.rpartition(" ")[2] for line in head if line.startswith("new file mode ")), "")
    found = ["new" if new else "", _MODES.get(new, "")]
    found += ["deleted"] if any(line.startswith("deleted file ") for line in head) else []
    found += [f"mode {' → '.join(modes)}"] if modes else []
    found += ["binary"] if is_binary(list(head)) else []
    return ", ".join(filter(None, found))


def _make_visible(file: ShownFile) -> None:
    """Spell out what nobody sees, and cut what nobody reads."""
    file.path, file.was = visible(file.path), visible(file.was)
    for hunk in file.hunks:
        ends = all(text.endswith("\r") for kind, text in hunk.lines if kind != "same")
        hunk.head = visible(hunk.head)
        hunk.lines = [(kind, visible(text.removesuffix("\r") if ends else text)) for kind, text in hunk.lines]


def visible(text: str) -> str:
    cut = text[:LONGEST_LINE]
    plain = cut if cut.isascii() and cut.replace("\t", " ").isprintable() else blocks.spelled_out(cut)
    return plain if len(text) <= LONGEST_LINE else f"{plain} … {len(text) - LONGEST_LINE:,} characters more"
