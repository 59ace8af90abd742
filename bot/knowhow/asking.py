"""Reads `/name words` in a request, and writes the request that a repository's command stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bot.errors import CommandError
from bot.knowhow import NamedCommand
from bot.text.likeness import is_near

MOST_LISTED = 20
MAX_REQUEST = 60_000
_ASKED = re.compile(r"/([A-Za-z0-9][\w-]{0,63}(?::[\w-]{1,64}){0,8})(?=\s|\Z)")
_PLACE = re.compile(r"\$(?:ARGUMENTS\[(\d)\]|ARGUMENTS|(\d))")


def name_of(request: str) -> str | None:
    """Return the name of the command that a request asks for, in lower case."""
    match = _ASKED.match(request.lstrip())
    return match[1].lower() if match else None


def written_out(request: str, known: Sequence[NamedCommand], ours: str) -> str:
    """Return the request that a command stands for; CommandError if nothing here has that name. `ours`: our word."""
    match = _ASKED.match(request.lstrip())
    if match is None:
        return request
    command = _found(match[1].lower(), known)
    if command is None:
        raise CommandError(_unknown(match[1], known, ours))
    words = request.lstrip()[match.end() :].strip()
    if command.body is None:
        return f"Use the skill `{command.full_name}` (call the tool Skill with that name).\n\n{words}".strip()
    text = _filled(command.body.strip(), words)
    return f"This is the command /{command.name} of this repository; do what it says.\n\n{text}"


def _found(name: str, known: Iterable[NamedCommand]) -> NamedCommand | None:
    """Find by the whole name, then by the name without the plugin's, then without folders, if only one has that."""
    commands = list(known)
    for one in commands:
        if one.full_name.lower() == name:
            return one
    for one in commands:
        if one.name.lower() == name:
            return one
    lasts = [(one, one.name.lower().rpartition(":")[2]) for one in commands]
    found = [one for one, last in lasts if name in (last, f"{one.plugin}:{last}")]
    return found[0] if len(found) == 1 else None


def _filled(body: str, words: str) -> str:
    """Put the words where the text wants them; once, so that marks in the words mean nothing."""
    each = words.split()

    def place(match: re.Match[str]) -> str:
        if match[1] is None and match[2] is None:
            return words
        at = int(match[1]) if match[1] is not None else int(match[2]) - 1
        return each[at] if 0 <= at < len(each) else ""

    places = [len(place(match)) for match in _PLACE.finditer(body)]
    if len(body) + (sum(places) if places else len(words)) > MAX_REQUEST:  # before it is built: it could be gigabytes
        raise CommandError(f"With its words, this command is longer than {MAX_REQUEST:,} characters.")
    return _PLACE.sub(place, body) if places or not words else f"{body}\n\n{words}"


def _unknown(name: str, known: Sequence[NamedCommand], ours: str) -> str:
    names = [one.name for one in known]
    said_last = name.lower().rpartition(":")[2]
    lasts = [(one, one.lower().rpartition(":")[2]) for one in names]
    near = [
        one for one, last in lasts if is_near(said_last, last) or (len(said_last) > 2 and last.startswith(said_last))
    ]
    said = f"This repository has no command `/{name}`"
    if near:
        return f"{said}. Did you mean {' or '.join(f'`{ours} /{one}`' for one in near[:3])}?"
    if not names:
        return f"{said}: its base branch has nothing in `.claude/commands`. For work, begin with another word than `/`."
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    listed = ", ".join(f"`/{one}`" for one in names[:MOST_LISTED])
    return f"{said}. It has {listed}{more}."
