"""The one place that decides what we trust of a person's repository.

Someone who packed a folder also wrote its `.git`. So no git command of ours uses that git directory, and git never
reads its config, hooks, attributes or alternates. This module finds four kinds of data: objects, refs, the index, and
the cut of a shallow history. It makes sure that they belong to this folder and that no link leads out of them.
`passage` hands the data to git.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

from bot.errors import UserError
from bot.workbench import configured, plain, stat_evidence, words

_REFERS = re.compile(r"ref: refs/[^\x00-\x20\x7f~^:?*\[\\]+|[0-9a-f]{40}")
_SETTINGS = r"^(core\.(worktree|bare)|extensions\.(objectformat|refstorage))$"
LENDS = "forgehand.lendsTo"
"""A setting of a repository that lends objects: the git directories that may borrow them."""
_MOST_LENDERS = 16
_SMALL, _MIDDLE, _LARGE = 64 << 10, 16 << 20, 512 << 20
"""Limits far above what git writes: for a file of one line, one of settings, one with a line for each file or ref."""
_UNREADABLE = (OSError, ValueError, RuntimeError)
"""Errors of the disk, of a path with a NUL in it, and of links that lead in circles."""


@dataclass(frozen=True)
class PersonsRepository:
    """A person's repository, which we read and add one branch to. Only `passage` may hand its parts to git."""

    top: Path
    git_dir: Path
    common_dir: Path
    stores: tuple[Path, ...]
    """Folders of objects: its own, then those that it borrows from."""
    on: str
    """The content of HEAD: a ref or a commit."""
    head: str | None = None

    @property
    def config(self) -> Path:
        return self.common_dir / "config"


def find(folder: Path) -> Path | None:
    """Return the root of the work tree that git would find around the folder; None if there is no repository."""
    try:
        device = folder.stat().st_dev
        for place in (folder, *folder.parents):
            if place.stat().st_dev != device:
                return None
            if (place / ".git").is_file() or _is_git_dir(place / ".git"):
                return place
            if _is_git_dir(place):
                raise UserError(words.no_work_tree(folder))
    except _UNREADABLE as error:
        raise UserError(words.unreadable_repository(folder, str(error))) from None
    return None


def _is_git_dir(place: Path) -> bool:
    data = (place / "commondir").is_file() or ((place / "objects").is_dir() and (place / "refs").is_dir())
    return data and (place / "HEAD").is_file()


async def judged(top: Path) -> PersonsRepository:
    """Judge the repository; a UserError says what to do if it may not belong to this folder."""
    try:
        return await _judged(top)
    except _UNREADABLE as error:
        raise UserError(words.unreadable_repository(top, str(error))) from None


async def _judged(top: Path) -> PersonsRepository:
    git_dir = await asyncio.to_thread(_git_dir, top)
    common = await asyncio.to_thread(_common_dir, git_dir)
    await asyncio.to_thread(_require_plain, git_dir, common)
    settings = await configured.values(common / "config", _SETTINGS)
    if settings.get("extensions.objectformat", "sha1").lower() != "sha1":
        raise UserError(words.other_hash(top))
    if settings.get("extensions.refstorage", "files").lower() != "files" or (common / "reftable").exists():
        raise UserError(words.other_refs(top))
    if common != git_dir:
        _require_linked(top, git_dir, common)
    elif settings.get("core.bare", "false").lower() in ("true", "yes", "on", "1"):
        raise UserError(words.no_work_tree(top))
    else:
        await _require_own(top, git_dir, settings.get("core.worktree"))
    stores = await _stores((top, common), common / "objects")
    head = (plain.text(git_dir / "HEAD") or "").strip()
    if not _REFERS.fullmatch(head) or ".." in head:
        raise UserError(words.unreadable_repository(git_dir, "its HEAD names neither a branch nor a commit"))
    return PersonsRepository(top, git_dir, common, stores, head)


def _git_dir(top: Path) -> Path:
    """Return `.git` itself, or the folder that its text or link names."""
    dot = top / ".git"
    if dot.is_symlink() or dot.is_dir():
        found = dot.resolve()
    else:
        named = plain.text(dot) or ""
        if not named.startswith("gitdir: "):
            raise UserError(words.unreadable_repository(top, f"{dot} is no git directory and names none"))
        found = (top / named.removeprefix("gitdir: ").rstrip("\r\n")).resolve()
    if not _is_git_dir(found):
        raise UserError(words.unreadable_repository(top, f"{dot} leads to {found}, which is no git directory"))
    return found


def _common_dir(git_dir: Path) -> Path:
    named = plain.text(git_dir / "commondir")
    if named is None:
        return git_dir
    found = (git_dir / named.rstrip("\r\n")).resolve()
    if not _is_git_dir(found):
        raise UserError(words.unreadable_repository(git_dir, f"it is a part of {found}, which is no git directory"))
    return found


def _require_linked(top: Path, git_dir: Path, common: Path) -> None:
    """Accept a worktree of `git worktree add`: its repository keeps it, and it names the folder in turn."""
    back = plain.text(git_dir / "gitdir")
    named = None if back is None else git_dir / back.rstrip("\r\n")
    kept = git_dir.parent == common / "worktrees"
    if not kept or named is None or named.name != ".git" or named.parent.resolve() != top:
        raise UserError(words.no_worktree_of(top, common))


async def _require_own(top: Path, git_dir: Path, worktree: str | None) -> None:
    """Accept a git directory inside the folder; one that lies elsewhere must know the folder."""
    if worktree is not None:
        if (git_dir / worktree).resolve() != top:
            raise UserError(words.other_work_tree(top, git_dir))
    elif not git_dir.is_relative_to(top) and not await stat_evidence.knows(git_dir, top):
        raise UserError(words.not_of_this_folder(top, git_dir))


def _require_plain(git_dir: Path, common: Path) -> None:
    """Check that everything we use is in plain files and folders: a link could lead elsewhere."""
    for file in (git_dir / "index", *git_dir.glob("sharedindex.*")):
        plain.require_file(file, _LARGE)
    plain.require_file(git_dir / "HEAD", _SMALL)
    plain.require_file(common / "config", _MIDDLE)
    plain.require_file(common / "packed-refs", _LARGE)
    plain.require_file(common / "shallow", _MIDDLE)
    plain.require_folder(common / "info")
    plain.require_file(common / "info" / "exclude", _MIDDLE)
    plain.require_tree(common / "refs", _SMALL)
    _require_plain_store(common / "objects")


def _require_plain_store(objects: Path) -> None:
    plain.require_folder(objects)
    for folder in (*plain.data_folders(objects), objects / "info"):
        plain.require_tree(folder)


async def _stores(own: tuple[Path, Path], objects: Path) -> tuple[Path, ...]:
    """Add the stores that it borrows from, each of which must say that it lends; `own` are its folders."""
    found = [objects]
    for store in found:
        lines = (plain.text(store / "info" / "alternates") or "").splitlines()
        for other in [(store / line).resolve() for line in lines if line and not line.startswith("#")]:
            if other not in found:
                await _require_lent(own, other, store)
                found.append(other)
        if len(found) > _MOST_LENDERS:
            raise UserError(words.too_many_lenders(own[0]))
    return tuple(found)


async def _require_lent(own: tuple[Path, Path], store: Path, borrower: Path) -> None:
    config = store.parent / "config"
    if not await asyncio.to_thread(store.is_dir):
        raise UserError(words.lender_missing(own[0], store))
    await asyncio.to_thread(_require_plain_store, store)
    plain.require_file(config, _MIDDLE)
    if any(store.is_relative_to(folder) for folder in own):
        return  # a part of the repository itself
    lends = await configured.rows(config, f"^{re.escape(LENDS.lower())}$")
    if str(borrower.parent) not in (value for _, value in lends):
        raise UserError(words.not_lent(own[0], store, borrower))


def checked_out(repository: PersonsRepository) -> set[str]:
    common = repository.common_dir
    heads = (plain.text(file) or "" for file in (common / "HEAD", *common.glob("worktrees/*/HEAD")))
    return {one.strip().removeprefix("ref: refs/heads/") for one in (repository.on, *heads) if one.startswith("ref: ")}
