"""git's proc-receive hook: refuses refs in GitHub's words. Standard library only; runs as a script in a process of git.

Its rules come as JSON in FORGEHAND_RULES: {"protections": [[pattern, code, lines, reason, only]], "workflows": bool,
"max_file_bytes": int, "verified": [sha], "secrets": [text], "large": [oid] or null}. Everything else falls through to
git.
"""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys

Protection = tuple[str, str, list[str], str, str]
Command = tuple[str, str, str]
NO_SHA = "0" * 40


def read_packet() -> bytes | None:
    """Read one pkt-line; None for a flush packet."""
    size = int(sys.stdin.buffer.read(4), 16)
    return sys.stdin.buffer.read(size - 4) if size else None


def write_packet(text: str | None) -> None:
    data = (text or "").encode()
    sys.stdout.buffer.write(b"0000" if text is None else f"{len(data) + 4:04x}".encode() + data)


def read_section() -> list[str]:
    found = []
    while (packet := read_packet()) is not None:
        found.append(packet.decode("utf-8", "surrogateescape").rstrip("\n"))
    return found


def git(*argv: str) -> list[str]:
    out = subprocess.run(["git", *argv], capture_output=True, check=argv[0] != "grep").stdout
    return out.decode("utf-8", "surrogateescape").split("\n")[:-1]


def say(*lines: str) -> None:
    for line in lines:
        sys.stderr.write(f"error: {line}\n")
    sys.stderr.flush()


def breaks(new: str, only: str, verified: list[str]) -> bool:
    """Decide whether a push breaks a rule about `only` one kind of commit; an empty `only` means every push."""
    if not only or new == NO_SHA:
        return not only
    if only == "linear":
        return bool(git("rev-list", "--merges", new, "--not", "--all"))
    return not set(git("rev-list", new, "--not", "--all")) <= set(verified)


def protected(new: str, ref: str, rules: list[Protection], verified: list[str]) -> str | None:
    for pattern, code, lines, reason, only in rules:
        if not ref.startswith("refs/heads/") or not fnmatch.fnmatchcase(ref.removeprefix("refs/heads/"), pattern):
            continue
        if breaks(new, only, verified):
            what = {
                "GH006": f"GH006: Protected branch update failed for {ref}.",
                "GH013": f"GH013: Repository rule violations found for {ref}.",
            }
            say(what.get(code, f"{code}: {ref}"), "", *lines)
            return reason
    return None


def workflow(new: str) -> str | None:
    """Refuse new commits that touch a workflow file."""
    argv = ("log", "--format=", "--name-only", "--diff-merges=combined", new, "--not", "--all")
    names = [name for name in git(*argv, "--", ".github/workflows") if name]
    if not names:
        return None
    return f"refusing to allow a GitHub App to create or update workflow `{names[0]}` without `workflows` permission"


def secret(new: str, ref: str, known: list[str]) -> str | None:
    """Refuse known secrets on any ref."""
    for commit in git("rev-list", new, "--not", "--all"):
        for line in (
            git("grep", "-I", "-n", "-F", *(part for one in known for part in ("-e", one)), commit, "--")
            if known
            else ()
        ):
            _, path, number, _ = line.split(":", 3)
            say(
                f"GH013: Repository rule violations found for {ref}.",
                "",
                "- GITHUB PUSH PROTECTION",
                "    Resolve the following violations before pushing again",
                "    - Push cannot contain secrets",
                f"      locations: commit: {commit} path: {path}:{number}",
            )
            return "push declined due to repository rule violations"
    return None


def too_large(new: str, limit: int) -> str | None:
    argv = (
        "rev-list",
        "--objects",
        f"--filter=blob:limit={limit + 1}",
        "--filter-print-omitted",
        new,
        "--not",
        "--all",
    )
    omitted = [line[1:] for line in git(*argv) if line.startswith("~")]
    if not omitted:
        return None
    rows = git("rev-list", "--objects", new, "--not", "--all")
    name = next((row.partition(" ")[2] for row in rows if row.startswith(omitted[0])), "?")
    size = int(git("cat-file", "-s", omitted[0])[0]) / 1024 / 1024
    say(
        "GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.",
        f"File {name} is {size:.2f} MB; this exceeds GitHub's file size limit of {limit / 1024 / 1024:.2f} MB",
    )
    return "pre-receive hook declined"


def unknown_large(new: str, known: list[str]) -> str | None:
    """Refuse pointers to objects of LFS that nobody has uploaded."""
    found = git("rev-list", "--objects", "--filter=blob:limit=1024", new, "--not", "--all")
    blobs = [row.partition(" ")[0] for row in found if row.partition(" ")[2]]
    for blob in blobs:
        if git("cat-file", "-t", blob) != ["blob"]:
            continue
        lines = git("cat-file", "blob", blob)
        oid = lines[1].removeprefix("oid sha256:") if len(lines) == 3 and "git-lfs" in lines[0] else None
        if oid is not None and oid not in known:
            say("GH008: Your push referenced at least 1 unknown Git LFS object:", f"    {oid}")
            return "pre-receive hook declined"
    return None


def judge(command: Command) -> str | None:
    """Return the reason for a refusal, or None."""
    rules = json.loads(os.environ["FORGEHAND_RULES"])
    _, new, ref = command
    refused = protected(new, ref, rules["protections"], rules["verified"])
    if refused or new == NO_SHA:
        return refused
    if refused := secret(new, ref, rules["secrets"]):
        return refused
    if not rules["workflows"] and (refused := workflow(new)):
        return refused
    if rules["large"] is not None and (refused := unknown_large(new, rules["large"])):
        return refused
    return too_large(new, rules["max_file_bytes"])


def main() -> None:
    read_section()
    write_packet("version=1\n")
    write_packet(None)
    sys.stdout.buffer.flush()
    commands = [line.split(" ", 2) for line in read_section()]
    for old, new, ref in commands:
        reason = judge((old, new, ref))
        if reason:
            write_packet(f"ng {ref} {reason}\n")
        else:
            write_packet(f"ok {ref}\n")
            write_packet("option fall-through\n")
    write_packet(None)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
