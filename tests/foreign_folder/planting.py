"""A folder as somebody would pack it who wants a program of theirs run: every row of `keys`, in every place."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.foreign_folder.keys import Key
from tests.foreign_folder.rig import SECRET, committed, repository
from tests.world.git_remote import git

PLACES = {
    "config": "config",
    "config.worktree": "config.worktree",
    "include": "included",
    "includeIf": "included-if",
}
"""Where git finds settings of a repository, and the file of each below `.git`."""
HOOKS = (
    "reference-transaction",
    "post-index-change",
    "pre-commit",
    "post-checkout",
    "post-commit",
    "update",
    "pre-push",
)


@dataclass
class Listener:
    """On loopback; whoever is sent here by a setting is heard."""

    port: int = 0
    heard: list[bytes] = field(default_factory=list)

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls) -> AsyncIterator[Listener]:
        listener = cls()
        server = await asyncio.start_server(listener._serve, "127.0.0.1", 0)
        listener.port = server.sockets[0].getsockname()[1]
        async with server:
            yield listener

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self.heard.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        writer.close()


@dataclass
class Planted:
    folder: Path
    traces: Path
    new: Path

    def found(self) -> list[str]:
        """What has run or was written."""
        return sorted(path.name for path in self.traces.iterdir()) + [str(path) for path in self.new.parent.iterdir()]

    def state(self) -> dict[str, str]:
        """All of its git directory that nobody may touch: we add objects and branches of ours."""
        top = self.folder / ".git"
        files = (path for path in sorted(top.rglob("*")) if path.is_file())
        named = {str(path.relative_to(top)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        return {name: sha for name, sha in named.items() if not name.startswith(("objects/", "refs/heads/forgehand/"))}


def plant(root: Path, rows: Iterable[Key], *, net: str, remote: str, places: Iterable[str] = PLACES) -> Planted:
    planted = Planted(repository(root / "planted"), root / "traces", root / "new" / "file")
    planted.traces.mkdir()
    planted.new.parent.mkdir()
    (root / "private").write_text(SECRET)
    committed(planted.folder, {"b.txt": "b\n", ".gitattributes": "*.txt filter=own diff=own merge=own\n"})
    (planted.folder / "a.txt").write_text("changed\n")
    top = planted.folder / ".git"
    _lend(top)
    _hooks(planted, top / "hooks", "hooks")
    for place in places:
        _hooks(planted, root / f"hooks-{place}", f"hooksPath-{place}")
    for number, row in enumerate(rows):
        for place in places:
            run = _program(planted, root / f"run-{number}-{place}", f"{row.name.replace('/', '_')} in {place}")
            values = {"run": run, "hooks": root / f"hooks-{place}", "file": root / "private", "new": planted.new}
            words = {**{name: str(value) for name, value in values.items()}, "net": net, "remote": remote}
            for name, value in row.planted:
                _set(top / PLACES[place], _filled(name, words), _filled(value, words))
    _set(top / "config", "extensions.worktreeConfig", "true")
    _set(top / "config", "include.path", PLACES["include"])
    _set(top / "config", "includeIf.gitdir:/.path", PLACES["includeIf"])
    return planted


def _filled(text: str, words: dict[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _set(file: Path, name: str, value: str) -> None:
    git(file.parent.parent, "config", "--file", str(file), "--add", name, value)


def _program(planted: Planted, path: Path, name: str) -> Path:
    path.write_text(f"#!/bin/sh\necho ran >> '{planted.traces}/{name}'\nexit 1\n")
    path.chmod(0o755)
    return path


def _hooks(planted: Planted, folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    for hook in HOOKS:
        _program(planted, folder / hook, f"{name} {hook}")


def _lend(top: Path) -> None:
    """Objects of its own in another place: what looks at alternates has one to look at."""
    git(top, "init", "-q", "--bare", str(top / "lent"))
    (top / "objects/info").mkdir(exist_ok=True)
    (top / "objects/info/alternates").write_text("../lent/objects\n")
