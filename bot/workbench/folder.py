"""What the folder is that somebody named: a checkout, a part of one, or no repository. Nothing of it is run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from bot.errors import UserError
from bot.git.errors import GitFailed
from bot.git.run import GitResult, Io, run_git
from bot.workbench import words

_NONE = "not a git repository (or any"
USUAL_IGNORES = b"__pycache__/\nnode_modules/\n.venv/\n.DS_Store\n"
"""For a folder without a repository, where nobody has said what is not worth carrying along."""
_OWNERS = {"safe.directory": "*"}
"""Whose repository it is matters to who runs its hooks and filters; we run none."""
HARMLESS = ("core.filemode", "core.autocrlf", "core.eol", "core.symlinks", "core.ignorecase")
"""Settings that say how files of this folder are to be read; no other is taken over."""


@dataclass(frozen=True)
class Repository:
    """The person's own, which we look at and add one branch to."""

    git_dir: Path
    common_dir: Path
    head: str | None
    """None before the first commit."""


@dataclass(frozen=True)
class Folder:
    path: Path
    top: Path
    """The root of the work tree; the folder itself when there is no repository."""
    repository: Repository | None
    ignored: bytes = b""
    """The person's own ignore rules that are not files of the work tree."""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def inside(self) -> str:
        """Where in the work tree the folder is; empty for its root."""
        return "" if self.path == self.top else self.path.relative_to(self.top).as_posix()

    def alone(self) -> Folder:
        """The same folder without the repository around it."""
        return Folder(self.path, self.path, None, USUAL_IGNORES + self.ignored, self.settings)


async def look(path: Path) -> Folder:
    """Raises UserError with a sentence when there is nothing to work on."""
    real = _existing(path)
    asked = await _git(real, "--is-inside-work-tree", accept=(0, 128))
    if asked.exit_code and _NONE in asked.stderr:
        return await _with_rules(Folder(real, real, None))
    if asked.exit_code:
        raise UserError(words.unreadable_repository(path, asked.stderr))
    if asked.text != "true":
        raise UserError(words.no_work_tree(path))
    top = await _path(real, "--show-toplevel")
    return await _with_rules(Folder(real, top, await _repository(real)))


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


async def _repository(path: Path) -> Repository:
    git_dir = await _path(path, "--absolute-git-dir")
    common = await _path(path, "--path-format=absolute", "--git-common-dir")
    if (await _git(path, "--show-object-format")).text != "sha1":
        raise UserError(words.other_hash(path))
    head = await _git(path, "--quiet", "--verify", "HEAD^{commit}", accept=(0, 1, 128))
    return Repository(git_dir, common, head.text if head.exit_code == 0 else None)


async def _git(path: Path, *arguments: str, accept: tuple[int, ...] = (0,)) -> GitResult:
    """rev-parse starts nothing, whatever the repository's settings say."""
    return await run_git(["-C", str(path), "rev-parse", *arguments], io=Io(config=_OWNERS), accept=accept)


async def _path(path: Path, *arguments: str) -> Path:
    return Path(os.fsdecode((await _git(path, *arguments)).stdout.removesuffix(b"\n")))


async def _with_rules(folder: Folder) -> Folder:
    """The settings nearest to the folder win, as they do for git."""
    settings: dict[str, str] = {}
    for file in _setting_files(folder):
        settings.update(await _read_settings(file))
    default = _config_home() / "git" / "ignore"
    rules = [USUAL_IGNORES] if folder.repository is None else []
    rules += [_read(settings.pop("core.excludesfile", str(default)))]
    if folder.repository is not None:
        rules.append(_read(str(folder.repository.common_dir / "info" / "exclude")))
    return Folder(folder.path, folder.top, folder.repository, b"\n".join(rules), settings)


def _setting_files(folder: Folder) -> list[Path]:
    files = [_config_home() / "git" / "config", Path.home() / ".gitconfig"]
    if folder.repository is not None:
        files.append(folder.repository.common_dir / "config")
    return [file for file in files if file.is_file()]


def _config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


async def _read_settings(file: Path) -> dict[str, str]:
    wanted = "|".join(name.replace(".", r"\.") for name in (*HARMLESS, "core.excludesfile"))
    argv = ["config", "--file", str(file), "--includes", "-z", "--get-regexp", f"^({wanted})$"]
    try:
        found = await run_git(argv, io=Io(env={"HOME": str(Path.home())}), accept=(0, 1))
    except GitFailed:
        return {}  # git itself will complain to the person about a file that it cannot read
    rows = (row.partition("\n") for row in os.fsdecode(found.stdout).split("\0") if row)
    return {name.lower(): value for name, separator, value in rows if separator}


def _read(path: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()[: 1 << 20]
    except (OSError, RuntimeError):
        return b""
