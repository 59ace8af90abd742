"""Puts the submodules' files into the work tree, from the host's packs; each becomes a repository without a remote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from . import documents
from .prepare import remove_hidden
from .repository import Checkout, CheckoutGitFailed, create, remove

MARKER = "submodules.json"
"""Lists what is there. `prepare` removes it with the checkout that it is about."""
LOOK_SECONDS = 20.0


def main() -> int:
    return documents.serve(place, CheckoutGitFailed)


def place(spec: dict[str, Any]) -> dict[str, Any]:
    """Check out each item, outer ones first. Empty the places in `empty`: an earlier turn may have filled them."""
    work, state = Path(spec["work"]), Path(spec["state"])
    packs = [state / name for item in spec["items"] for name in item["packs"]]
    try:
        if (state / MARKER).exists():
            return {"already": True}
        for path in spec["empty"]:
            _folder(work, path, empty=True)
        for item in spec["items"]:
            folder = _folder(work, item["path"])
            remove(folder / ".git")  # in a kept environment, its settings are the agent's
            repository = Checkout(spec["git"], folder / ".git", folder, seconds=spec["timeout_seconds"])
            own = [state / name for name in item["packs"]]
            create(repository, packs=own, sha=item["sha"], shallow=item["shallow"])
            repository("update-ref", f"refs/remotes/origin/{item['branch']}", item["tip"])
            repository("update-ref", "--no-deref", "HEAD", item["sha"])
            repository("reset", "--hard", "--quiet", item["sha"])
            repository("clean", "-ffdq")
            remove_hidden(repository)
        documents.write_atomically(state / MARKER, {"paths": [item["path"] for item in spec["items"]]})
        return {"already": False}
    finally:
        for pack in packs:
            remove(pack)


def _folder(work: Path, path: str, *, empty: bool = False) -> Path:
    """Return a real folder at a path; what an agent may have put in its way goes."""
    here = work
    for name in path.split("/"):
        here = here / name
        if here.is_symlink() or not here.is_dir():
            remove(here)
            here.mkdir()
    if empty:
        remove(here)
        here.mkdir()
    return here


def changed_inside(git: str, work: Path, state: Path) -> list[str]:
    """List the submodules whose files differ from their commit: git takes along only which commit that is."""
    changed: list[str] = []
    for path in documents.read_paths(state / MARKER):
        folder = work / path
        repository = Checkout(git, folder / ".git", folder, seconds=LOOK_SECONDS)
        try:
            is_clean = not repository("status", "--porcelain", "--ignore-submodules=dirty")
        except (CheckoutGitFailed, OSError):
            is_clean = False  # the agent has ruined it
        changed += [] if is_clean else [path]
    return changed


if __name__ == "__main__":
    sys.exit(main())
