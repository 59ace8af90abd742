"""Brings a branch of a remote into a person's repository without reading that repository's config.

The fetch with the token goes into a bare repository of ours, which knows only the person's commits. From there we copy
objects and one ref.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.errors import UserError
from bot.git import commits
from bot.git.run import RemoteAccess, run_git
from bot.workbench import passage, repository, words
from bot.workbench.passage import Passage
from bot.workbench.repository import PersonsRepository

FETCH_SECONDS = 600.0
_FETCHED = "refs/forgehand/fetched"
_FLAGS = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-show-forced-updates"]


async def branch(clone: PersonsRepository, access: RemoteAccess, ref: str, name: str) -> None:
    """Fetch the branch. An existing one must fast-forward and must not be checked out, so that no work is lost."""
    async with passage.opened(clone) as way:
        desk = way.place.with_name("fetched.git")
        await run_git(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(desk)])
        await asyncio.to_thread(passage.lend, clone, desk)
        # as refs of ours, they say what the remote need not send; a partial clone lacks part of what its commits reach
        if not any(found for store in clone.stores for found in store.glob("pack/*.promisor")):
            rows = "".join(f"{sha} refs/theirs/{number}\n" for number, sha in enumerate(await way.tips()))
            (desk / "packed-refs").write_text(f"# pack-refs with:\n{rows}", "ascii")
        argv = ["fetch", *_FLAGS, "--end-of-options", access.url, f"{ref}:{_FETCHED}"]
        await run_git(argv, desk, access=access, timeout=FETCH_SECONDS)
        new = (await run_git(["rev-parse", "--verify", f"{_FETCHED}^{{commit}}"], desk)).text
        await _put(way, desk, name, new, clone)


async def _put(way: Passage, desk: Path, name: str, new: str, clone: PersonsRepository) -> None:
    old = await way.at(name)
    if old == new:
        return
    free = name not in await asyncio.to_thread(repository.checked_out, clone)
    if not free or (old is not None and not await commits.continues(desk, new, old)):
        raise UserError(words.branch_taken(name))
    for pack in (desk / "objects" / "pack").glob("*.pack"):
        await way.add(pack)
    await way.set_branch(name, new, old)
