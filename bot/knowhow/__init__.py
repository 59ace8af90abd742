"""Know-how of a repository: the skills, agents and commands of its `.claude`, as a plugin that the host gives to the
agent. Nothing in it runs or allows anything by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.agent.material import KNOW_HOW

SKILLS, AGENTS, COMMANDS = KNOW_HOW
MOST_FILES = 300
MAX_FILE_BYTES = 256 << 10
MAX_BYTES = 1 << 20
"""For all files of one repository together: they travel with each run."""


@dataclass(frozen=True)
class KnowHowFile:
    """A regular file of the base branch."""

    path: str
    data: bytes
    executable: bool = False


@dataclass(frozen=True)
class NamedCommand:
    """A command or skill that people can ask for by name."""

    name: str
    """As in `/name`; folders are joined by colons."""
    what: str
    plugin: str
    body: str | None
    """The text to follow; None for a skill, which the agent reads itself."""

    @property
    def full_name(self) -> str:
        return f"{self.plugin}:{self.name}"


@dataclass(frozen=True)
class KnowHow:
    """All of one repository."""

    plugin: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    """By their paths in the plugin's folder."""
    executable: frozenset[str] = frozenset()
    commands: tuple[NamedCommand, ...] = ()
    left_out: tuple[str, ...] = ()
    """Sentences about everything that the agent does not get."""
