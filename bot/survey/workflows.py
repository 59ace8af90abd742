"""GitHub's workflows: their `run` steps that call a tool we know."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bot.errors import BadRepoConfig
from bot.repo_config.yaml import read_entries
from bot.survey.shape import Candidate
from bot.survey.tools import commands_of, recognised

FOLDER = ".github/workflows/"
LONGEST = 20 << 10
"""Reading YAML takes a second for every 30 KB."""
MOST_JOBS = 30
MOST_STEPS = 60
_FOREIGN = ("windows", "macos")
_PLACE = re.compile(r"(?:\./)?([\w.-]{1,60})/?")


def candidates(path: str, text: str, targets: Mapping[str, tuple[str, str]]) -> Iterator[Candidate]:
    """Leave out what depends on a matrix, a condition or another system."""
    for step in _steps(text):
        place = _place(step.get("working-directory"))
        script = step.get("run")
        if place is None or not isinstance(script, str) or "if" in step or _is_foreign(step.get("shell")):
            continue
        for command in commands_of(script):
            if known := recognised(command, None if place else targets):
                found = Candidate(command, known[0], path, known[1])
                yield replace(found.in_folder(place), source=path)


def _steps(text: str) -> Iterator[dict[str, Any]]:
    if len(text) > LONGEST:
        return
    try:
        entries = {entry.key: entry.value for entry in read_entries(text)}
    except (BadRepoConfig, RecursionError):
        return
    jobs = entries.get("jobs")
    for job in list(jobs.values())[:MOST_JOBS] if isinstance(jobs, dict) else ():
        if isinstance(job, dict) and not _is_foreign(job.get("runs-on")):
            steps = job.get("steps")
            defaults = _inner(_inner(job.get("defaults")).get("run"))
            for step in steps[:MOST_STEPS] if isinstance(steps, list) else ():
                if isinstance(step, dict):
                    yield {**defaults, **step}


def _inner(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _place(value: Any) -> str | None:
    """Return the folder right below the root, empty for the root itself, None for any other place."""
    if value in (None, ".", "./"):
        return ""
    match = _PLACE.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match and posixpath.normpath(match[1]) not in (".", "..") else None


def _is_foreign(value: Any) -> bool:
    return isinstance(value, str) and (value.startswith(_FOREIGN) or value in ("pwsh", "powershell", "cmd", "python"))
