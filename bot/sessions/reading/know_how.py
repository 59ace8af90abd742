"""Packs the know-how of the base branch, and that of the account's own repository, for the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bot import knowhow
from bot.agent.material import KNOW_HOW
from bot.agent.prompt import apart
from bot.errors import GitHubRefused, GitHubUnavailable
from bot.git.errors import GitTimedOut, RefMissing, RepositoryEmpty, RepositoryUnsupported
from bot.git.folders import FolderBounds
from bot.git.run import RemoteAccess
from bot.github.types import TokenPurpose
from bot.knowhow import KnowHow, KnowHowFile, asking, packing
from bot.models import RepoId, Thread
from bot.sessions import account_repository
from bot.sessions.reading import briefing
from bot.sessions.services import Services
from bot.store import repos
from bot.store.accounts import AccountRepository
from bot.store.sessions import Turn
from sandbox.agents.base import Plugin

REPOSITORY, ACCOUNT = "repository", "account"
"""The names of the plugins, which the names of their commands begin with."""
_UNREADABLE = (GitHubRefused, GitHubUnavailable, GitTimedOut, RefMissing, RepositoryEmpty, RepositoryUnsupported)
"""Also what may pass: the turn's own repository has just been fetched, so waiting would rather hold up everybody."""
_BOUNDS = FolderBounds(knowhow.MOST_FILES, knowhow.MAX_FILE_BYTES, knowhow.MAX_BYTES, first=packing.is_text_to_read)


async def gather(services: Services, thread: Thread, base: str | None, shared: AccountRepository) -> list[KnowHow]:
    """`base`: the pinned commit of the base branch, if that has some."""
    found = [await _packed(services, REPOSITORY, thread.repo.id, base)] if base is not None else []
    if (of_account := await _of_account(services, thread, shared)) is not None:
        found.append(of_account)
    return found


async def _of_account(services: Services, thread: Thread, shared: AccountRepository) -> KnowHow | None:
    if (repo := account_repository.shares_with(shared, thread.repo)) is None:
        return None
    try:
        token = await services.github.installation(thread.installation).token(
            TokenPurpose.READ_REPOSITORY, repo.id, fresh=True
        )
        access = RemoteAccess(f"{services.settings.github.url}/{repo.full_name}.git", token)
        await repos.upsert_repo(services.store, repo, thread.installation)  # so that it is forgotten as any other
        tip = await services.cache.fetch(repo.id, access, f"refs/heads/{repo.default_branch}", depth=1)
        return await _packed(services, ACCOUNT, repo.id, tip)
    except _UNREADABLE:
        why = f"the skills, agents and commands of {repo.full_name}, which could not be read"
        return KnowHow(ACCOUNT, left_out=(why,))


async def _packed(services: Services, plugin: str, repo: RepoId, sha: str) -> KnowHow:
    folders = [one.rstrip("/") for one in KNOW_HOW]
    content = await services.cache.folder(repo, sha, folders, _BOUNDS)
    left_out = []
    if content.special:
        left_out.append(f"{content.special} links or submodules in `.claude`")
    if content.beyond:
        most, largest = knowhow.MOST_FILES, knowhow.MAX_FILE_BYTES >> 10
        whole = knowhow.MAX_BYTES >> 10
        left_out.append(
            f"{content.beyond} files in `.claude`: more than {most}, or larger than {largest} KB or {whole} KB together"
        )
    files = [KnowHowFile(one.path, one.data, one.executable) for one in content.files]
    return await asyncio.to_thread(packing.pack, plugin, files, left_out)


async def written_out(turn: Turn, known: Sequence[KnowHow], ours: str) -> str:
    """Return the turn's request, with the repository's command that it names, if any, in its own words."""
    commands = [command for one in known for command in one.commands]
    asked, rest = apart(turn.prompt)
    return await asyncio.to_thread(asking.written_out, asked, commands, ours) + rest


async def shelve(services: Services, turn: Turn, known: Sequence[KnowHow]) -> None:
    """Replace what an earlier try has left. It is on disk before the step that made it counts as done."""
    rows = [(one.plugin, one.files, sorted(one.executable)) for one in known if one.files]
    await briefing.shelve_in(_place(services, turn).parent, {_place(services, turn).name: msgspec.msgpack.encode(rows)})


async def shelved(services: Services, turn: Turn) -> list[Plugin]:
    try:
        data = await asyncio.to_thread(_place(services, turn).read_bytes)
    except FileNotFoundError:  # it was on the machine of a replica that is gone, like the other files of the prompt
        return []
    rows = msgspec.msgpack.decode(data, type=list[tuple[str, dict[str, bytes], list[str]]])
    return [Plugin(name, files, frozenset(executable)) for name, files, executable in rows]


def _place(services: Services, turn: Turn) -> Path:
    return services.turn_folder(turn.key.workflow_id) / "know-how" / "plugins"
