"""Brings the work to the person: through a quarantine and policy to a branch, into the folder, or into a patch.

The person's repository gets objects and one new branch. Its HEAD, index, checkout and settings are not touched, and
none of its hooks is run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.errors import BotError, UserError
from bot.git.errors import BundleRefused, GitFailed, GitTimedOut
from bot.git.inspection import Change
from bot.git.quarantine import Quarantine
from bot.git.run import Io, run_git
from bot.outbound import Redactor
from bot.proposal import descriptions, push_policy
from bot.workbench import passage, words
from bot.workbench import repository as repositories
from bot.workbench.job import Landed, WorkbenchJob, WorkbenchMeans
from bot.workbench.repository import PersonsRepository
from bot.workbench.snapshot import AUTHOR, FolderSnapshot
from bot.workbench.waiting import unless_for_ever

MOST_PATCH_BYTES = 512 << 20
SECONDS = 300.0
DAY = 86_400.0


@dataclass(frozen=True)
class BroughtWork:
    """What the agent brought home, as a bundle that nobody has looked at yet."""

    job: WorkbenchJob
    means: WorkbenchMeans
    snapshot: FolderSnapshot
    bundle: Path
    result: str
    finished: bool

    @property
    def quarantine(self) -> Path:
        return self.snapshot.mirror.with_name("quarantine.git")

    @property
    def kept(self) -> Path:
        return self.means.root / "kept"


async def land(work: BroughtWork) -> Landed:
    """Whatever goes wrong here, the work is not lost."""
    try:
        return await _land(work)
    except (BotError, OSError) as error:
        return await _refused_bundle(work, words.not_landed(_told(error)))


async def _land(work: BroughtWork) -> Landed:
    await asyncio.to_thread(_expire, work.kept, work.means.retention_days * DAY)
    quarantine = await Quarantine.create(work.quarantine, work.snapshot.mirror)
    try:
        tree = await quarantine.admit(work.bundle, base=work.snapshot.base)
        changes = await quarantine.changes(work.snapshot.base, tree)
        existing = await quarantine.paths(tree)
    except BundleRefused as error:
        return await _refused_bundle(work, str(error))
    if not changes:
        return Landed()
    landed = Landed(files=_files(changes), notes=await _notes(work, quarantine, changes))
    verdict = push_policy.check(changes, workflows_approved=True, existing=existing)
    landed = replace(landed, notes=(*landed.notes, *verdict.notes))
    if not verdict.may_push:
        held = words.held((item.path, item.why) for item in verdict.held)
        return await _keep_patch(work, tree, replace(landed, held=held))
    return await _deliver(work, tree, quarantine, landed)


async def _deliver(work: BroughtWork, tree: str, quarantine: Quarantine, landed: Landed) -> Landed:
    repository = work.snapshot.folder.repository
    if repository is not None:
        base = work.snapshot.base
        commit = await quarantine.commit(tree, [base], _message(work), AUTHOR, int(time.time()))
        try:
            await _make_branch(work, repository, commit)
            landed = replace(landed, branch=work.job.branch)
        except (BotError, OSError) as error:
            told = words.branch_not_made(work.job.branch, _told(error))
            landed = replace(landed, notes=(*landed.notes, told))
    if work.job.apply and work.finished:
        landed = await _apply(work, tree, landed)
    elif work.job.apply:
        landed = replace(landed, notes=(*landed.notes, words.not_finished()))
    if landed.branch is None and not landed.applied:
        return await _keep_patch(work, tree, landed)
    return replace(landed, advice=(*landed.advice, *_about_branch(work, landed)))


async def _make_branch(work: BroughtWork, repository: PersonsRepository, commit: str) -> None:
    """Objects first, then the name; a branch of that name must not be there yet. Much may have happened to the
    repository while the agent worked, so it is judged again."""
    target = work.bundle.with_name("out.pack")
    wanted = f"{commit}\n" + (f"^{repository.head}\n" if repository.head else "")
    with target.open("wb") as output:
        argv = ["pack-objects", "--revs", "--stdout", "--thin", "--quiet"]
        io = Io(stdin=wanted.encode(), stdout=output.fileno())
        await run_git(argv, work.quarantine, io=io, timeout=SECONDS)
    async with passage.opened(await repositories.judged(repository.top)) as way:
        if repository.head is not None and not await way.has_commit(repository.head):
            raise UserError(words.other_repository(repository.top))
        await way.add(target)
        await way.set_branch(work.job.branch, commit, None)


async def _apply(work: BroughtWork, tree: str, landed: Landed) -> Landed:
    """All of it or nothing: where the person has changed the same lines meanwhile, the folder is left as it is."""
    folder = work.snapshot.folder
    patch = work.bundle.with_name("work.patch")
    try:
        await _write_patch(work, tree, patch)
        with patch.open("rb") as source:
            argv = ["-C", str(folder.top), "apply", "--whitespace=nowarn", "-"]
            env = {"GIT_WORK_TREE": str(folder.top)}
            io = Io(stdin=source.fileno(), env=env, config={**folder.settings, "core.bare": "false"})
            await unless_for_ever(run_git(argv, work.snapshot.mirror, io=io, timeout=SECONDS), folder.top)
    except (BotError, OSError) as error:
        told = words.not_applied(_told(error))
        return replace(landed, notes=(*landed.notes, told))
    return replace(landed, applied=True, advice=(*landed.advice, words.applied()))


async def _write_patch(work: BroughtWork, tree: str, target: Path) -> None:
    flags = ["--binary", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index"]
    with target.open("wb") as output:
        io = Io(stdout=output.fileno(), max_file_bytes=MOST_PATCH_BYTES)
        argv = ["diff-tree", "-r", "-p", *flags, f"{work.snapshot.base}^{{tree}}", tree]
        await run_git(argv, work.quarantine, io=io, timeout=SECONDS)


async def _keep_patch(work: BroughtWork, tree: str, landed: Landed) -> Landed:
    target = await asyncio.to_thread(_place_for, work, "patch")
    try:
        await _write_patch(work, tree, target)
    except (GitFailed, GitTimedOut):
        target.unlink()
        return await _keep_bundle(work, landed)
    command = words.command("git", "-C", work.snapshot.folder.top, "apply", target)
    return replace(landed, kept=words.kept_patch(target), advice=(*landed.advice, "Apply it:", command))


async def _refused_bundle(work: BroughtWork, reason: str) -> Landed:
    return await _keep_bundle(work, Landed(held=reason))


async def _keep_bundle(work: BroughtWork, landed: Landed) -> Landed:
    target = await asyncio.to_thread(_place_for, work, "bundle")
    await asyncio.to_thread(shutil.copyfile, work.bundle, target)
    return replace(landed, kept=words.kept_bundle(target))


async def _notes(work: BroughtWork, quarantine: Quarantine, changes: Sequence[Change]) -> tuple[str, ...]:
    """Nothing is published here, so a secret is no reason to hold the work; it is one to look before a push."""
    model = work.means.model
    known = Redactor(secret.reveal() for secret in (model.api_key, model.oauth_token) if secret)
    found = await push_policy.paths_with_secrets(quarantine, changes, known)
    return (words.secret_in_work(found),) if found else ()


def _about_branch(work: BroughtWork, landed: Landed) -> list[str]:
    """How the work is looked at and taken over. Over uncommitted changes no merge goes: their diff is applied."""
    if landed.branch is None:
        return []
    top, branch = work.snapshot.folder.top, landed.branch
    rows = ["Look at it:", words.command("git", "-C", top, "show", "--stat", "--patch", branch)]
    if landed.applied:
        return rows
    if work.snapshot.is_clean:
        return [*rows, "Take it over:", words.command("git", "-C", top, "merge", branch)]
    take = f"{words.command('git', '-C', top, 'diff', '--binary', f'{branch}~1', branch)} |"
    return [
        *rows,
        "Take it over, on top of what is not committed:",
        take + words.command("git", "-C", top, "apply")[1:],
    ]


def _told(error: BotError | OSError) -> str:
    return error.words if isinstance(error, GitFailed) else str(error)


def _message(work: BroughtWork) -> str:
    subject = descriptions.first_title((work.result, work.job.prompt)) or "Work of the agent"
    return f"{subject}\n\nAsked for in these words:\n\n{work.job.prompt.strip()}\n\nForgehand-Session: {work.job.id}"


def _files(changes: Sequence[Change]) -> tuple[dict[str, object], ...]:
    return tuple(
        {
            "path": change.path.encode("utf-8", "replace").decode(),
            "added": None if change.binary else change.added,
            "removed": None if change.binary else change.removed,
        }
        for change in changes
    )


def _place_for(work: BroughtWork, kind: str) -> Path:
    work.kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = work.kept / f"{work.job.id}.{kind}"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return path


def _expire(folder: Path, seconds: float) -> None:
    for old in folder.glob("*") if folder.is_dir() else ():
        if old.lstat().st_mtime < time.time() - seconds:
            old.unlink(missing_ok=True)
