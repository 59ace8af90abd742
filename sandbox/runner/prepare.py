"""Makes the checkout from the host's pack: at one commit, on one branch, without a remote."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import documents
from .repository import Checkout, CheckoutGitFailed, add, create, remove

MARKER = "forgehand-prepared"
BESIDE = ("submodules.json", "large-files.json")  # other scripts list there what they have put into this checkout
MOST_RULES = 1000
NO_TURN = 0  # the turn of a checkout in a snapshot


def main() -> int:
    return documents.serve(prepare, CheckoutGitFailed)


def prepare(spec: dict[str, Any]) -> dict[str, bool]:
    """Make the checkout, if needed. `already`: this turn's checkout exists with the agent's work in it, so we leave it
    alone. `known`: there was some checkout, and everything built in it is still there."""
    work, state = Path(spec["work"]), Path(spec["state"])
    for path in spec.get("remove", ()):
        remove(Path(path))
    wanted = {"turn": spec["turn"], "sha": spec["sha"], "branch": spec["branch"]}
    found = _found(state)
    if not spec.get("fresh") and found == wanted and (work / ".git").exists():
        return {"already": True, "known": True}
    work.mkdir(parents=True, exist_ok=True)
    state.mkdir(parents=True, exist_ok=True)
    for name in (MARKER, *BESIDE):
        remove(state / name)
    repository = Checkout(spec["git"], work / ".git", work, seconds=spec["timeout_seconds"])
    if spec["on"]:
        base = _grown(repository, spec, state, found)
    else:  # remove the whole old .git, because in a kept environment its hooks, filters and settings are the agent's
        remove(repository.git_dir)
        create(repository, packs=[Path(spec["pack"])], sha=spec["sha"], shallow=spec["shallow"])
        base = {"sha": spec["sha"], "shallow": spec["shallow"], "packs": [Path(spec["pack"]).name]}
    _check_out(repository, spec["sha"], spec["branch"])
    hidden = not spec["on"] and remove_hidden(repository)  # a snapshot has seen no agent
    if spec.get("saved"):  # put earlier work on top of the commit, uncommitted, as if it had just been done
        said = repository("bundle", "unbundle", spec["saved"])
        repository("read-tree", "--reset", "-u", said.split()[0])
        repository("reset", "--mixed", "--quiet", spec["sha"])
    documents.write_atomically(state / "base.json", base)
    documents.write_atomically(state / MARKER, wanted)
    return {"already": False, "known": found is not None and not hidden}


def _grown(repository: Checkout, spec: dict[str, Any], state: Path, found: Any) -> dict[str, Any]:
    """Add the newer commits to a snapshot's checkout, in a machine that no agent has used."""
    before = json.loads((state / "base.json").read_text(encoding="utf-8"))
    if before["sha"] != spec["on"] or not isinstance(found, dict) or found.get("turn") != NO_TURN:
        raise CheckoutGitFailed(f"the snapshot does not hold {spec['on']}")
    shallow = sorted({*before["shallow"], *spec["shallow"]})
    add(repository, packs=[Path(spec["pack"])], sha=spec["sha"], shallow=shallow)
    return {"sha": spec["sha"], "shallow": shallow, "packs": [*before["packs"], Path(spec["pack"]).name]}


def _check_out(repository: Checkout, sha: str, branch: str) -> None:
    repository("update-ref", f"refs/heads/{branch}", sha)
    repository("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    repository("reset", "--hard", "--quiet", sha)
    repository("clean", "-ffdq")  # not -x: ignored files (installed packages, caches) are worth keeping
    repository("config", "user.name", "Forgehand agent")
    repository("config", "user.email", "agent@forgehand.invalid")
    repository("config", "gc.auto", "0")


def remove_hidden(repository: Checkout) -> bool:
    """Remove ignored files, unless a rule of the commit itself ignores them: any other rule would also hide the next
    turn's work. True: there were some, which setup commands may have made."""
    found = repository("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", raw=True)
    listed = [path for path in found.split("\0") if path]
    with tempfile.TemporaryFile() as asked:
        # This command takes no literal names. After "./" git does not read a name as a magic pattern.
        asked.write("".join(f"./{path}\0" for path in listed).encode("utf-8", "surrogateescape"))
        asked.seek(0)
        check = ("--no-literal-pathspecs", "check-ignore", "-z", "-v", "--stdin")
        told = repository(*check, stdin=asked, allowed=(0, 1), raw=True).split("\0")
    rules = sorted(set(told[0:-1:4]))[:MOST_RULES]
    tracked = set(repository("ls-files", "-z", "--", *rules, raw=True).split("\0")) if rules else set()
    ruled = {path for rule, path in zip(told[0::4], told[3::4]) if rule in tracked}
    hidden = [path for path in listed if f"./{path}" not in ruled]
    for path in hidden:
        remove(repository.work / path.rstrip("/"))
    return bool(hidden)


def _found(state: Path) -> Any:
    try:
        return json.loads((state / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    sys.exit(main())
