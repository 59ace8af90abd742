"""Every sentence of the workbench to the person at the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from bot.git import names
from bot.words import endings
from bot.words.quoting import shown


def missing_folder(path: Path) -> str:
    return f"There is no folder {path}."


def not_a_folder(path: Path) -> str:
    return f"{path} is a file; --path takes a folder."


def closed_folder(path: Path) -> str:
    return f"The folder {path} cannot be read."


def empty_folder(path: Path) -> str:
    return f"There is nothing to work on in {path}: it holds no file that git would take."


def no_work_tree(path: Path) -> str:
    return f"{path} is inside git's own folder or a bare repository: name a folder with files."


def unreadable_repository(path: Path, told: str) -> str:
    return f"git cannot read the repository of {path}: {_last(told)}"


def other_hash(path: Path) -> str:
    return f"The repository of {path} uses SHA-256 object names, which are not handled."


def other_refs(path: Path) -> str:
    return f"The repository of {path} keeps its refs in another form than files, which is not handled."


def not_plain(path: Path) -> str:
    return _seen(
        f"{path} is a link, a pipe or a device, which may lead out of the repository. If the repository is yours, put "
        "a plain file or folder in its place."
    )


def large_file(path: Path, most_bytes: int) -> str:
    return _seen(f"{path} is larger than {most_bytes >> 10} KiB, which git never makes it: remove it or restore it.")


def waits(path: Path) -> str:
    return _seen(f"{path} is a named pipe or a device, at which git waits for ever: remove it.")


def no_worktree_of(top: Path, common: Path) -> str:
    return _seen(
        f"{top / '.git'} leads to the repository {common}, which does not know {top} as its worktree, so nothing of it "
        f"is taken. If it is yours:{command('git', '--git-dir', common, 'worktree', 'repair', top)[1:]}"
    )


def other_work_tree(top: Path, git_dir: Path) -> str:
    return _seen(
        f"{git_dir / 'config'} sets core.worktree to another folder than {top}, so files from there would be taken: "
        "name that folder by --path, or take the line out."
    )


def not_of_this_folder(top: Path, git_dir: Path) -> str:
    claim = command("git", "config", "--file", git_dir / "config", "core.worktree", top)[1:]
    return _seen(
        f"{top / '.git'} leads to the repository {git_dir}, which does not know {top}, so nothing of it is taken. "
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
        f"objects/info/alternates; or, if both are yours and the lender may be written to:{claim}"
    )


def too_many_lenders(top: Path) -> str:
    return _seen(
        f"The repository of {top} borrows objects from too many others: clone it without --shared or --reference."
    )


def incomplete_repository(path: Path) -> str:
    return f"Objects are missing in the repository of {path} (a partial clone?): `git fsck` names them."


def unreadable_files(path: Path, told: str) -> str:
    return f"git cannot take in {path}: {_last(told)}"


def too_much(path: Path, files: int, size: int) -> str:
    return (
        f"{path} holds {files} files with {size >> 20} MiB that git would take, which is too much to bring into a "
        "sandbox: name a narrower folder, or have git ignore what is not needed."
    )


def no_prompt() -> str:
    return "The prompt is empty: say what is to be done."


def long_prompt(limit: int) -> str:
    return f"The prompt is longer than {limit} bytes: put the material into a file of the folder and name it."


def not_isolated(why: str) -> str:
    return (
        f"This host cannot isolate the agent: {why.rstrip('.')}. Fix that, or give --no-isolation to run it as "
        "plain processes that may do whatever you may."
    )


def not_newest(why: str) -> str:
    return f"Claude Code could not be updated, so the one that is here is used: {why}"


def no_isolation() -> str:
    return "NO ISOLATION: the agent runs as plain processes and may do whatever you may on this machine."


def long_socket(path: Path) -> str:
    return f"The path {path} is too long for a socket: set FORGEHAND_DATA_DIR to a shorter one."


def left_out(names: Sequence[str]) -> str:
    named = ", ".join(shown(name, 80) for name in names[:5]) + (", …" if len(names) > 5 else "")
    return f"Left out, as they are repositories of their own: {named}."


def not_taken_with_reasons(paths: Iterable[str]) -> list[tuple[str, str]]:
    return [(path, names.alias_fault(path) or endings.UNREADABLE) for path in paths]


def not_taken(paths: Sequence[str]) -> str:
    rows = [f"{shown(path, 120)} ({why})" for path, why in not_taken_with_reasons(paths[:10])]
    more = f"; and {len(paths) - 10} more" if len(paths) > 10 else ""
    return f"Not brought home, as git does not take it: {'; '.join(rows)}{more}."


def blocked_hosts(hosts: Sequence[str]) -> str:
    named = ", ".join(shown(host, 80) for host in hosts[:8])
    return f"Asked for and not allowed: {named}. FORGEHAND_EGRESS names the hosts that the sandbox may reach."


def provider_out_of_credit() -> str:
    return "The account at the model's provider is out of credit: add some, then run this again."


def provider_refused(status: str) -> str:
    return f"The model's provider does not accept the key ({status}): check ANTHROPIC_API_KEY."


def abandoned() -> str:
    return "You abandoned it: what the agent had done is thrown away."


def stopped_early() -> str:
    return "You asked to stop before the agent had begun."


def held(paths: Iterable[tuple[str, str]]) -> str:
    rows = [f"{shown(path, 120)} ({why})" if path else why for path, why in paths]
    more = f", and {len(rows) - 10} more" if len(rows) > 10 else ""
    return f"Policy holds these changes, so nothing was made of them: {'; '.join(rows[:10])}{more}."


def secret_in_work(paths: Sequence[str]) -> str:
    named = ", ".join(shown(path, 120) for path in paths[:10])
    return f"These files hold what looks like a secret; look before you publish them: {named}."


def kept_patch(path: Path) -> str:
    return f"The work is kept as a patch: {path}"


def kept_bundle(path: Path) -> str:
    return f"What came out is kept, unread, as a git bundle: {path}"


def branch_not_made(branch: str, told: str) -> str:
    return f"The branch {branch} could not be made ({_last(told)})."


def branch_taken(branch: str) -> str:
    return f"The branch {branch} is here already and has work of its own, or is checked out: rename it, then ask again."


def applied() -> str:
    return "The changes are applied to the folder."


def other_repository(top: Path) -> str:
    return _seen(f"the repository of {top} is no longer the one that the agent began with")


def not_landed(told: str) -> str:
    return f"The work could not be brought home ({_last(told)})."


def not_applied(told: str) -> str:
    return f"The changes could not be applied to the folder, which was left as it is ({_last(told)})."


def not_finished() -> str:
    return "As the work is unfinished, it was not applied to the folder."


def command(*parts: str | Path) -> str:
    return "  " + shlex.join(str(part) for part in parts)


def _seen(text: str) -> str:
    """What somebody else may have written says nothing to the terminal itself."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _last(told: str) -> str:
    """git's own last words, in one line."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    line = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "no reason")
    plain = "".join(letter for letter in line.removeprefix("fatal: ").removeprefix("error: ") if letter.isprintable())
    return plain[:300]
