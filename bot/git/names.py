"""Which names of branches and paths are safe, for git and for every file system that a clone may land on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from bot.git.errors import BadName

_BAD_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)")

_SHA = re.compile(r"[0-9a-f]{40}")
_SHORT_GIT = re.compile(r"git~[0-9]+")
_MAX_REF = 240
OWN_REFS = "refs/forgehand/"


def is_sha(text: str) -> bool:
    return _SHA.fullmatch(text) is not None


def is_branch(name: str) -> bool:
    """What git's own rules accept and no command takes for an option; any script of the world is fine."""
    if not name or name == "@" or name[0] in "-./" or name[-1] in "./" or len(name) > _MAX_REF:
        return False
    return _BAD_IN_REF.search(name) is None and _is_text(name)


def branch_ref(name: str) -> str:
    """A full ref is no branch name: `refs/x` would silently become a branch of that name."""
    if not is_branch(name) or name.startswith("refs/"):
        raise BadName(f"`{_shown(name)}` is not a branch name that can be used.")
    return f"refs/heads/{name}"


def push_ref(name: str) -> str:
    """Where a push may go: a branch by its short name, or a ref of our own that is no branch. Nowhere else."""
    if name.startswith(OWN_REFS) and is_branch(name):
        return name
    return branch_ref(name)


def fetchable(ref: str) -> str:
    """A full ref, a commit or HEAD as a remote is asked for it; a bare name is a branch."""
    if ref == "HEAD" or is_sha(ref):
        return ref
    if ref.startswith("refs/"):
        if not is_branch(ref):
            raise BadName(f"`{_shown(ref)}` is not a ref that can be fetched.")
        return ref
    return branch_ref(ref)


def clash(branch: str, existing: Iterable[str]) -> str | None:
    """An existing branch beside which `branch` cannot stand: a folder of the one's name, or a twin by case."""
    folded = fold(branch)
    for other in existing:
        twin = fold(other)
        if other != branch and (twin == folded or _within(twin, folded) or _within(folded, twin)):
            return other
    return None


def _within(inner: str, outer: str) -> bool:
    return inner.startswith(f"{outer}/")


def fold(path: str) -> str:
    """Equal for names that some file system cannot tell apart (case, composed and decomposed letters)."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def is_git_alias(component: str) -> bool:
    """`.git` under one of its names on NTFS (short names, streams, trailing dots) or HFS+ (invisible letters)."""
    seen = "".join(c for c in component if unicodedata.category(c) != "Cf")
    pieces = re.split(r"[\\/]", fold(seen))
    return any(_is_dot_git(piece.split(":")[0].rstrip(" .")) for piece in pieces)


def alias_fault(path: str) -> str | None:
    """Why a path may not enter a repository that goes through `.git` under any of its names; None when it does not."""
    if any(is_git_alias(component) for component in path.split("/")):
        return "its name stands for git's own folder on some systems"
    return None


def _is_dot_git(name: str) -> bool:
    return name == ".git" or _SHORT_GIT.fullmatch(name) is not None


def path_fault(path: str) -> str | None:
    """Why a new path may not enter a repository; None when it may."""
    return _fault_of_whole(path) or next(filter(None, map(_fault_of_component, path.split("/"))), None)


def _fault_of_whole(path: str) -> str | None:
    if not _is_text(path):
        return "its name is not valid UTF-8"
    categories = {unicodedata.category(c) for c in path}
    if "Cc" in categories:
        return "its name holds a control character"
    if categories & {"Cf", "Zl", "Zp"}:
        return "its name holds an invisible character"
    if "\\" in path or ":" in path:
        return "its name holds a character that is a separator on other systems"
    return None


def _fault_of_component(component: str) -> str | None:
    if component in ("", ".", ".."):
        return "its name is not a plain path"
    if component[-1] in ". ":
        return "its name ends in a dot or a blank"
    if len(component.encode("utf-8", "surrogateescape")) > 255:
        return "its name is too long"
    return None


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() and c != "`" else "?" for c in name[:80])
