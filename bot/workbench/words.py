"""The workbench's sentences for the person at the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from bot.git import names
from bot.text.markup import shown
from bot.words import endings

NO_PROMPT = "The prompt is empty: say what the agent should do."
NO_ISOLATION = "NO ISOLATION: the agent runs as plain processes and may do whatever you may on this machine."
OUT_OF_CREDIT = "The account at the model's provider is out of credit: add some, then run this again."
ABANDONED = "You abandoned the run, so the agent's work is gone."
STOPPED_EARLY = "You stopped the run before the agent began."
APPLIED = "The changes are applied to the folder."
NOT_FINISHED = "The work is unfinished, so it was not applied to the folder."


def missing_folder(path: Path) -> str:
    return f"There is no folder {path}."


def not_a_folder(path: Path) -> str:
    return f"{path} is a file; --path takes a folder."


def closed_folder(path: Path) -> str:
    return f"The folder {path} cannot be read."


def empty_folder(path: Path) -> str:
    return f"There is nothing to work on in {path}: git would include none of its files."


def no_work_tree(path: Path) -> str:
    return f"{path} is inside git's own folder or a bare repository: name a folder with files."


def unreadable_repository(path: Path, error: str) -> str:
    return f"git cannot read the repository of {path}: {_last(error)}"


def other_hash(path: Path) -> str:
    return f"The repository of {path} uses SHA-256 object names, which Forgehand does not support."


def other_refs(path: Path) -> str:
    return f"The repository of {path} does not keep its refs in files, which Forgehand needs."


def not_plain(path: Path) -> str:
    return _seen(
        f"{path} is a link, a pipe or a device, which may lead out of the repository. If the repository is yours, put "
        "a plain file or folder in its place."
    )


def large_file(path: Path, most_bytes: int) -> str:
    return _seen(f"{path} is larger than {most_bytes >> 10} KiB, more than git ever writes: remove or restore it.")


def waits(path: Path) -> str:
    return _seen(f"{path} is a named pipe or a device, and git would wait for it forever: remove it.")


def no_worktree_of(top: Path, common: Path) -> str:
    return _seen(
        f"{top / '.git'} leads to the repository {common}, which does not know {top} as its worktree, so Forgehand "
        f"does not use it. If it is yours:{command('git', '--git-dir', common, 'worktree', 'repair', top)[1:]}"
    )


def other_work_tree(top: Path, git_dir: Path) -> str:
    return _seen(
        f"{git_dir / 'config'} sets core.worktree to a folder other than {top}, so git would take files from there: "
        "name that folder with --path, or remove the line."
    )


def not_of_this_folder(top: Path, git_dir: Path) -> str:
    claim = command("git", "config", "--file", git_dir / "config", "core.worktree", top)[1:]
    return _seen(
        f"{top / '.git'} leads to the repository {git_dir}, which does not know {top}, so Forgehand does not use it. "
        f"If it is yours:{claim}"
    )


def lender_missing(top: Path, store: Path) -> str:
    return _seen(
        f"The repository of {top} borrows objects from {store}, which is not there: `git fsck` names what is missing."
    )


def not_lent(top: Path, store: Path, borrower: Path) -> str:
    config, lends = store.parent / "config", "forgehand.lendsTo"
    claim = command("git", "config", "--file", config, "--add", lends, borrower.parent)[1:]
    return _seen(
        f"The repository of {top} borrows objects from {store} (as after `git clone --shared` or `--reference`), which "
        "does not say that it lends them. Copy them with `git repack -a -d` there and remove its "
        f"objects/info/alternates; or, if both are yours and you may write to the lender:{claim}"
    )


def too_many_lenders(top: Path) -> str:
    return _seen(
        f"The repository of {top} borrows objects from too many others: clone it without --shared or --reference."
    )


def incomplete_repository(path: Path) -> str:
    return f"Objects are missing in the repository of {path} (a partial clone?): `git fsck` names them."


def unreadable_files(path: Path, error: str) -> str:
    return f"git cannot take in {path}: {_last(error)}"


def too_much(path: Path, files: int, size: int) -> str:
    return (
        f"{path} has {files} files with {size >> 20} MiB that git would include, too much for a sandbox: name a "
        "smaller folder, or let git ignore files that the agent does not need."
    )


def long_prompt(limit: int) -> str:
    return f"The prompt is longer than {limit} bytes: put long material into a file of the folder and name that file."


def not_isolated(why: str) -> str:
    return (
        f"This host cannot isolate the agent: {why.rstrip('.')}. Fix that, or give --no-isolation to run it as "
        "plain processes, which may do whatever you may."
    )


def not_newest(why: str) -> str:
    return f"Claude Code could not be updated, so Forgehand uses the installed version: {why}"


def long_socket(path: Path) -> str:
    return f"The path {path} is too long for a socket: set FORGEHAND_DATA_DIR to a shorter one."


def left_out(names: Sequence[str]) -> str:
    named = ", ".join(shown(name, 80) for name in names[:5]) + (", …" if len(names) > 5 else "")
    return f"Left out, because they are separate repositories: {named}."


def not_taken_with_reasons(paths: Iterable[str]) -> list[tuple[str, str]]:
    return [(path, names.alias_fault(path) or endings.UNREADABLE) for path in paths]


def not_taken(paths: Sequence[str]) -> str:
    rows = [f"{shown(path, 120)} ({why})" for path, why in not_taken_with_reasons(paths[:10])]
    more = f"; and {len(paths) - 10} more" if len(paths) > 10 else ""
    return f"Left behind in the sandbox, because git cannot take it: {'; '.join(rows)}{more}."


def blocked_hosts(hosts: Sequence[str]) -> str:
    named = ", ".join(shown(host, 80) for host in hosts[:8])
    return f"The sandbox may not reach these hosts: {named}. To allow one, add it to FORGEHAND_EGRESS."


def provider_refused(status: str) -> str:
    return f"The model's provider does not accept the key ({status}): check ANTHROPIC_API_KEY."


def foreign_refused(trouble: str | None) -> str:
    return (
        f"{(trouble or '').partition(' The operator')[0]} Check the settings that go with FORGEHAND_PROVIDER.".strip()
    )


def held(paths: Iterable[tuple[str, str]]) -> str:
    rows = [f"{shown(path, 120)} ({why})" if path else why for path, why in paths]
    more = f", and {len(rows) - 10} more" if len(rows) > 10 else ""
    return f"Policy holds these changes: {'; '.join(rows[:10])}{more}."


def secret_in_work(paths: Sequence[str]) -> str:
    named = ", ".join(shown(path, 120) for path in paths[:10])
    return f"These files seem to hold secrets; check them before you publish them: {named}."


def kept_patch(path: Path) -> str:
    return f"The work is kept as a patch: {path}"


def kept_bundle(path: Path) -> str:
    return f"The work is kept, unchecked, as a git bundle: {path}"


def branch_not_made(branch: str, error: str) -> str:
    return f"Git could not make the branch {branch} ({_last(error)})."


def branch_taken(branch: str) -> str:
    return f"The branch {branch} exists here and has other work, or is checked out: rename it, then try again."


def other_repository(top: Path) -> str:
    return _seen(f"the repository of {top} is no longer the one that the agent began with")


def not_landed(error: str) -> str:
    return f"The work could not be copied back from the sandbox ({_last(error)})."


def not_applied(error: str) -> str:
    return f"The changes could not be applied, so the folder is as it was ({_last(error)})."


def command(*parts: str | Path) -> str:
    return "  " + shlex.join(str(part) for part in parts)


def _seen(text: str) -> str:
    """Replace control characters: someone else may have written the text."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _last(error: str) -> str:
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    line = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "no reason")
    plain = "".join(letter for letter in line.removeprefix("fatal: ").removeprefix("error: ") if letter.isprintable())
    return plain[:300]
