"""Gives an agent the rules of a folder when one of its tools first touches it. The agent's program runs this after
each call, with the call as JSON on stdin; what this prints reaches the agent beside the result.

It runs inside the environment, so it imports nothing of ours. An error means that nothing is said."""

from __future__ import annotations

import hashlib
import json
import posixpath
import sys
from itertools import islice
from pathlib import Path
from typing import Any

MOST_CALL_BYTES = 64 << 20
"""A call comes with its result, such as the whole of a file before an edit."""
MOST_COMMAND = 20_000
MOST_AT_ONCE = 20
MOST_SAID = 9_000
"""The program puts longer words into a file, and shows only their beginning."""
MADE_OF = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


def main() -> int:
    listed = Path(sys.argv[1])
    rules = json.loads(listed.read_text("utf-8"))
    call = json.loads(sys.stdin.buffer.read(MOST_CALL_BYTES))
    told = listed.with_name(rules["told"])
    told.mkdir(exist_ok=True)
    who = hashlib.sha256(str(call.get("agent_id") or "").encode()).hexdigest()[:16]
    if call.get("hook_event_name") == "PreCompact":  # the summary may lose them, so they are given again
        for known in told.glob(f"{who}-*"):
            known.unlink(missing_ok=True)
        return 0
    mine = (one for one in rules["folders"] if call.get("agent_id") or not one["known"])
    found = (one for one in mine if touches(one["folder"], call, rules["work"]))
    new = list(islice((one for one in found if _is_first(told / f"{who}-{one['file']}")), MOST_AT_ONCE))
    if new:
        words = said([(one["folder"], listed.parent / "context" / "rules" / one["file"]) for one in new])
        answer = {"hookEventName": call["hook_event_name"], "additionalContext": words}
        sys.stdout.write(json.dumps({"hookSpecificOutput": answer}))
    return 0


def touches(folder: str, call: dict[str, Any], work: str) -> bool:
    given = call.get("tool_input") or {}
    here = _inside(str(call.get("cwd") or work), work)
    paths = [given[name] for name in ("file_path", "notebook_path", "path") if isinstance(given.get(name), str)]
    if any(_holds(folder, _inside(posixpath.join(work, here or "", path), work)) for path in paths):
        return True
    command = given.get("command")
    if not isinstance(command, str):
        return False
    # A path in the command begins at the root, or where the command stands.
    names = [folder, *([folder[len(here) + 1 :]] if here and folder.startswith(here + "/") else [])]
    return _holds(folder, here) or any(_occurs(name, command[:MOST_COMMAND], work) for name in names)


def _inside(path: str, work: str) -> str | None:
    """The path from the work tree on; None if it is outside."""
    whole = posixpath.normpath(path)
    if whole == work:
        return ""
    return whole[len(work) + 1 :] if whole.startswith(work + "/") else None


def _holds(folder: str, path: str | None) -> bool:
    return path is not None and (path == folder or path.startswith(folder + "/"))


def _occurs(name: str, command: str, work: str) -> bool:
    """Decide whether a command names the folder as a path. A name that is one word needs a slash or a `cd`."""
    at = command.find(name)
    while at >= 0:
        before, after = command[max(0, at - len(work) - 4) : at], command[at + len(name) : at + len(name) + 2]
        begins = before.endswith(("./", work + "/")) or not before or before[-1] not in MADE_OF + "./"
        ends = not after or (after[0] not in MADE_OF if after[0] != "." else after[-1] not in MADE_OF)
        if begins and ends and ("/" in name or after[:1] == "/" or before.endswith(("cd ", "/"))):
            return True
        at = command.find(name, at + 1)
    return False


def _is_first(known: Path) -> bool:
    """Note that the agent has the rules now; only one of several calls at once is the first."""
    try:
        known.touch(0o600, exist_ok=False)
    except FileExistsError:
        return False
    return True


def said(new: list[tuple[str, Path]]) -> str:
    parts, room = [], MOST_SAID
    for folder, path in new:
        text = path.read_text("utf-8")
        head = f"Rules of the folder {folder}, which count for work in it:\n\n"
        if len(head) + len(text) > room:
            cut = f"\n[… cut here: all of it is in {path}]"
            text = text[: max(0, room - len(head) - len(cut))].rstrip() + cut
        parts.append(head + text)
        room -= len(parts[-1]) + 2
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
