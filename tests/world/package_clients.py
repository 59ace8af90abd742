"""Package clients as they run inside an environment: with our configuration, and nothing of this machine's own."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.outside import registries
from bot.registries import DIALECTS
from bot.registries.shape import ClientSetup, RegistryDoor
from bot.store.outside_services import OutsideService

KEPT = ("PATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME")
SECONDS = 60.0
PROGRAMS = str(Path(sys.executable).parent)


class PackageWorkplace:
    """A folder with a work tree, a home and the clients' configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.home = folder / "home"
        self.variables: dict[str, str] = {}
        for one in (self.work, self.home):
            one.mkdir(parents=True)

    def configure(self, services: Sequence[OutsideService], route: str, token: str) -> None:
        doors = [registries.door(one, f"{route}{one.name}/", token) for one in services]
        for kind in {one.dialect.name for one in doors}:
            self._write(DIALECTS[kind].setup(_of(doors, kind), str(self.folder / "clients")))

    def _write(self, setup: ClientSetup) -> None:
        for name, text in setup.files.items():
            path = self.folder / "clients" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.variables |= setup.variables

    def put(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text(text)

    async def run(self, command: str) -> str:
        """Run a command with a shell, and return its output; it must succeed."""
        own = {name: os.environ[name] for name in KEPT if name in os.environ}
        rustup = Path.home() / ".rustup"
        if rustup.is_dir():
            own.setdefault("RUSTUP_HOME", str(rustup))
        own |= {"HOME": str(self.home), "PATH": f"{PROGRAMS}:{own['PATH']}", **self.variables}
        process = await asyncio.create_subprocess_exec(
            "sh", "-ec", command, cwd=self.work, env=own, stdout=-1, stderr=asyncio.subprocess.STDOUT
        )
        try:
            async with asyncio.timeout(SECONDS):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        words = said.decode(errors="replace")
        assert process.returncode == 0, words
        return words

    def holds(self, text: str) -> list[Path]:
        """Name the files in which a text stands."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())
        return [path for path in found if text.encode() in path.read_bytes()]


def has(program: str) -> bool:
    return shutil.which(program) is not None


def _of(doors: Sequence[RegistryDoor], kind: str) -> list[RegistryDoor]:
    return [one for one in doors if one.dialect.name == kind]
