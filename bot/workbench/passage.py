"""Git's way to a person's repository: through a git directory of ours, which shows only the data.

Its config is ours and empty. It borrows objects through a folder of links to their fan-out folders, so that git sees
neither `objects/info` nor the rest of the repository. It sees the refs through a link.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bot.git import names
from bot.git.run import GitResult, Io, run_git
from bot.workbench import plain
from bot.workbench.repository import PersonsRepository

SECONDS = 300.0
LIST_CAP = 64 << 20
_NONE = "0" * 40


class Passage:
    def __init__(self, place: Path, repository: PersonsRepository) -> None:
        self.place = place
        self._repository = repository

    async def head(self) -> str | None:
        """Return the commit; None before the first one, or if it is not here."""
        return await self._parsed("HEAD^{commit}")

    async def at(self, branch: str) -> str | None:
        return await self._parsed(names.branch_ref(branch))

    async def has_commit(self, sha: str) -> bool:
        return (await self._git(["cat-file", "-e", f"{sha}^{{commit}}"], accept=(0, 1, 128))).exit_code == 0

    async def tips(self) -> list[str]:
        """Return the commits and tag objects of all refs, as far as they are here."""
        listed = await self._git(["for-each-ref", "--format=%(objectname)"], accept=(0, 1, 128))
        named = dict.fromkeys(line for line in listed.text.split() if names.is_sha(line))
        asked = "".join(f"{sha}\n" for sha in named).encode()
        argv = ["cat-file", "--batch-check=%(objectname) %(objecttype)"]
        found = await self._git(argv, Io(stdin=asked, cap=LIST_CAP))
        rows = (line.split(" ") for line in found.text.splitlines())
        return [row[0] for row in rows if row[1:] in (["commit"], ["tag"])]

    async def add(self, pack: Path) -> None:
        with pack.open("rb") as source:
            own = {"GIT_OBJECT_DIRECTORY": str(self._repository.stores[0])}
            io = Io(stdin=source.fileno(), env=own)
            await self._git(["index-pack", "--stdin", "--fix-thin"], io)

    async def set_branch(self, branch: str, new: str, old: str | None) -> None:
        """Move a branch from `old`; None means that the branch must not exist yet."""
        await self._git(["update-ref", "--", names.branch_ref(branch), new, old or _NONE])

    async def _parsed(self, revision: str) -> str | None:
        found = await self._git(["rev-parse", "--quiet", "--verify", revision], accept=(0, 1, 128))
        return found.text if found.exit_code == 0 else None

    async def _git(self, argv: Sequence[str], io: Io | None = None, *, accept: Sequence[int] = (0,)) -> GitResult:
        return await run_git(argv, self.place, io=io or Io(cap=LIST_CAP), timeout=SECONDS, accept=accept)


@asynccontextmanager
async def opened(repository: PersonsRepository) -> AsyncIterator[Passage]:
    """Open a passage; the folder around its git directory has room for other files."""
    with tempfile.TemporaryDirectory(prefix="forgehand-passage-") as scratch:
        place = Path(scratch) / "passage.git"
        (place / "objects").mkdir(parents=True)
        (place / "HEAD").write_text(f"{repository.on}\n", "utf-8", "surrogateescape")
        (place / "refs").symlink_to(repository.common_dir / "refs")
        (place / "packed-refs").symlink_to(repository.common_dir / "packed-refs")
        await asyncio.to_thread(lend, repository, place)
        yield Passage(place, repository)


def lend(repository: PersonsRepository, place: Path) -> None:
    """Lend the objects, and the cut of a shallow history, to a git directory of ours."""
    lent = []
    for number, store in enumerate(repository.stores):
        view = place / f"lent-{number}"
        view.mkdir()
        for folder in plain.data_folders(store):
            (view / folder.name).symlink_to(folder)
        lent.append(os.fsencode(view.resolve()) + b"\n")
    (place / "objects" / "info").mkdir(exist_ok=True)
    (place / "objects" / "info" / "alternates").write_bytes(b"".join(lent))
    if (repository.common_dir / "shallow").exists():
        shutil.copyfile(repository.common_dir / "shallow", place / "shallow")
