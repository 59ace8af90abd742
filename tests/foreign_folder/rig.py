"""All that `execute` does with git in a person's folder, without the agent: look, take in, hand over, bring home."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bot.git import quarantine
from bot.models import SessionId
from bot.settings import ModelSettings, Secret
from bot.workbench import folder as folders
from bot.workbench import landing, snapshot
from bot.workbench.folder import Folder
from bot.workbench.job import Landed, WorkbenchJob, WorkbenchMeans
from bot.workbench.landing import BroughtWork
from bot.workbench.snapshot import FolderSnapshot
from sandbox.agents.base import Subagents
from tests.world.git_remote import git, git_bytes

SECRET = "the-private-words-of-another-folder"
_NUMBERS = itertools.count(1)


@dataclass
class Taken:
    """What the sandbox would get, and what became of the work."""

    folder: Folder
    snapshot: FolderSnapshot
    box: Path
    landed: Landed

    @property
    def branch(self) -> str:
        assert self.landed.branch is not None, self.landed
        return self.landed.branch

    @property
    def parent(self) -> str:
        return git(self.box, "rev-parse", "HEAD~1")

    def inside(self) -> bytes:
        """Every byte that the sandbox would hold."""
        objects = git_bytes(self.box, "cat-file", "--batch-all-objects", "--batch")
        return objects + b"".join(path.read_bytes() for path in self.box.rglob("*") if _is_file(path))


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


async def executed(
    folder: Path, root: Path, *, apply: bool = True, meanwhile: Callable[[], object] = lambda: None
) -> Taken:
    """One `forgehand execute`; the agent adds a line to `work.txt`, and `meanwhile` happens."""
    number = next(_NUMBERS)
    scratch = root / f"run-{number}"
    scratch.mkdir()
    found = await folders.look(folder)
    taken = await snapshot.take(found, scratch / "mirror.git", int(time.time()))
    packed = await quarantine.write_pack(taken.mirror, taken.base, scratch / "in.pack", quarantine.Extent(50, 1 << 30))
    box = _box(scratch / "box", packed, found.ignored)
    bundle = _bundle(box, taken.base, scratch / "work.bundle")
    meanwhile()
    model = ModelSettings("claude-sonnet-4-5", "", Secret("sk-test"), None)
    means = WorkbenchMeans(root / "data", model, frozenset(), 30)
    job = WorkbenchJob(SessionId(f"run{number}"), "work", folder, "m", 1.0, 60, None, apply, True, Subagents(1, 1))
    landed = await landing.land(BroughtWork(job, means, taken, bundle, "Worked.", finished=True))
    return Taken(found, taken, box, landed)


def _box(box: Path, packed: quarantine.RepositoryPack, ignored: bytes) -> Path:
    git(box.parent, "init", "-q", "-b", "work", str(box))
    git(box, "index-pack", "--stdin", stdin=packed.path.read_bytes())
    (box / ".git" / "shallow").write_text("".join(f"{sha}\n" for sha in packed.shallow))
    (box / ".git" / "info" / "exclude").write_bytes(ignored)
    git(box, "reset", "-q", "--hard", packed.sha)
    return box


def _bundle(box: Path, base: str, target: Path) -> Path:
    with (box / "work.txt").open("a") as work:
        work.write("worked\n")
    git(box, "add", "-A")
    git(box, "commit", "-q", "-m", "work")
    git(box, "update-ref", "refs/forgehand/work", "HEAD")
    git(box, "bundle", "create", "-q", str(target), "refs/forgehand/work", f"^{base}")
    return target


def repository(folder: Path, **files: str) -> Path:
    """With one commit; `a.txt` is always in it."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder.parent, "init", "-q", "-b", "main", str(folder))
    return committed(folder, {"a.txt": "a\n", **files})


def committed(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "change")
    return folder


def private(root: Path) -> Path:
    """Another repository of the person's, whose contents must not come along."""
    return repository(root / "private", **{"key.txt": SECRET + "\n"})
