"""Decide from the changes alone what may be pushed, what a person must allow, and what looks like a secret."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from bot.git import names, submodules
from bot.git.inspection import GITLINK, SYMLINK, Change
from bot.git.quarantine import Quarantine
from bot.outbound.redact import Redactor
from bot.text import markup
from bot.text.markup import shown

EXECUTABLE = "100755"
_FILE_MODES = ("100644", EXECUTABLE, SYMLINK, GITLINK)
WORKFLOWS = ".github/workflows"
MAX_HOPS = 40
MOST_NAMED = 5
MANY_FILES = 100
MANY_LINES = 2_000
MANY_BYTES = 1 << 20
PIECE = 256 << 10
OVERLAP = 32 << 10
MOST_BEFORE = 50 << 20
MOST_TRIED = 5_000
"""More than a push may change."""
MOST_TRIED_LETTERS = 1_000_000


class Hold(StrEnum):
    """The reason why a path is held; only a workflow file can be approved in a comment."""

    WORKFLOW = "workflow"
    BLOCKED = "blocked"
    LINK = "link"
    SUBMODULE = "submodule"
    NAME = "name"
    SIZE = "size"
    MODE = "mode"


@dataclass(frozen=True)
class HeldPath:
    path: str
    """Empty for the change as a whole. May hold anything: escape it before showing it."""
    why: str
    kind: Hold


@dataclass(frozen=True)
class PushVerdict:
    held: tuple[HeldPath, ...]
    notes: tuple[str, ...] = ()

    @property
    def may_push(self) -> bool:
        return not self.held


@dataclass(frozen=True)
class ChangeLimits:
    max_files: int = 3000
    max_file_bytes: int = 50 << 20
    max_total_bytes: int = 200 << 20


def check(  # the parameters are the rules
    changes: Sequence[Change],
    *,
    blocked: Sequence[str] = (),
    workflows_approved: bool = False,
    existing: Collection[str] = (),
    pointers: Mapping[str, str | None] | None = None,
    limits: ChangeLimits | None = None,
) -> PushVerdict:
    """`existing` are all paths of the new tree; they show which names could be mistaken for each other. `pointers`:
    submodules that may move, or the reason why one may not."""
    limits = limits or ChangeLimits()
    whole = [*_too_much(changes, limits)]
    held: list[HeldPath] = []
    for change in changes:
        unsafe = _unsafe(change, limits, pointers or {})
        held += filter(None, (_protected(change, blocked, workflows_approved), unsafe))
    links = {c.path: r for c in changes if c.target and (r := _resolve(c.path, c.target)) is not None}
    held += [
        HeldPath(path, "it is a link that leads back to itself", Hold.LINK) for path in links if _is_loop(path, links)
    ]
    added = [change.path for change in changes if change.status == "A"]
    held += _twins(added, existing or [change.path for change in changes if not change.is_deleted])
    first_of_each = {one.path: one for one in reversed(held)}
    return PushVerdict((*whole, *(one for one in held if one is first_of_each[one.path])), tuple(_notes(changes)))


def _too_much(changes: Sequence[Change], limits: ChangeLimits) -> Iterator[HeldPath]:
    if len(changes) > limits.max_files:
        yield HeldPath("", f"{len(changes)} files changed; at most {limits.max_files} are pushed", Hold.SIZE)
    total, most = sum(change.size for change in changes), limits.max_total_bytes
    if total > most:
        yield HeldPath("", f"{total >> 20} MiB of files changed; the limit is {most >> 20}", Hold.SIZE)


def _protected(change: Change, blocked: Sequence[str], workflows_approved: bool) -> HeldPath | None:
    if is_workflow(change) and not workflows_approved:
        return HeldPath(change.path, "workflow files run with the repository's secrets", Hold.WORKFLOW)
    if pattern := next((pattern for pattern in blocked if matches(change.path, pattern)), None):
        return HeldPath(change.path, f"the repository's configuration blocks `{pattern}`", Hold.BLOCKED)
    return None


def is_workflow(change: Change) -> bool:
    """Decide whether it is a workflow file, or a link or submodule in the place of a workflow folder."""
    path = names.fold(change.path)
    if path.startswith(f"{WORKFLOWS}/"):
        return True
    return path in (".github", WORKFLOWS) and (not change.is_deleted or change.old_mode in (SYMLINK, GITLINK))


def _unsafe(change: Change, limits: ChangeLimits, pointers: Mapping[str, str | None]) -> HeldPath | None:
    if change.is_deleted:
        return None
    if fault := names.alias_fault(change.path):
        return HeldPath(change.path, fault, Hold.NAME)
    if change.new_mode not in _FILE_MODES:
        return HeldPath(change.path, f"mode {change.new_mode} is not one that a checkout makes", Hold.MODE)
    if fault := _submodule_fault(change, pointers):
        return HeldPath(change.path, fault, Hold.SUBMODULE)
    if change.new_mode == SYMLINK and (fault := link_fault(change.path, change.target)):
        return HeldPath(change.path, fault, Hold.LINK)
    if change.size > limits.max_file_bytes:
        size, most = change.size >> 20, limits.max_file_bytes >> 20
        return HeldPath(change.path, f"it has {size} MiB; at most {most} are pushed", Hold.SIZE)
    # A name that the repository already has is the repository's own choice.
    fault = names.path_fault(change.path) if change.status == "A" else None
    return HeldPath(change.path, fault, Hold.NAME) if fault else None


def _submodule_fault(change: Change, pointers: Mapping[str, str | None]) -> str | None:
    is_link = change.new_mode == GITLINK
    if is_link and change.old_mode == GITLINK and change.path in pointers:
        return pointers[change.path]
    if is_link or names.fold(change.path).rpartition("/")[2] == submodules.FILE:
        return "submodules are not added or moved"
    return None


def link_fault(path: str, target: str | None) -> str | None:
    """Say why a symbolic link may not be pushed; None if it stays inside the tree on every system."""
    if not target or len(target) > 1024 or any(ord(c) < 32 or ord(c) == 127 for c in target):
        return "it is a link to something that is not a path"
    if target.startswith(("/", "\\")) or target[1:2] == ":":
        return "it is a link to an absolute path"
    components = [part for part in target.replace("\\", "/").split("/") if part not in ("", ".")]
    ups = next((i for i, part in enumerate(components) if part != ".."), len(components))
    if ups > path.count("/"):
        return "it is a link that leaves the repository"
    if ".." in components[ups:]:
        # Behind another link `..` is somewhere else than it reads.
        return "it is a link that goes down and up again"
    if any(names.is_git_alias(part) for part in components):
        return "it is a link into git's own folder"
    return None


def _resolve(path: str, target: str) -> str | None:
    parts = path.split("/")[:-1]
    for part in target.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _is_loop(path: str, links: dict[str, str]) -> bool:
    """Follow the links that this change knows, also those passed through, as far as a system would."""
    here = links[path]
    for _ in range(MAX_HOPS):
        parts = here.split("/")
        link = next((p for i in range(len(parts)) if (p := "/".join(parts[: i + 1])) in links), None)
        if link is None:
            return False
        here = f"{links[link]}{here[len(link) :]}".lstrip("/")
    return True


def _twins(added: Sequence[str], existing: Collection[str]) -> Iterator[HeldPath]:
    """Find new files or folders that a case-blind or composing file system would lay over others."""
    wanted = {names.fold(prefix) for path in added for prefix in _prefixes(path)}
    fresh = set(added)
    settled: set[str] = set()
    known: dict[str, set[str]] = {}
    for path in existing if wanted else ():
        for prefix, folded in zip(_prefixes(path), _prefixes(names.fold(path)), strict=True):
            if folded in wanted:
                known.setdefault(folded, set()).add(prefix)
                settled |= set() if path in fresh else {prefix}
    for path in added:
        for prefix in _prefixes(path):
            others = known.get(names.fold(prefix), set()) - {prefix}
            if others and prefix not in settled:
                yield HeldPath(path, f"on some systems it is the same as {shown(min(others), 200)}", Hold.NAME)
                break


def _prefixes(path: str) -> Iterator[str]:
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)
    yield path


def _notes(changes: Sequence[Change]) -> Iterator[str]:
    if runnable := sum(c.new_mode == EXECUTABLE != c.old_mode for c in changes):
        yield f"{runnable} of the changed files became executable."
    if removed := sum(c.is_deleted and c.old_mode == GITLINK for c in changes):
        yield f"{removed} submodules were removed."


def matches(path: str, pattern: str) -> bool:
    """Match case-blind. `*` stays in a folder, `**` does not; a folder holds all below it; no slash: at any depth."""
    wanted = [_closed(part) for part in names.fold(pattern).strip("/").split("/")]
    if "/" not in pattern.strip("/") and not pattern.startswith("/"):
        wanted = ["**", *wanted]
    return _match(tuple(names.fold(path).split("/")), tuple(wanted))


def are_too_many(paths: Sequence[str]) -> bool:
    """Decide whether patterns are not even tried: each takes time for each letter of these paths."""
    return len(paths) > MOST_TRIED or sum(map(len, paths)) > MOST_TRIED_LETTERS


def _closed(part: str) -> str:
    """Make a letter of each bracket that nobody closes: fnmatch would look for its end again and again."""
    before, end, rest = part.rpartition("]")
    return before + end + rest.replace("[", "[[]")


def _match(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Follow all ways through the pattern at once, so that no pattern takes longer than its length times the path's."""
    last, at = len(wanted) - 1, {0}
    for part in parts:
        # `**` may stand for nothing, except at the end.
        for place in range(last):
            if place in at and wanted[place] == "**":
                at.add(place + 1)
        if last in at and wanted[last] == "**":
            return True
        more = {place for place in at if wanted[place] == "**"}
        at = more | {place + 1 for place in at - more if fnmatchcase(part, wanted[place])}
        if last + 1 in at:
            return True
        if not at:
            break
    return False


LOCK_FILES = frozenset(
    (
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"),
        *("deno.lock", "poetry.lock", "pdm.lock", "uv.lock", "pipfile.lock", "requirements.lock", "cargo.lock"),
        *("gemfile.lock", "composer.lock", "go.sum", "mix.lock", "pubspec.lock", "packages.lock.json", "flake.lock"),
        *("gradle.lockfile", "package.resolved", "podfile.lock", ".terraform.lock.hcl", "conan.lock"),
    )
)


def look_closely(
    changes: Sequence[Change], *, sensitive: Sequence[str] = (), let_go_by: str | None = None
) -> tuple[str, ...]:
    """Write markdown that cannot act. `let_go_by` allowed the workflow files."""
    let_go = f"; {shown(let_go_by, 60)} approved exactly this commit" if let_go_by else ""
    found = [
        *(
            (
                f"**Sensitive** (`push.sensitive` names {shown(one, 100)})",
                [c.path for c in changes if matches(c.path, one)],
            )
            for one in sensitive
        ),
        (workflow_files := "**Workflow files**", [c.path for c in changes if is_workflow(c)]),
        ("**Lock files**", [c.path for c in changes if c.path.rpartition("/")[2].lower() in LOCK_FILES]),
        ("**Binary files**", [c.path for c in changes if c.binary and c.has_blob]),
        ("**Became executable**", [c.path for c in changes if c.new_mode == EXECUTABLE != c.old_mode]),
        ("**No longer executable**", [c.path for c in changes if c.old_mode == EXECUTABLE and c.new_mode == "100644"]),
        ("**Links**", [c.path for c in changes if c.new_mode == SYMLINK]),
        ("**Submodules moved**", [c.path for c in changes if c.old_mode == c.new_mode == GITLINK]),
        ("**Submodules removed**", [c.path for c in changes if c.is_deleted and c.old_mode == GITLINK]),
    ]
    lines = [
        f"{what}: {markup.named(paths, MOST_NAMED)}{let_go if what is workflow_files else ''}"
        for what, paths in found
        if paths
    ]
    return (*lines, *filter(None, [_size(changes)]))


def _size(changes: Sequence[Change]) -> str:
    added, removed = sum(c.added for c in changes), sum(c.removed for c in changes)
    size = sum(c.size for c in changes)
    if len(changes) <= MANY_FILES and added + removed <= MANY_LINES and size <= MANY_BYTES:
        return ""
    biggest = max(changes, key=lambda change: change.size)
    most = f"{biggest.size / (1 << 20):.1f} MiB" if biggest.size >= 1 << 20 else f"{biggest.size / 1024:.1f} KiB"
    return (
        f"**Large**: {len(changes):,} file{'s' * (len(changes) != 1)}, +{added:,} −{removed:,} lines; "
        f"the biggest is {shown(biggest.path, 200)} ({most})"
    )


async def paths_with_secrets(quarantine: Quarantine, changes: Sequence[Change], redactor: Redactor) -> list[str]:
    """Find paths whose name or content brings something that the redactor would take out. An old key of a test must
    not hold each change of its file.

    Read in a thread and in pieces: the redactor needs a hundred times a text's size, and a second for a megabyte.
    """
    found = [change.path for change in changes if change.status == "A" and redactor.spans(change.path)]
    moved = {change.old_sha for change in changes if change.is_deleted}
    async for change, content in quarantine.blobs([one for one in changes if one.sha not in moved]):
        if secrets := await asyncio.to_thread(_secrets, content, redactor):
            before = await quarantine.blob(change.old_sha, max_bytes=MOST_BEFORE) if change.had_blob else None
            known = _without_nuls(before or b"").decode("utf-8", "replace")
            found += [change.path] if any(secret not in known for secret in secrets) else []
    return found


def _secrets(content: bytes, redactor: Redactor) -> set[str]:
    """Read pieces that overlap by more than the longest secret."""
    plain, found = _without_nuls(content), set[str]()
    for start in range(0, max(1, len(plain)), PIECE):
        piece = plain[max(0, start - OVERLAP) : start + PIECE].decode("utf-8", "replace")
        found |= {piece[first:end] for first, end in redactor.spans(piece)}
    return found


def _without_nuls(content: bytes) -> bytes:
    """UTF-16 is text with NULs in it."""
    return content.replace(b"\0", b"")
