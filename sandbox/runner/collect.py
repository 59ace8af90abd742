"""Brings the work home: one snapshot of the work tree as a thin bundle with the single ref refs/forgehand/work."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from . import documents
from .large_files import collecting
from .repository import Checkout, CheckoutGitFailed, CheckoutGitTimedOut, create, remove
from .submodules import changed_inside

REF = "refs/forgehand/work"
SUBJECTS = 50
MOST_LEFT_OUT = 20  # paths that the answer names
GENTLY = 15
INDEX_SECONDS = 15.0
"""A million files take one second. Trees that name each other hold so many that no time is enough."""


def main() -> int:
    return documents.serve(collect, CheckoutGitFailed)


def collect(spec: dict[str, Any]) -> dict[str, Any]:
    """Bring the work home, and name the submodules whose files stay behind."""
    inside = [] if spec.get("gently") else changed_inside(spec["git"], Path(spec["work"]), Path(spec["state"]))
    return {**_collected(spec), "inside": inside}


def _collected(spec: dict[str, Any]) -> dict[str, Any]:
    """Bundle from the agent's own repository or, if that is ruined, from the pack behind the checkout."""
    work, folder = Path(spec["work"]), Path(spec["out"])
    if folder.is_symlink() or not folder.is_dir():  # the agent replaced it
        folder.unlink(missing_ok=True)
        folder.mkdir(parents=True)
    folder.chmod(0o700)  # the agent may have closed it
    scratch = folder / "collecting"
    remove(scratch)  # left by a collect that was killed; its lock would block us for good
    scratch.mkdir(parents=True)
    if spec.get("gently"):
        os.nice(GENTLY)
    own = Checkout(spec["git"], work / ".git", work, seconds=spec["timeout_seconds"] / 2)
    own.configure(collecting(Path(spec["state"])))
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


def _from_pack(spec: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Bundle from the pack. This also avoids the agent's filters, one of which may have failed."""
    state = Path(spec["state"])
    spare = Checkout(spec["git"], scratch / "spare.git", Path(spec["work"]), seconds=spec["timeout_seconds"] / 2)
    spare.configure(collecting(state))
    base = json.loads((state / "base.json").read_text(encoding="utf-8"))
    packs = [state / name for name in base["packs"]]
    create(spare, packs=packs, sha=spec["base"], shallow=base["shallow"])
    return _snapshot(spare, scratch, spec["base"], start=spec["base"])


def _snapshot(repository: Checkout, scratch: Path, base: str, *, start: str) -> dict[str, Any]:
    repository.use_index(scratch / f"{repository.git_dir.name}.index")
    repository("read-tree", start, seconds=INDEX_SECONDS)
    left_out = _add_all(repository)
    tree = repository("write-tree")
    subjects = _subjects(repository, base)
    found = {"tree": tree, "subjects": subjects, "left_out": left_out}
    if tree == repository("rev-parse", "--verify", f"{base}^{{tree}}"):
        return {**found, "changed": False, "bundle": None, "size": 0}
    remove(repository.git_dir / f"{REF}.lock")
    repository("update-ref", REF, repository("commit-tree", tree, "-p", base, "-m", "work"))
    made, bundle = scratch / f"{repository.git_dir.name}.bundle", scratch.parent / "work.bundle"
    repository("bundle", "create", "--quiet", str(made), REF, f"^{base}")
    made.replace(bundle)
    return {**found, "changed": True, "bundle": str(bundle), "size": bundle.stat().st_size}


def _add_all(repository: Checkout) -> list[str]:
    """Add everything to the index. Return the paths that git refuses (unreadable, an empty repository, `git~1/x`);
    the others still come home."""
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
    """Return the subjects of the agent's own commits, which only help to word ours; none if git cannot read them."""
    try:
        said = repository("log", f"--max-count={SUBJECTS}", "--format=%<(300,trunc)%s", f"{base}..HEAD", "--")
    except CheckoutGitFailed:
        return []
    return [line.strip() for line in said.splitlines() if line.strip()]


if __name__ == "__main__":
    sys.exit(main())
