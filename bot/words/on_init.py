"""The proposal of a config: what was found, tried, and left out."""

from __future__ import annotations

from collections.abc import Sequence

from bot.text.markup import named, shown

TITLE = "Add a config for Forgehand"
FREE = "Forgehand found and tried the commands without an agent, so this cost no model money."
MOST_NAMED = 12
EMPTY = "exit 0, but it ran no test"


def is_there(path: str, branch: str) -> str:
    return f"{shown(branch, 200)} already has a `{path}`, so I left it as it is. Delete it to get a new proposal."


def proposed_already(number: int) -> str:
    return f"#{number} already proposes a config. Close it and delete its branch to get a new proposal."


def nothing_recognised(looked_for: Sequence[str]) -> str:
    places = ", ".join(looked_for)
    return f"Forgehand recognised no command for `setup` or `checks`. It looked for: {places}."


def branch_taken(branch: str) -> str:
    return f"The branch `{branch}` already exists with something else on it. Delete or rename it, then ask again."


def no_sandbox(why: str) -> str:
    return f"The commands could not be tried: {why}."


def counts(passed: int, failed: int, left: int) -> str:
    parts = [f"{passed} {'command' if passed == 1 else 'commands'} passed"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{left} {'was' if left == 1 else 'were'} not tried"] if left else []
    return f"In a fresh sandbox, {_joined(parts)}."


def asked_for(login: str, number: int) -> str:
    return (
        f"`{login}` asked for this in #{number}. The file explains every key. Forgehand reads it from the default "
        "branch, so it counts from the merge on."
    )


def hosts_needed(command: str, hosts: Sequence[str]) -> str:
    return (
        f"{shown(command, 200)} could not reach {named(hosts, MOST_NAMED)}. To open the way, list these hosts under "
        "`egress` in the file, or ask the person who runs Forgehand."
    )


def passed_without_test(command: str) -> str:
    return f"{shown(command, 200)} ended without an error, but ran no test."


def _joined(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
