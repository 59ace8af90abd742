"""Judges names of branches and paths: safe for git, and for every file system that may hold a clone."""

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
    """Accept what git's rules allow and no command takes for an option, in any script of the world."""
    if not name or name == "@" or name[0] in "-./" or name[-1] in "./" or len(name) > _MAX_REF:
        return False
    return _BAD_IN_REF.search(name) is None and _is_text(name)


def branch_ref(name: str) -> str:
    """Refuse a full ref, because `refs/x` would silently become a branch of that name."""
    if not is_branch(name) or name.startswith("refs/"):
        raise BadName(f"`{_shown(name)}` is not a branch name that can be used.")
    return f"refs/heads/{name}"


def push_ref(name: str) -> str:
    """Accept only the short name of a branch, or a ref of ours that is no branch."""
    return name if name.startswith(OWN_REFS) and is_branch(name) else branch_ref(name)


def fetchable(ref: str) -> str:
    """Accept a full ref, a commit or HEAD; a bare name is a branch."""
    if ref == "HEAD" or is_sha(ref):
        return ref
    if ref.startswith("refs/"):
        if not is_branch(ref):
            raise BadName(f"`{_shown(ref)}` is not a ref that can be fetched.")
        return ref
    return branch_ref(ref)


def clash(branch: str, existing: Iterable[str]) -> str | None:
    """Return a branch that rules `branch` out: one is a folder of the other, or only letter case differs."""
    folded = fold(branch)
    for other in existing:
        twin = fold(other)
        if other != branch and (twin == folded or _within(twin, folded) or _within(folded, twin)):
            return other
    return None


def _within(inner: str, outer: str) -> bool:
    return inner.startswith(f"{outer}/")


def fold(path: str) -> str:
    """Make names equal that some file system cannot tell apart (case, composed and decomposed letters)."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def is_git_alias(component: str) -> bool:
    """Recognise `.git` by its names on NTFS (short names, streams, trailing dots) and HFS+ (invisible letters)."""
    seen = "".join(c for c in component if unicodedata.category(c) != "Cf")
    pieces = (piece.split(":")[0].rstrip(" .") for piece in re.split(r"[\\/]", fold(seen)))
    return any(piece == ".git" or _SHORT_GIT.fullmatch(piece) for piece in pieces)


def alias_fault(path: str) -> str | None:
    """Explain what is wrong with a path that goes through `.git` under any of its names; None for others."""
    if any(is_git_alias(component) for component in path.split("/")):
        return "its name stands for git's own folder on some systems"
    return None


def path_fault(path: str) -> str | None:
    """Explain why a new path may not enter a repository; None if it may."""
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
