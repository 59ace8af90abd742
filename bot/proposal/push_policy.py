"""Decides from the changes alone what may be pushed, what a person must allow, and what looks like a secret."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache

from bot.git import names
from bot.git.inspection import GITLINK, SYMLINK, Change
from bot.git.quarantine import Quarantine
from bot.outbound.redact import Redactor
from bot.words import quoting
from bot.words.quoting import shown

_FILE_MODES = ("100644", "100755", SYMLINK, GITLINK)
WORKFLOWS = ".github/workflows"
MAX_HOPS = 40


class Hold(StrEnum):
    """Why a path is held; only a workflow file can be approved by a person in a comment."""

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
    """Empty when the change as a whole is meant. May hold anything: escape it before showing it."""
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
    limits: ChangeLimits | None = None,
) -> PushVerdict:
    """`existing` are all paths of the new tree; with them, names that could be mistaken for each other are found."""
    limits = limits or ChangeLimits()
    held = [*_too_much(changes, limits)]
    for change in changes:
        held += filter(None, (_protected(change, blocked, workflows_approved), _unsafe(change, limits)))
    held += _loops(changes)
    held += _twins(
        [c.path for c in changes if c.status == "A"], existing or [c.path for c in changes if not c.is_deleted]
    )
    return PushVerdict(tuple(_first_each(held)), tuple(_notes(changes)))


def _first_each(held: Iterable[HeldPath]) -> Iterator[HeldPath]:
    seen: set[str] = set()
    for item in held:
        if item.path not in seen or not item.path:
            seen.add(item.path)
            yield item


def _too_much(changes: Sequence[Change], limits: ChangeLimits) -> Iterator[HeldPath]:
    if len(changes) > limits.max_files:
        yield HeldPath("", f"{len(changes)} files changed; at most {limits.max_files} are pushed", Hold.SIZE)
    total = sum(change.size for change in changes)
    if total > limits.max_total_bytes:
        yield HeldPath(
            "", f"{total >> 20} MiB of files changed; the limit is {limits.max_total_bytes >> 20}", Hold.SIZE
        )


def _protected(change: Change, blocked: Sequence[str], workflows_approved: bool) -> HeldPath | None:
    if is_workflow(change) and not workflows_approved:
        return HeldPath(change.path, "workflow files run with the repository's secrets", Hold.WORKFLOW)
    if pattern := next((pattern for pattern in blocked if matches(change.path, pattern)), None):
        return HeldPath(change.path, f"the repository's configuration blocks `{pattern}`", Hold.BLOCKED)
    return None


def is_workflow(change: Change) -> bool:
    """Also what would make a workflow folder out of something else: a link or a submodule in its place."""
    path = names.fold(change.path)
    if path.startswith(f"{WORKFLOWS}/"):
        return True
    return path in (".github", WORKFLOWS) and (not change.is_deleted or change.old_mode in (SYMLINK, GITLINK))


def _unsafe(change: Change, limits: ChangeLimits) -> HeldPath | None:
    if change.is_deleted:
        return None
    if fault := names.alias_fault(change.path):
        return HeldPath(change.path, fault, Hold.NAME)
    if change.new_mode not in _FILE_MODES:
        return HeldPath(change.path, f"mode {change.new_mode} is not one that a checkout makes", Hold.MODE)
    if change.new_mode == GITLINK or names.fold(change.path).rpartition("/")[2] == ".gitmodules":
        return HeldPath(change.path, "submodules are not added or moved", Hold.SUBMODULE)
    if change.new_mode == SYMLINK and (fault := link_fault(change.path, change.target)):
        return HeldPath(change.path, fault, Hold.LINK)
    if change.size > limits.max_file_bytes:
        size, most = change.size >> 20, limits.max_file_bytes >> 20
        return HeldPath(change.path, f"it has {size} MiB; at most {most} are pushed", Hold.SIZE)
    # A name that the repository already has is the repository's own choice.
    fault = names.path_fault(change.path) if change.status == "A" else None
    return HeldPath(change.path, fault, Hold.NAME) if fault else None


def link_fault(path: str, target: str | None) -> str | None:
    """Says why a symbolic link may not be pushed; None when it stays inside the tree on every system."""
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


def _loops(changes: Sequence[Change]) -> Iterator[HeldPath]:
    links = {c.path: r for c in changes if c.target and (r := _resolve(c.path, c.target)) is not None}
    for path in links:
        if _is_loop(path, links):
            yield HeldPath(path, "it is a link that leads back to itself", Hold.LINK)


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
    """New files or folders that a case-blind or composing file system would lay over others."""
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
        if other := next(filter(None, (_twin(prefix, known, settled) for prefix in _prefixes(path))), None):
            yield HeldPath(path, f"on some systems it is the same as {shown(other, 200)}", Hold.NAME)


def _twin(prefix: str, known: dict[str, set[str]], settled: set[str]) -> str | None:
    """Another spelling of a name that is not long in the repository beside it."""
    others = known.get(names.fold(prefix), set()) - {prefix}
    return min(others) if others and prefix not in settled else None


def _prefixes(path: str) -> Iterator[str]:
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)
    yield path


def _notes(changes: Sequence[Change]) -> Iterator[str]:
    if runnable := sum(c.new_mode == "100755" != c.old_mode for c in changes):
        yield f"{runnable} of the changed files became executable."
    if removed := sum(c.is_deleted and c.old_mode == GITLINK for c in changes):
        yield f"{removed} submodules were removed."


def matches(path: str, pattern: str) -> bool:
    """Case-blind. `*` stays within a folder, `**` does not; a folder holds all below it; no slash: at any depth."""
    wanted = names.fold(pattern).strip("/").split("/")
    if "/" not in pattern.strip("/") and not pattern.startswith("/"):
        wanted = ["**", *wanted]
    return _match(tuple(names.fold(path).split("/")), tuple(wanted))


@lru_cache(maxsize=4096)
def _match(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    if not wanted:
        return True
    if wanted[0] == "**":
        if len(wanted) == 1:
            return bool(parts)
        return any(_match(parts[i:], wanted[1:]) for i in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _match(parts[1:], wanted[1:])


MOST_NAMED = 5
MANY_FILES = 100
MANY_LINES = 2_000
MANY_BYTES = 1 << 20
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
    """Markdown that cannot act. `let_go_by`: who has allowed the workflow files."""
    return tuple(
        line
        for line in (
            *_sensitive(changes, sensitive),
            _workflows(changes, let_go_by),
            _listed("Lock files", [c.path for c in changes if c.path.rpartition("/")[2].lower() in LOCK_FILES]),
            _listed("Binary files", [c.path for c in changes if c.binary and c.has_blob]),
            _listed("Became executable", [c.path for c in changes if _runs(c.new_mode) and not _runs(c.old_mode)]),
            _listed("No longer executable", [c.path for c in changes if _runs(c.old_mode) and c.new_mode == "100644"]),
            _listed("Links", [c.path for c in changes if c.new_mode == SYMLINK]),
            _listed("Submodules removed", [c.path for c in changes if c.is_deleted and c.old_mode == GITLINK]),
            _size(changes),
        )
        if line
    )


def _sensitive(changes: Sequence[Change], patterns: Sequence[str]) -> Iterator[str]:
    for pattern in patterns:
        named = _listed("", [change.path for change in changes if matches(change.path, pattern)])
        if named:
            yield f"**Sensitive** (`paths.sensitive` names {shown(pattern, 100)}): {named}"


def _workflows(changes: Sequence[Change], let_go_by: str | None) -> str:
    named = _listed("Workflow files", [change.path for change in changes if is_workflow(change)])
    return f"{named}; {shown(let_go_by, 60)} has let this very commit go" if named and let_go_by else named


def _size(changes: Sequence[Change]) -> str:
    added, removed = sum(c.added for c in changes), sum(c.removed for c in changes)
    size = sum(c.size for c in changes)
    if len(changes) <= MANY_FILES and added + removed <= MANY_LINES and size <= MANY_BYTES:
        return ""
    biggest = max(changes, key=lambda change: change.size)
    return (
        f"**Large**: {len(changes):,} file{'s' * (len(changes) != 1)}, +{added:,} −{removed:,} lines; "
        f"the biggest is {shown(biggest.path, 200)} ({_bytes(biggest.size)})"
    )


def _listed(what: str, paths: Iterable[str]) -> str:
    found = list(paths)
    if not found:
        return ""
    return f"{f'**{what}**: ' if what else ''}{quoting.named(found, MOST_NAMED)}"


def _runs(mode: str) -> bool:
    return mode == "100755"


def _bytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB" if size >= 1 << 20 else f"{size / 1024:.1f} KiB"


PIECE = 256 << 10
OVERLAP = 32 << 10
MOST_BEFORE = 50 << 20


async def paths_with_secrets(quarantine: Quarantine, changes: Sequence[Change], redactor: Redactor) -> list[str]:
    """Paths whose content, or whose own name, holds something that the redactor would take out and that was not there:
    a test's key that has long been in the repository must not hold each change of its file.

    In a thread and in pieces: the redactor's views of a text take a hundred times its size, and a second a megabyte.
    """
    found = [change.path for change in changes if change.status == "A" and redactor.spans(change.path)]
    moved = {change.old_sha for change in changes if change.is_deleted}
    async for change, content in quarantine.blobs([one for one in changes if one.sha not in moved]):
        secrets = await asyncio.to_thread(_secrets, content, redactor)
        if secrets and not await _were_there(quarantine, change, secrets):
            found.append(change.path)
    return found


def _secrets(content: bytes, redactor: Redactor) -> set[str]:
    return {piece[start:end] for piece in _pieces(content) for start, end in redactor.spans(piece)}


async def _were_there(quarantine: Quarantine, change: Change, secrets: set[str]) -> bool:
    """Letter by letter, in the file that stood in the same place."""
    before = await quarantine.blob(change.old_sha, max_bytes=MOST_BEFORE) if change.had_blob else None
    text = _plain(before or b"").decode("utf-8", "replace")
    return all(secret in text for secret in secrets)


def _pieces(content: bytes) -> Iterator[str]:
    """They overlap by more than the longest secret, so that none hides on a border. UTF-16 is text with NULs in it."""
    plain = _plain(content)
    for start in range(0, max(1, len(plain)), PIECE):
        yield plain[max(0, start - OVERLAP) : start + PIECE].decode("utf-8", "replace")


def _plain(content: bytes) -> bytes:
    return content.replace(b"\0", b"")
