"""What a reader of the pull request should know of the change beside its diff: short, and often nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bot.git.changes import GITLINK, SYMLINK, Change
from bot.publish.policy import is_workflow, matches
from bot.words import quoting
from bot.words.quoting import shown

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


def lines(changes: Sequence[Change], *, sensitive: Sequence[str] = (), let_go_by: str | None = None) -> tuple[str, ...]:
    """Markdown that cannot act. `let_go_by`: who has allowed the workflow files."""
    return tuple(
        line
        for line in (
            *_sensitive(changes, sensitive),
            _workflows(changes, let_go_by),
            _listed("Lock files", [c.path for c in changes if _name(c) in LOCK_FILES]),
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
    """Where it is more than somebody reads in one go."""
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


def _name(change: Change) -> str:
    return change.path.rpartition("/")[2].lower()


def _runs(mode: str) -> bool:
    return mode == "100755"


def _bytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB" if size >= 1 << 20 else f"{size / 1024:.1f} KiB"
