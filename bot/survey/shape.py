"""The shape of a survey: folders to read, and candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from shlex import quote


@dataclass(frozen=True)
class Candidate:
    """A command that may belong into `setup` or `checks`."""

    command: str
    goal: str
    """The purpose. The first candidate for a goal that passes is enough."""
    source: str
    """The file that led to it."""
    ecosystem: str = ""
    """Commands of an ecosystem need what its setup installs."""
    setup: bool = False
    inside: str = ""
    """Stands in front of commands that use what this setup command installs."""
    alone: bool = True
    """It may pass although the setup has failed."""
    hosts: tuple[str, ...] = ()
    """Registries that the ecosystem loads packages from."""

    folder: str = ""
    """It runs there, right below the root; empty for the root."""

    def line(self, inside: str = "") -> str:
        """Write the whole command, as a config has it."""
        there = f"cd {quote(self.folder)} && " if self.folder else ""
        return f"{there}{inside}{self.command}"

    def in_folder(self, folder: str) -> Candidate:
        if not folder:
            return self
        return replace(
            self,
            folder=folder,
            goal=f"{self.goal} in {folder}",
            source=f"{folder}/{self.source}",
            ecosystem=f"{self.ecosystem} in {folder}" if self.ecosystem else "",
        )


@dataclass(frozen=True)
class ProjectFolder:
    """The repository, or a folder right below its root, as its own project."""

    name: str
    paths: frozenset[str]
    """All files below it."""
    texts: Mapping[str, str]
    """The files that were read."""

    def first(self, *names: str) -> str | None:
        """Return the first of these names that is there."""
        return next((name for name in names if name in self.paths), None)

    def text(self, name: str) -> str:
        return self.texts.get(name, "")

    @cached_property
    def folders(self) -> frozenset[str]:
        return frozenset(path.partition("/")[0] for path in self.paths if "/" in path)
