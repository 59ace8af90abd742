"""Fetches the contents of LFS files for an environment, and uploads new ones before their pointers are pushed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.errors import GitHubRefused, UserError
from bot.git import large_files
from bot.git.errors import HostFull, MirrorLost, RepositoryUnsupported
from bot.git.large_files import LargeFile, Pointed
from bot.github.large_files import Content, LfsServer
from bot.github.types import TokenPurpose
from bot.models import Thread
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.services import Services
from bot.sessions.starting_point import remote_access
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import on_lfs
from sandbox.execution import ExecutionEnvironment

TAR, INDEX = "large.tar", "index.json"
MOST_FILES = 5_000
MOST_FILE_BYTES = 512 << 20
MOST_BYTES = 2 << 30
CACHED_BYTES = 8 << 30
"""How much of one repository stays on the host."""


async def bring(
    services: Services, turn: Turn, environment: ExecutionEnvironment, source: tuple[Path, str], new: Pointed | None
) -> tuple[str, ...]:
    """Put contents in place of the pointers of a commit. `new`: contents that only git has on this host yet."""
    git_dir, commit = source
    try:
        files = await large_files.pointers(git_dir, commit)
    except RepositoryUnsupported:
        return (on_lfs.too_many(large_files.MOST_CANDIDATES),)
    if not files:
        return ()
    chosen, notes = _within_limits(files)
    blobs = {one.pointer.oid: one.blob for one in new.contents} if new else {}
    wanted = _contents(services, turn, [one for one in chosen if one.pointer.oid not in blobs])
    missing = await _fetched(services, turn, wanted)
    if missing:
        notes += (on_lfs.missing([one.path for one in chosen if one.pointer.oid in missing]),)
    with tempfile.TemporaryDirectory(dir=services.made_turn_folder(turn.key.workflow_id), prefix="large-") as folder:
        places = {one.oid: one.file for one in wanted if one.oid not in missing}
        for oid, blob in blobs.items():
            places[oid] = Path(folder) / oid
            await large_files.export(git_dir, blob, places[oid])
        tar, index = Path(folder) / TAR, Path(folder) / INDEX
        rows = [(one.path, one.pointer.oid, one.pointer.size) for one in chosen if one.pointer.oid in places]
        # What nobody has is no longer missing if the work brings it.
        known = sorted({one.pointer.oid for one in files} - missing.keys())
        index.write_text(json.dumps({"files": rows, "known": known}), "utf-8")
        await asyncio.to_thread(_pack, tar, {INDEX: index, **places})
        await environment.furnish("large_files", {}, {TAR: tar})
    await asyncio.to_thread(_make_room, _cache(services, turn))
    return notes


def _pack(target: Path, places: dict[str, Path]) -> None:
    """Put files into one that says nothing of this host."""
    with _on_this_disk(), tarfile.open(target, "w") as tar:
        for name, place in places.items():
            member = tarfile.TarInfo(name)
            with place.open("rb") as content:
                os.utime(content.fileno())  # those that nobody uses go first
                member.size = os.fstat(content.fileno()).st_size
                tar.addfile(member, content)


@contextlib.contextmanager
def _on_this_disk() -> Iterator[None]:
    """Turn the disk's errors into ours: the cache may be removed at any time, and the disk may be full."""
    try:
        yield
    except FileNotFoundError:
        raise MirrorLost("a content was removed from the cache while it was in use") from None
    except OSError as error:
        raise HostFull(f"the host's disk does not take the contents of LFS files: {error.strerror}") from None


def _within_limits(files: Sequence[LargeFile]) -> tuple[list[LargeFile], tuple[str, ...]]:
    """Choose what comes in, in the order of paths. A content at several paths counts once, and has one size."""
    if len(files) > MOST_FILES:
        return [], (on_lfs.too_many(MOST_FILES),)
    chosen, large, left_out, wrong = list[LargeFile](), list[LargeFile](), list[str](), list[str]()
    taken, total = dict[str, int](), 0
    for file in files:
        oid, size = file.pointer.oid, file.pointer.size
        if size > MOST_FILE_BYTES:
            large.append(file)
        elif taken.get(oid, size) != size:
            wrong.append(file.path)
        elif oid not in taken and total + size > MOST_BYTES:
            left_out.append(file.path)
        else:
            total += 0 if oid in taken else size
            taken[oid] = size
            chosen.append(file)
    notes = [on_lfs.too_large([one.path for one in large], MOST_FILE_BYTES)] if large else []
    notes += [on_lfs.too_much(left_out, MOST_BYTES)] if left_out else []
    return chosen, (*notes, *([on_lfs.missing(wrong)] if wrong else []))


def _cache(services: Services, turn: Turn) -> Path:
    return services.cache.git_dir(turn.repo_id) / "lfs"


def _contents(services: Services, turn: Turn, files: Sequence[LargeFile]) -> list[Content]:
    oids = {one.pointer.oid: one.pointer.size for one in files}
    return [Content(oid, size, _cache(services, turn) / oid) for oid, size in oids.items()]


async def _fetched(services: Services, turn: Turn, wanted: Sequence[Content]) -> dict[str, str]:
    """Download what the host does not have; return what the repository does not have either, at that size."""
    wrong, lacking = await asyncio.to_thread(_looked_up, wanted)
    if not lacking:
        return wrong
    thread = (await sessions.session(services.store, turn.key.session)).thread
    server = await _server(services, thread, TokenPurpose.READ_REPOSITORY)
    try:
        with _on_this_disk():
            await asyncio.to_thread(_cache(services, turn).mkdir, exist_ok=True)
            return wrong | await services.github.large_files.download(server, lacking)
    except GitHubRefused as error:
        raise UserError(on_lfs.refused(error.status, error.message)) from None


def _looked_up(wanted: Sequence[Content]) -> tuple[dict[str, str], list[Content]]:
    """Return (what the host has at another size, what it does not have)."""
    wrong, lacking = dict[str, str](), list[Content]()
    for one in wanted:
        try:
            if one.file.stat().st_size != one.size:
                wrong[one.oid] = "Size does not match"
        except FileNotFoundError:
            lacking.append(one)
    return wrong, lacking


async def _server(services: Services, thread: Thread, purpose: TokenPurpose) -> LfsServer:
    access = await remote_access(services, thread, purpose)
    return LfsServer(access.url, access.token)


def _make_room(cache: Path) -> None:
    """Remove the contents that nobody has used for longest, beyond what one repository may keep."""
    kept = 0
    with contextlib.suppress(FileNotFoundError):  # removed with the mirror, or by another turn
        found = [(status.st_mtime, status.st_size, one) for one in cache.iterdir() if (status := one.stat())]
        for _, size, file in sorted(found, reverse=True):
            kept += size
            if kept > CACHED_BYTES:
                file.unlink()


async def upload(work: TurnWork, branch: str) -> str | None:
    """Upload the contents of a commit; return in a sentence why it cannot be pushed, or None. Safe to repeat."""
    new = work.quarantine.large
    if new is None or not (new.contents or new.named):
        return None
    services, ref = work.services, f"refs/heads/{branch}"
    github = services.github.large_files
    try:
        server = await _server(services, work.session.thread, TokenPurpose.PUSH)
        changed = {one.path for one in (*new.contents, *new.named)}
        locks = [(one.path, one.owner) for one in await github.locks_of_others(server, ref) if one.path in changed]
        if locks:
            return on_lfs.locked(locks)
        if unknown := await _unknown(work, server, new.named):
            return on_lfs.unknown(unknown)
        folder = services.made_turn_folder(work.turn.key.workflow_id)
        for file in {one.pointer.oid: one for one in new.contents}.values():
            content = Content(file.pointer.oid, file.pointer.size, folder / f"large-{file.pointer.oid}")
            await large_files.export(work.quarantine.git_dir, file.blob, content.file)
            try:
                await github.upload(server, [content], ref)
            finally:
                await asyncio.to_thread(content.file.unlink, missing_ok=True)
    except GitHubRefused as error:
        return on_lfs.not_uploaded(error.status, error.message)
    return None


async def _unknown(work: TurnWork, server: LfsServer, named: Sequence[LargeFile]) -> list[str]:
    """Name the new pointers whose contents the repository does not have, or has at another size."""
    if not named:
        return []
    assert work.turn.base_sha is not None
    there = {one.pointer for one in await large_files.pointers(work.quarantine.git_dir, work.turn.base_sha)}
    fresh = [one for one in named if one.pointer not in there]
    claims = Counter(one.oid for one in there | {one.pointer for one in fresh})
    missing = await work.services.github.large_files.missing(server, _contents(work.services, work.turn, fresh))
    return [one.path for one in fresh if one.pointer.oid in missing or claims[one.pointer.oid] > 1]
