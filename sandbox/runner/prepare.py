"""Makes the checkout: unpacks the pack that the host brought, at one commit, on one branch, without a remote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from . import documents
from .repository import GitFailed, Repository, add, create, remove

MARKER = "forgehand-prepared"
NO_TURN = 0  # of the checkout in a snapshot


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
    found = _found(state)
    if found == wanted and (work / ".git").exists():
        return True
    work.mkdir(parents=True, exist_ok=True)
    state.mkdir(parents=True, exist_ok=True)
    remove(state / MARKER)
    repository = Repository(spec["git"], work / ".git", work, seconds=spec["timeout_seconds"])
    base = _grown(repository, spec, state, found) if spec["on"] else _made(repository, spec)
    _check_out(repository, spec["sha"], spec["branch"])
    documents.write_atomically(state / "base.json", base)
    documents.write_atomically(state / MARKER, wanted)
    return False


def _made(repository: Repository, spec: dict[str, Any]) -> dict[str, Any]:
    """Anew. The old .git goes as a whole: in a kept environment its hooks, filters and settings are the agent's."""
    remove(repository.git_dir)
    create(repository, packs=[Path(spec["pack"])], sha=spec["sha"], shallow=spec["shallow"])
    return {"sha": spec["sha"], "shallow": spec["shallow"], "packs": [Path(spec["pack"]).name]}


def _grown(repository: Repository, spec: dict[str, Any], state: Path, found: Any) -> dict[str, Any]:
    """What a snapshot brought, and what has come since. Only of a machine in which no agent has been yet."""
    before = json.loads((state / "base.json").read_text(encoding="utf-8"))
    if before["sha"] != spec["on"] or not isinstance(found, dict) or found.get("turn") != NO_TURN:
        raise GitFailed(f"the snapshot does not hold {spec['on']}")
    shallow = sorted({*before["shallow"], *spec["shallow"]})
    add(repository, packs=[Path(spec["pack"])], sha=spec["sha"], shallow=shallow)
    return {"sha": spec["sha"], "shallow": shallow, "packs": [*before["packs"], Path(spec["pack"]).name]}


def _check_out(repository: Repository, sha: str, branch: str) -> None:
    repository("update-ref", f"refs/heads/{branch}", sha)
    repository("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    repository("reset", "--hard", "--quiet", sha)
    repository("clean", "-ffdq")  # not -x: what the ignore rules name (installed packages, caches) is worth keeping
    repository("config", "user.name", "Forgehand agent")
    repository("config", "user.email", "agent@forgehand.invalid")
    repository("config", "gc.auto", "0")


def _found(state: Path) -> Any:
    try:
        return json.loads((state / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    sys.exit(main())
