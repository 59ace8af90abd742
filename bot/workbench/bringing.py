"""Brings a branch of a remote into a person's repository without a word of that repository's config.

The token goes with a fetch into a bare repository of ours, which knows the person's commits and nothing else of theirs;
from there objects and one ref go over.
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
    """Never over work of one's own, nor under somebody's feet: it must fast-forward and not be checked out."""
    async with passage.opened(clone) as way:
        desk = way.place.with_name("fetched.git")
        await run_git(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(desk)])
        await asyncio.to_thread(_lend, clone, desk, await way.tips())
        argv = ["fetch", *_FLAGS, "--end-of-options", access.url, f"{ref}:{_FETCHED}"]
        await run_git(argv, desk, access=access, timeout=FETCH_SECONDS)
        new = (await run_git(["rev-parse", "--verify", f"{_FETCHED}^{{commit}}"], desk)).text
        await _put(way, desk, name, new, clone)


def _lend(clone: PersonsRepository, desk: Path, tips: list[str]) -> None:
    """The commits are refs of ours, so that the remote is told what need not be sent. A partial clone has not all that
    its commits reach, so it is sent everything."""
    passage.lend(clone, desk)
    if not any(found for store in clone.stores for found in store.glob("pack/*.promisor")):
        rows = "".join(f"{sha} refs/theirs/{number}\n" for number, sha in enumerate(tips))
        (desk / "packed-refs").write_text(f"# pack-refs with:\n{rows}", "ascii")


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
