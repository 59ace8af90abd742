"""What of a person's repository is believed; the one place that decides it.

Whoever packed a folder has written its `.git` as well, so no git command of ours is given that folder's git directory:
its config, hooks, attributes and alternates are never read by git. From here come the places of four kinds of data
(objects, refs, index, where history is cut off), once it is certain that they belong to this folder and that no link
leads out of them, and the few settings that say how files are to be read. `passage` hands the data to git.
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
"""In the config of a repository that others borrow objects from: which git directories may."""
_MOST_LENDERS = 16
_SMALL, _MIDDLE, _LARGE = 64 << 10, 16 << 20, 512 << 20
"""What a file of one line, of settings, and of a line for each file or ref may hold: far more than git writes."""
_UNREADABLE = (OSError, ValueError, RuntimeError)
"""Also of a path with a NUL in it, and of links that lead in circles."""


@dataclass(frozen=True)
class PersonsRepository:
    """The person's own, which we look at and add one branch to. Its parts may be handed to git by `passage` alone."""

    top: Path
    git_dir: Path
    common_dir: Path
    stores: tuple[Path, ...]
    """Folders of objects: its own, then those that it borrows from."""
    on: str
    """What HEAD says: a ref or a commit."""
    head: str | None = None
    """The commit; None before the first one."""

    @property
    def config(self) -> Path:
        return self.common_dir / "config"


def find(folder: Path) -> Path | None:
    """The root of the work tree that the folder is in, where git would see it; None when there is no repository."""
    try:
        return _found(folder)
    except _UNREADABLE as error:
        raise UserError(words.unreadable_repository(folder, str(error))) from None


def _found(folder: Path) -> Path | None:
    device = folder.stat().st_dev
    for place in (folder, *folder.parents):
        if place.stat().st_dev != device:
            return None
        if (place / ".git").is_file() or _is_git_dir(place / ".git"):
            return place
        if _is_git_dir(place):
            raise UserError(words.no_work_tree(folder))
    return None


def _is_git_dir(place: Path) -> bool:
    data = (place / "commondir").is_file() or ((place / "objects").is_dir() and (place / "refs").is_dir())
    return data and (place / "HEAD").is_file()


async def judged(top: Path) -> PersonsRepository:
    """Raises UserError, with what to do, where the repository is not certainly this folder's own."""
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
    return PersonsRepository(top, git_dir, common, stores, await asyncio.to_thread(_head, git_dir))


def _git_dir(top: Path) -> Path:
    """Where `.git` leads: itself, or what its text or link names."""
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
    """A worktree that `git worktree add` has made: its repository keeps it, and it names the folder in turn."""
    back = plain.text(git_dir / "gitdir")
    named = None if back is None else git_dir / back.rstrip("\r\n")
    kept = git_dir.parent == common / "worktrees"
    if not kept or named is None or named.name != ".git" or named.parent.resolve() != top:
        raise UserError(words.no_worktree_of(top, common))


async def _require_own(top: Path, git_dir: Path, worktree: str | None) -> None:
    """A git directory inside the folder is its own; one that lies elsewhere must know the folder."""
    if worktree is not None:
        if (git_dir / worktree).resolve() != top:
            raise UserError(words.other_work_tree(top, git_dir))
    elif not git_dir.is_relative_to(top) and not await stat_evidence.knows(git_dir, top):
        raise UserError(words.not_of_this_folder(top, git_dir))


def _require_plain(git_dir: Path, common: Path) -> None:
    """All that is taken from here is in files and folders that are no links and nothing else that leads elsewhere."""
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
    """Also of those that it borrows from, each of which must say that it lends; `own` are its folders."""
    found = [objects]
    for store in found:
        for other in await asyncio.to_thread(_borrowed, store):
            if other in found:
                continue
            await _require_lent(own, other, store)
            found.append(other)
        if len(found) > _MOST_LENDERS:
            raise UserError(words.too_many_lenders(own[0]))
    return tuple(found)


def _borrowed(objects: Path) -> list[Path]:
    lines = (plain.text(objects / "info" / "alternates") or "").splitlines()
    return [(objects / line).resolve() for line in lines if line and not line.startswith("#")]


async def _require_lent(own: tuple[Path, Path], store: Path, borrower: Path) -> None:
    """What lies in the repository itself needs no word of anybody's."""
    config = store.parent / "config"
    await asyncio.to_thread(_require_store, own[0], store)
    if any(store.is_relative_to(folder) for folder in own):
        return
    if str(borrower.parent) not in await configured.every(config, LENDS):
        raise UserError(words.not_lent(own[0], store, borrower))


def _require_store(top: Path, store: Path) -> None:
    if not store.is_dir():
        raise UserError(words.lender_missing(top, store))
    _require_plain_store(store)
    plain.require_file(store.parent / "config", _MIDDLE)


def _head(git_dir: Path) -> str:
    said = (plain.text(git_dir / "HEAD") or "").strip()
    if not _REFERS.fullmatch(said) or ".." in said:
        raise UserError(words.unreadable_repository(git_dir, "its HEAD names neither a branch nor a commit"))
    return said


def checked_out(repository: PersonsRepository) -> set[str]:
    """The branches that its work trees are on, this one's and all others'."""
    common = repository.common_dir
    said = (plain.text(file) or "" for file in (common / "HEAD", *common.glob("worktrees/*/HEAD")))
    return {one.strip().removeprefix("ref: refs/heads/") for one in (repository.on, *said) if one.startswith("ref: ")}
