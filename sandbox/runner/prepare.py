"""Makes the checkout: unpacks the pack that the host brought, at one commit, on one branch, without a remote."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from . import documents
from .repository import GitFailed, Repository, create, remove

MARKER = "forgehand-prepared"


def main() -> int:
    spec = documents.read_stdin()
    try:
        already = prepare(spec)
    except (GitFailed, OSError) as error:
        documents.answer({"ok": False, "error": str(error)})
        return 1
    documents.answer({"ok": True, "already": already})
    return 0


def prepare(spec: dict[str, Any]) -> bool:
    """True when this turn's checkout was made before: what the agent did in it since is left alone."""
    work, state = Path(spec["work"]), Path(spec["state"])
    wanted = {"turn": spec["turn"], "sha": spec["sha"], "branch": spec["branch"]}
    if _found(state) == wanted and (work / ".git").exists():
        return True
    work.mkdir(parents=True, exist_ok=True)
    state.mkdir(parents=True, exist_ok=True)
    # The old .git goes as a whole: in a kept environment its hooks, filters and settings are the agent's.
    remove(work / ".git")
    remove(state / MARKER)
    repository = Repository(spec["git"], work / ".git", work, seconds=spec["timeout_seconds"])
    create(repository, pack=Path(spec["pack"]), sha=spec["sha"], shallow=spec["shallow"])
    _check_out(repository, spec["sha"], spec["branch"])
    _keep_base(spec, state)
    documents.write_atomically(state / MARKER, wanted)
    return False


def _check_out(repository: Repository, sha: str, branch: str) -> None:
    repository("update-ref", f"refs/heads/{branch}", sha)
    repository("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    repository("reset", "--hard", "--quiet", sha)
    repository("clean", "-ffdq")  # not -x: what the ignore rules name (installed packages, caches) is worth keeping
    repository("config", "user.name", "Forgehand agent")
    repository("config", "user.email", "agent@forgehand.invalid")
    repository("config", "gc.auto", "0")


def _keep_base(spec: dict[str, Any], state: Path) -> None:
    """The pack stays outside the work tree: with it the work is brought home even if the agent ruins its `.git`."""
    kept = state / "base.pack"
    if Path(spec["pack"]) != kept:
        shutil.copyfile(spec["pack"], kept)
    documents.write_atomically(state / "base.json", {"sha": spec["sha"], "shallow": spec["shallow"]})


def _found(state: Path) -> Any:
    try:
        return json.loads((state / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    sys.exit(main())
