"""Finds out what a named folder is: a checkout, a part of one, or no repository. Nothing in it runs."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.errors import UserError
from bot.workbench import configured, passage, plain, words
from bot.workbench import repository as repositories
from bot.workbench.repository import PersonsRepository

USUAL_IGNORES = b"__pycache__/\nnode_modules/\n.venv/\n.DS_Store\n"
"""Ignored in a folder without a repository, which has no ignore rules."""
HARMLESS = ("core.filemode", "core.autocrlf", "core.eol", "core.symlinks", "core.ignorecase")
"""The settings that say how to read files of this folder; we take over no others."""


@dataclass(frozen=True)
class Folder:
    path: Path
    top: Path
    """The root of the work tree, or the folder itself if there is no repository."""
    repository: PersonsRepository | None
    ignored: bytes = b""
    """The person's own ignore rules that are not files of the work tree."""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def inside(self) -> str:
        return "" if self.path == self.top else self.path.relative_to(self.top).as_posix()

    def alone(self) -> Folder:
        return Folder(self.path, self.path, None, USUAL_IGNORES + self.ignored, self.settings)


async def look(path: Path) -> Folder:
    real = await asyncio.to_thread(_existing, path)
    top = await asyncio.to_thread(repositories.find, real)
    if top is None:
        return await _with_rules(Folder(real, real, None))
    mine = await repositories.judged(top)
    async with passage.opened(mine) as way:
        mine = replace(mine, head=await way.head())
    return await _with_rules(Folder(real, top, mine))


def _existing(path: Path) -> Path:
    try:
        real = path.expanduser().resolve(strict=True)
        if not real.is_dir():
            raise UserError(words.not_a_folder(path))
        if not os.access(real, os.R_OK | os.X_OK):
            raise UserError(words.closed_folder(path))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(words.missing_folder(path)) from None
    except (OSError, RuntimeError, ValueError):
        raise UserError(words.closed_folder(path)) from None
    return real


async def _with_rules(folder: Folder) -> Folder:
    """Read settings; as for git, those nearest to the folder win. Only the person's own files may name the file of
    ignore rules: a repository could name any file."""
    settings: dict[str, str] = {}
    for file in (_config_home() / "git" / "config", Path.home() / ".gitconfig"):
        settings.update(await configured.values(file, _wanted(*HARMLESS, "core.excludesfile"), own=True))
    ignored = settings.pop("core.excludesfile", str(_config_home() / "git" / "ignore"))
    rules = [USUAL_IGNORES] if folder.repository is None else []
    rules.append(_read(ignored))
    if folder.repository is not None:
        settings.update(await configured.values(folder.repository.config, _wanted(*HARMLESS)))
        rules.append(plain.content(folder.repository.common_dir / "info" / "exclude") or b"")
    return Folder(folder.path, folder.top, folder.repository, b"\n".join(rules), settings)


def _wanted(*keys: str) -> str:
    return f"^({'|'.join(key.replace('.', chr(92) + '.') for key in keys)})$"


def _config_home() -> Path:
    """Return XDG's folder; as XDG says, a relative one does not count: it would depend on the working directory."""
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".config"


def _read(path: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()[: 1 << 20]
    except (OSError, RuntimeError):
        return b""
