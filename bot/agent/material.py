"""The parts of a prompt: texts of the thread, discussions, the repository's rules; how they share the room."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bot.models import Spot
from bot.text.blocks import plain
from bot.text.visible import as_written


@dataclass(frozen=True)
class ThreadText:
    author: str
    trusted: bool
    """The author has write access, so the words are instruction."""
    body: str
    at: str = ""
    changed_since: bool = False
    """Withheld, since nobody approved the text after its edit."""
    kind: str = "comment"
    """The kind and place of the text, in words."""


@dataclass(frozen=True)
class Diff:
    text: str
    between: str = ""
    """The pinned commits, in words."""
    cut: bool = False
    """The end was not read."""
    unread: tuple[str, ...] = ()
    """Files whose change was not read in full."""


@dataclass(frozen=True)
class Log:
    """The log of a failed check; its end tells the most."""

    name: str
    text: str


@dataclass(frozen=True)
class Picture:
    """An image in a trusted person's text, in a file beside the prompt."""

    file: str
    where: str


@dataclass(frozen=True)
class Material:
    """Everything that a prompt may be made of; nothing in it has been cleaned yet."""

    kind: str
    repo: str
    number: int
    is_pull: bool
    requester: str
    request: str
    title: str
    opening: ThreadText
    remarks: Sequence[ThreadText] = ()
    """Oldest first, without our own and without the one that holds the command."""
    diff: Diff | None = None
    logs: Sequence[Log] = ()
    pictures: Sequence[Picture] = ()
    missing: Sequence[str] = ()
    extras: Sequence[tuple[str, str]] = ()
    public: bool = True
    read_outsiders: bool = False
    discussions: Sequence[str] = ()
    """The places of the discussions that the request is about, in words."""
    resumed: bool = False
    """The agent knows the thread from its earlier turn: only `remarks` are new."""


@dataclass(frozen=True)
class Prompt:
    text: str
    notes: tuple[str, ...] = field(default=())
    """Sentences about what was cut or withheld, for the agent and for the reader."""
    files: Mapping[str, str] = field(default_factory=dict)
    """By name: the whole of texts that were too long."""
    untrusted: bool = False
    """It has words of somebody who may not write here, or of an unknown author."""


CUT = "[… cut here …]"


@dataclass(frozen=True)
class RoomClaim:
    size: int
    weight: int = 1


def allot(room: int, claims: Mapping[str, RoomClaim]) -> dict[str, int]:
    """Give each its bytes: never more than it claims, and all of the room while anybody claims more than they got."""
    got = dict.fromkeys(claims, 0)
    left, open_claims = max(0, room), dict(claims)
    while open_claims:
        whole = sum(claim.weight for claim in open_claims.values())
        content = {name: one for name, one in open_claims.items() if one.size * whole <= left * one.weight}
        if not content:
            return got | {name: left * one.weight // whole for name, one in open_claims.items()}
        for name, one in content.items():
            got[name] = one.size
            left -= one.size
            del open_claims[name]
    return got


def size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def beginning(text: str, room: int) -> str:
    mark = f"\n{CUT}"
    raw = text.encode("utf-8", "replace")[: max(0, room - size(mark))]
    return raw.decode("utf-8", "ignore").rstrip() + mark


def ending(text: str, room: int) -> str:
    mark = f"{CUT}\n"
    kept = max(0, room - size(mark))
    raw = text.encode("utf-8", "replace")
    return mark + raw[len(raw) - min(kept, len(raw)) :].decode("utf-8", "ignore").lstrip()


MOST = 50
_LINE = re.compile(
    r"[\s>*_`#-]{0,8}D(\d{1,3})\b[*_`]{0,3}[ \t]*+(?:\((open|done)\))?[*_`]{0,3}[ \t]*+:[ \t*_`]*+(.*)",
    re.IGNORECASE,
)
"""Matches also with markdown around it."""


class DiscussionState(StrEnum):
    """The state of a discussion in the agent's words; if it says nothing, the change tells."""

    OPEN = "open"
    DONE = "done"
    UNSAID = ""


@dataclass(frozen=True)
class DiscussionAnswer:
    words: str
    standing: DiscussionState


def discussion_name(number: int) -> str:
    return f"D{number}"


def discussion_place(spot: Spot) -> str:
    """Name the place; the line is unknown if it is gone from the diff, or if the whole file was meant."""
    if spot.line is None:
        return spot.path
    lines = f"lines {spot.start_line} to {spot.line}" if spot.start_line else f"line {spot.line}"
    return f"{lines} of {spot.path}{' as it was before' if spot.older else ''}"


def distinct_places(spots: Iterable[Spot]) -> list[Spot]:
    found: dict[int, Spot] = {}
    for spot in spots:
        found.setdefault(spot.comment_id, spot)
    return list(found.values())[:MOST]


def answers_to_discussions(text: str) -> dict[int, DiscussionAnswer]:
    """Read the answers by number: each begins with a discussion's name and ends at a blank line."""
    words: dict[int, list[str]] = {}
    standing: dict[int, DiscussionState] = {}
    at: int | None = None
    for line in text.splitlines():
        if match := _LINE.match(line):
            at = int(match[1])
            words[at], standing[at] = [match[3].strip()], DiscussionState((match[2] or "").lower())
        elif at is not None and line.strip():
            words[at].append(line.strip())
        else:
            at = None
    return {one: DiscussionAnswer("\n".join(said).strip(), standing[one]) for one, said in words.items()}


def is_settled(spot: Spot, answer: DiscussionAnswer | None, changed: Sequence[str]) -> bool:
    """Decide whether a pushed change settles it: the agent says so, or says nothing and the file was touched."""
    standing = answer.standing if answer else DiscussionState.UNSAID
    return standing is DiscussionState.DONE or (standing is DiscussionState.UNSAID and spot.path in changed)


CLAUDE, AGENTS = "CLAUDE.md", "AGENTS.md"
MAX_BYTES = 40_000
"""The limit for each file: every request of an agent reads its rules again."""
MAX_BYTES_IN_ALL = 80_000
MOST_NESTED = 30
MOST_NAMED = 10
KNOW_HOW = (".claude/skills/", ".claude/agents/", ".claude/commands/")
"""Folders whose files reach the agent as a plugin."""
_RULES = frozenset((CLAUDE, AGENTS, "CLAUDE.local.md"))
_FOLDERS = frozenset((".claude", ".githooks", ".husky"))
_FILES = frozenset((".mcp.json", ".gitmodules", ".gitconfig"))
_CONFIG = frozenset((".github/forgehand.yml",))


@dataclass(frozen=True)
class Rulebook:
    """The rules for agents on the base branch of the repository."""

    branch: str
    files: tuple[tuple[str, str], ...] = ()
    """The files that apply from the start, by name: those at the top, and of the folders that the turn is about."""
    nested: tuple[str, ...] = ()
    """The paths of those in other folders; the agent gets them when it comes there."""
    paths: tuple[str, ...] = ()
    """All files of the branch."""
    unused: tuple[str, ...] = ()
    has_know_how: bool = False


def nested_rules(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if path.endswith((f"/{CLAUDE}", f"/{AGENTS}")))


def rule_names(path: str) -> str:
    return re.sub(r"[^\w./@:+ -]", "?", plain(path))[:200]


def steering_rules(path: str) -> str | None:
    """Return the file or folder by which a path would steer an agent or git; None for all others."""
    parts = path.split("/")
    for depth, part in enumerate(parts[:-1], 1):
        if part in _FOLDERS:
            return "/".join(parts[:depth]) + "/"
    return path if parts[-1] in _RULES | _FILES or path in _CONFIG else None


def unused_rules(paths: Iterable[str]) -> tuple[str, ...]:
    found = (path for path in paths if path == ".mcp.json" or path.startswith(".claude/"))
    kept = ("/".join(path.split("/")[:2]) for path in found if not path.startswith(KNOW_HOW))
    return tuple(dict.fromkeys(map(rule_names, kept)))


def ignored_rules(paths: Iterable[str]) -> tuple[str, ...]:
    """Pick the changed paths that have no effect on the pull request's own run."""
    return tuple(dict.fromkeys(found for path in paths if (found := steering_rules(path))))


def note_on_ignored(ignored: Sequence[str], base: str) -> list[str]:
    if not ignored:
        return []
    rest = f" and {len(ignored) - MOST_NAMED} more" if len(ignored) > MOST_NAMED else ""
    named = ", ".join(map(rule_names, ignored[:MOST_NAMED])) + rest
    return [f"what the pull request itself says to agents and tools ({named}): that of {base} counts"]


def rule_instructions(own: str, book: Rulebook, config: str) -> tuple[str, list[str]]:
    """Join our instructions and the repository's; return also sentences about what was cut."""
    notes: list[str] = []
    parts, left = [own.strip()], MAX_BYTES_IN_ALL
    for name, text in book.files:
        words = _bounded(name, text, notes, left)
        left -= size(words)
        parts += [f"# {name} of the branch {rule_names(book.branch)}\n\n{words}"] if words else []
    if config:
        parts.append(f"# Instructions of .github/forgehand.yml\n\n{as_written(config).text.strip()}")
    if book.nested:
        rows = [f"- {rule_names(path)}" for path in book.nested[:MOST_NESTED]]
        rows += [f"- and {len(book.nested) - MOST_NESTED} more"] if len(book.nested) > MOST_NESTED else []
        head = "You are given these when you first touch a file of their folder, as they are on the base branch:"
        parts.append("\n".join(["# Rules of single folders", "", head, "", *rows]))
    return "\n\n".join(parts) + "\n", notes


def _bounded(name: str, text: str, notes: list[str], left: int) -> str:
    """Leave out what the page hides: nobody has agreed to that."""
    most = min(MAX_BYTES, left)
    words = as_written(text).text.strip() if most > size(CUT) else ""
    if words and size(words) <= most:
        return words
    why = f"it is longer than {MAX_BYTES // 1000} KB"
    if most < MAX_BYTES:
        why = f"all rules together are longer than {MAX_BYTES_IN_ALL // 1000} KB"
    notes += [f"the end of {name}: {why}"] if text.strip() else []
    return beginning(words, most) if words else ""
