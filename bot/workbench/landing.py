"""Brings the work to the person: through a quarantine and policy to a branch, into the folder, or into a patch.

The person's repository gets objects and one new branch. Its HEAD, index, checkout and settings stay as they are, and
none of its hooks runs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from bot.errors import BotError, UserError
from bot.git.errors import BundleRefused, GitFailed, GitTimedOut
from bot.git.quarantine import Quarantine
from bot.git.run import Io, run_git
from bot.outbound import Redactor
from bot.proposal import descriptions, push_policy
from bot.proposal.titles import TitleSources
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
    """The agent's work, as a bundle that nobody has inspected yet."""

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
    """Bring the work to the person; if anything fails, keep it as a bundle."""
    try:
        return await _land(work)
    except BundleRefused as error:
        held = str(error)
    except (BotError, OSError) as error:
        held = words.not_landed(_reason(error))
    return await _keep_bundle(work, Landed(held=held))


async def _land(work: BroughtWork) -> Landed:
    await asyncio.to_thread(_expire, work.kept, work.means.retention_days * DAY)
    quarantine = await Quarantine.create(work.quarantine, work.snapshot.mirror)
    tree = await quarantine.admit(work.bundle, base=work.snapshot.base)
    changes = await quarantine.changes(work.snapshot.base, tree)
    existing = await quarantine.paths(tree)
    if not changes:
        return Landed()
    # nothing is published here, so a secret does not hold the work: the person should look before a push
    known = Redactor(secret.reveal() for secret in work.means.model.secrets())
    with_secrets = await push_policy.paths_with_secrets(quarantine, changes, known)
    verdict = push_policy.check(changes, workflows_approved=True, existing=existing)
    notes = (words.secret_in_work(with_secrets),) if with_secrets else ()
    files = tuple(
        {
            "path": change.path.encode("utf-8", "replace").decode(),
            "added": None if change.binary else change.added,
            "removed": None if change.binary else change.removed,
        }
        for change in changes
    )
    landed = Landed(files=files, notes=(*notes, *verdict.notes))
    if not verdict.may_push:
        held = words.held((item.path, item.why) for item in verdict.held)
        return await _keep_patch(work, tree, replace(landed, held=held))
    return await _deliver(work, tree, quarantine, landed)


async def _deliver(work: BroughtWork, tree: str, quarantine: Quarantine, landed: Landed) -> Landed:
    repository = work.snapshot.folder.repository
    if repository is not None:
        base = work.snapshot.base
        sources = TitleSources(words=work.result, request=work.job.prompt)
        subject = descriptions.calm_title(sources) or "Work of the agent"
        asked = f"Asked for in these words:\n\n{work.job.prompt.strip()}"
        message = f"{subject}\n\n{asked}\n\nForgehand-Session: {work.job.id}"
        commit = await quarantine.commit(tree, [base], message, AUTHOR, int(time.time()))
        try:
            await _make_branch(work, repository, commit)
            landed = replace(landed, branch=work.job.branch)
        except (BotError, OSError) as error:
            failed = words.branch_not_made(work.job.branch, _reason(error))
            landed = replace(landed, notes=(*landed.notes, failed))
    if work.job.apply and work.finished:
        landed = await _apply(work, tree, landed)
    elif work.job.apply:
        landed = replace(landed, notes=(*landed.notes, words.NOT_FINISHED))
    if landed.branch is None and not landed.applied:
        return await _keep_patch(work, tree, landed)
    return replace(landed, advice=(*landed.advice, *_about_branch(work, landed)))


async def _make_branch(work: BroughtWork, repository: PersonsRepository, commit: str) -> None:
    """Add the objects, then a new branch. The repository may have changed while the agent worked: judge it again."""
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
    """Apply everything or nothing: if the person has changed the same lines in the meantime, leave the folder."""
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
        return replace(landed, notes=(*landed.notes, words.not_applied(_reason(error))))
    return replace(landed, applied=True, advice=(*landed.advice, words.APPLIED))


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


async def _keep_bundle(work: BroughtWork, landed: Landed) -> Landed:
    target = await asyncio.to_thread(_place_for, work, "bundle")
    await asyncio.to_thread(shutil.copyfile, work.bundle, target)
    return replace(landed, kept=words.kept_bundle(target))


def _about_branch(work: BroughtWork, landed: Landed) -> list[str]:
    """Say how to look at the work and take it over: by a merge, or over uncommitted changes by applying the diff."""
    if landed.branch is None:
        return []
    top, branch = work.snapshot.folder.top, landed.branch
    rows = ["Look at it:", words.command("git", "-C", top, "show", "--stat", "--patch", branch)]
    if landed.applied:
        return rows
    if work.snapshot.is_clean:
        return [*rows, "Take it over:", words.command("git", "-C", top, "merge", branch)]
    diff = words.command("git", "-C", top, "diff", "--binary", f"{branch}~1", branch)
    take = f"{diff} |{words.command('git', '-C', top, 'apply')[1:]}"
    return [*rows, "Take it over, on top of what is not committed:", take]


def _reason(error: BotError | OSError) -> str:
    return error.words if isinstance(error, GitFailed) else str(error)


def _place_for(work: BroughtWork, kind: str) -> Path:
    work.kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = work.kept / f"{work.job.id}.{kind}"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return path


def _expire(folder: Path, seconds: float) -> None:
    for old in folder.glob("*") if folder.is_dir() else ():
        if old.lstat().st_mtime < time.time() - seconds:
            old.unlink(missing_ok=True)
