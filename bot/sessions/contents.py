"""Brings into an environment what a commit only points to: the files of submodules and of LFS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot import repo_config
from bot.git.large_files import Pointed
from bot.kinds.shape import OnFork
from bot.sessions import large_files, submodules
from bot.sessions.services import Services
from bot.sessions.submodules import Submodules
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import on_submodules
from sandbox.execution import ExecutionEnvironment


@dataclass(frozen=True)
class Source:
    """A commit, and the git directory that has it."""

    git_dir: Path
    commit: str
    new: Pointed | None = None
    """Contents of LFS that are nowhere else yet."""


async def bring(services: Services, turn: Turn, environment: ExecutionEnvironment, source: Source) -> tuple[str, ...]:
    """Return a sentence about everything that stays out. A fork's code gets nothing: it could name what it wants."""
    config = repo_config.load(turn.config)
    if turn.part(OnFork).fork is not None:
        return (on_submodules.ON_A_FORK,)
    notes: tuple[str, ...] = ()
    if config.submodules:
        thread = (await sessions.session(services.store, turn.key.session)).thread
        found = Submodules(services, turn, thread)
        await found.open(source.git_dir, source.commit, services.made_turn_folder(turn.key.workflow_id))
        notes += await submodules.bring(found, environment)
    if config.lfs:
        notes += await large_files.bring(services, turn, environment, (source.git_dir, source.commit), source.new)
    return notes
