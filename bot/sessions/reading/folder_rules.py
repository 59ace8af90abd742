"""Reads the rules of folders from the base branch, with what they import, and finds the folders of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.agent import folder_rules
from bot.agent.folder_rules import RuleFile
from bot.agent.material import AGENTS, CLAUDE, Rulebook, rule_names, size
from bot.git.cache import RepositoryCache
from bot.kinds.shape import WorkFolders
from bot.models import RepoId
from bot.repo_config import RepoConfig
from bot.sessions import folders
from bot.sessions.services import Services
from bot.sessions.starting_point import Start
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import on_folders

MOST_READ_BYTES = 1 << 20
MOST_FILES = 500
MOST_FOLDERS = 300
MOST_CARRIED_BYTES = 512 << 10
"""The limits for everything that an agent may come to."""


@dataclass(frozen=True)
class FoldersFound:
    where: WorkFolders
    book: Rulebook
    instructions: str
    """Those of the config, with what it says for these folders."""
    about: str
    """Words for the agent; empty unless a person named a folder."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Spoken:
    """The words and files that may name a folder."""

    request: str
    thread: str
    changed: Sequence[str]


async def settled(
    services: Services, turn: Turn, config: RepoConfig, start: Start, book: Rulebook, spoken: Spoken
) -> FoldersFound:
    """Find the folders of the turn, and give the agent their rules from the start."""
    heads = {folder_rules.folder_of(path): path for path in await asyncio.to_thread(_heads, book.paths)}
    paths = book.paths if start.sha == start.base else await services.cache.paths(turn.repo_id, start.sha)
    asked, places = await _places(services, turn, spoken, paths)
    patterns = await asyncio.to_thread(folders.patterns_for, config, places)
    marked = {*heads, *filter(None, map(folders.fixed_part, patterns))}
    found = (asked,) if asked else await asyncio.to_thread(folders.homes, places, marked)
    chain = [heads[one] for folder in found for one in folder_rules.above(folder) if one in heads]
    wanted = list(dict.fromkeys(chain))
    top = [path for path in (CLAUDE, AGENTS) if path in dict(book.files)][:1]
    loaded, notes = await _loaded(services.cache, turn.repo_id, start.base, [*top, *wanted], book.paths)
    rest = tuple(path for path in book.nested if path not in wanted and path in heads.values())
    where = WorkFolders(found, patterns, tuple(wanted), start.base or "" if heads else "")
    about = on_folders.is_about(found) if asked else ""
    book = replace(book, files=tuple(loaded), nested=rest, paths=())
    return FoldersFound(where, book, folders.instructions(config, patterns), about, tuple(notes))


async def for_agents(services: Services, turn: Turn) -> dict[str, str]:
    """Return the rules of all folders, by folder: also those that the agent has, for its sub-agents."""
    where = turn.part(WorkFolders)
    paths = await services.cache.paths(turn.repo_id, where.rules_sha)
    known = await asyncio.to_thread(set, paths)
    heads = await asyncio.to_thread(_heads, paths)
    heads = sorted(heads, key=lambda path: (path not in where.rules, path.count("/"), path))[:MOST_FOLDERS]
    files = await rule_files(services.cache, turn.repo_id, where.rules_sha, heads, known)

    def written() -> dict[str, str]:
        found, room = dict[str, str](), MOST_CARRIED_BYTES
        for head in heads:
            text = folder_rules.words(folder_rules.expanded(head, files)[0], turn.base or "", room)
            room -= size(text)
            if text:
                found[folder_rules.folder_of(head)] = text
        return found

    return await asyncio.to_thread(written)


def _heads(paths: Sequence[str]) -> list[str]:
    """List the one file that counts of each folder with rules, without the top."""
    ruled = {path for path in paths if path.endswith((f"/{CLAUDE}", f"/{AGENTS}"))}
    found = (folder_rules.head_of(folder_rules.folder_of(path), ruled) for path in ruled)
    return sorted({path for path in found if path})


async def _places(
    services: Services, turn: Turn, spoken: Spoken, paths: Sequence[str]
) -> tuple[str | None, Sequence[str]]:
    """Return the folder that `--in` names, and the files that the turn is about. The first that names any counts."""
    files, known = await asyncio.to_thread(lambda: (set(paths), folders.CommitFolders(paths)))
    if turn.options is not None and turn.options.folder is not None:
        asked = await asyncio.to_thread(folders.asked_for, turn.options.folder, files, known)
        return asked, [f"{asked}/{folders.ANYTHING}"]
    if named := folders.named_in(spoken.request, files, known):
        return None, named
    if spoken.changed:
        return None, spoken.changed
    earlier = [one for one in await sessions.turns_of(services.store, turn.key.session) if one.n < turn.n]
    if before := next((one for last in reversed(earlier) if (one := last.part(WorkFolders).folders)), ()):
        return None, [f"{one}/{folders.ANYTHING}" for one in before if one in known]
    return None, folders.named_in(spoken.thread, files, known)


async def _loaded(
    cache: RepositoryCache, repo: RepoId, sha: str | None, heads: Sequence[str], paths: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    if sha is None:
        return [], []
    files = await rule_files(cache, repo, sha, heads, await asyncio.to_thread(set, paths))
    found: dict[str, tuple[str, str]] = {}
    notes: list[str] = []
    for head in heads:
        expanded, left_out = folder_rules.expanded(head, files)
        notes += left_out if expanded else [f"{rule_names(head)}: it is larger than what Forgehand reads"]
        for importer, one in expanded:
            found.setdefault(one.path, (folder_rules.title(importer, one), one.text))
    return list(found.values()), list(dict.fromkeys(notes))


async def rule_files(
    cache: RepositoryCache, repo: RepoId, sha: str, heads: Sequence[str], known: set[str]
) -> dict[str, RuleFile]:
    """Read files and what they import, level by level. A link stands for the file that it leads to."""
    files: dict[str, RuleFile] = {}
    links: dict[str, str] = {}
    level, room = list(heads), MOST_READ_BYTES
    for _ in range(folder_rules.MOST_DEPTH + folder_rules.MOST_LINKS + 1):
        wanted = [path for path in dict.fromkeys(level) if path in known and path not in files and path not in links]
        got = await cache.files(repo, sha, wanted[: max(0, MOST_FILES - len(files))], max_bytes=MOST_READ_BYTES)
        level = []
        for path, one in got.items():
            if one.is_link:
                links[path] = folder_rules.target(path, one.content.decode("utf-8", "replace")) or ""
                level.append(links[path])
            elif (room := room - len(one.content)) >= 0:
                files[path] = await asyncio.to_thread(folder_rules.read, path, one.content)
                level += [other for several in files[path].imports for other in several]
    for path in links:
        end = path
        for _ in range(folder_rules.MOST_LINKS):
            end = links.get(end, end)
        if end in files:
            files[path] = files[end]
    return files
