"""Brings the work home: one snapshot of the work tree as a thin bundle with the single ref refs/forgehand/work."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from . import documents
from .repository import Checkout, CheckoutGitFailed, CheckoutGitTimedOut, create, remove

REF = "refs/forgehand/work"
SUBJECTS = 50
MOST_LEFT_OUT = 20  # paths that are named
GENTLY = 15


def main() -> int:
    spec = documents.read_stdin()
    try:
        documents.answer({"ok": True, **collect(spec)})
    except (CheckoutGitFailed, OSError) as error:
        documents.answer({"ok": False, "error": str(error)})
        return 1
    return 0


def collect(spec: dict[str, Any]) -> dict[str, Any]:
    """From the agent's own repository; where that is ruined, from the pack that the checkout was made of."""
    work, folder = Path(spec["work"]), Path(spec["out"])
    _make_way(folder)
    scratch = folder / "collecting"
    remove(scratch)  # of a collect that was killed: a left-over lock would stop us for good
    scratch.mkdir(parents=True)
    if spec.get("gently"):
        os.nice(GENTLY)
    own = Checkout(spec["git"], work / ".git", work, seconds=spec["timeout_seconds"] / 2)
    try:
        return _snapshot(own, scratch, spec["base"], start="HEAD" if own.has("HEAD^{tree}") else spec["base"])
    except CheckoutGitFailed as error:
        if not (Path(spec["state"]) / "base.pack").exists():
            raise
        try:
            return _from_pack(spec, scratch)
        except CheckoutGitFailed as second:
            raise CheckoutGitFailed(f"{error}; and from the original pack: {second}") from None
    finally:
        remove(scratch)


def _make_way(folder: Path) -> None:
    """The agent may have put a file or a link in the place of its turn's folder, or closed it: the work comes home."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        folder.mkdir(parents=True)
    folder.chmod(0o700)


def _from_pack(spec: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Also without the agent's filters, one of which may be what failed."""
    state = Path(spec["state"])
    spare = Checkout(spec["git"], scratch / "spare.git", Path(spec["work"]), seconds=spec["timeout_seconds"] / 2)
    base = json.loads((state / "base.json").read_text(encoding="utf-8"))
    packs = [state / name for name in base["packs"]]
    create(spare, packs=packs, sha=spec["base"], shallow=base["shallow"])
    return _snapshot(spare, scratch, spec["base"], start=spec["base"])


def _snapshot(repository: Checkout, scratch: Path, base: str, *, start: str) -> dict[str, Any]:
    repository.use_index(scratch / f"{repository.git_dir.name}.index")
    repository("read-tree", start)
    left_out = _add_all(repository)
    tree = repository("write-tree")
    subjects = _subjects(repository, base)
    if tree == repository("rev-parse", "--verify", f"{base}^{{tree}}"):
        nothing = {"changed": False, "tree": tree, "bundle": None, "size": 0}
        return {**nothing, "subjects": subjects, "left_out": left_out}
    remove(repository.git_dir / f"{REF}.lock")
    repository("update-ref", REF, repository("commit-tree", tree, "-p", base, "-m", "work"))
    bundle = _bundle(repository, scratch, base)
    return {
        "changed": True,
        "tree": tree,
        "subjects": subjects,
        "bundle": str(bundle),
        "size": bundle.stat().st_size,
        "left_out": left_out,
    }


def _add_all(repository: Checkout) -> list[str]:
    """A path that git does not take (unreadable, an empty repository, `git~1/x`) must not keep the others from coming
    home; which ones those are is said."""
    try:
        repository("add", "--all", "--", ".")
    except CheckoutGitTimedOut:
        raise
    except CheckoutGitFailed:
        repository("add", "--all", "--ignore-errors", "--", ".", allowed=(0, 1))
        others = repository("ls-files", "--others", "--exclude-standard", "-z", raw=True)
        paths = sorted(filter(None, others.split("\0")))
        return [path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in paths[:MOST_LEFT_OUT]]
    return []


def _subjects(repository: Checkout, base: str) -> list[str]:
    """Of the agent's own commits: only to word ours, so that a history that cannot be read is no obstacle."""
    try:
        said = repository("log", f"--max-count={SUBJECTS}", "--format=%<(300,trunc)%s", f"{base}..HEAD", "--")
    except CheckoutGitFailed:
        return []
    return [line.strip() for line in said.splitlines() if line.strip()]


def _bundle(repository: Checkout, scratch: Path, base: str) -> Path:
    made, bundle = scratch / f"{repository.git_dir.name}.bundle", scratch.parent / "work.bundle"
    repository("bundle", "create", "--quiet", str(made), REF, f"^{base}")
    made.replace(bundle)
    return bundle


if __name__ == "__main__":
    sys.exit(main())
