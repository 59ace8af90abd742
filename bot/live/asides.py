"""What stands beside the story of a turn: what the agent did not read, what was ignored, which hosts were blocked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.outbound import neutralise
from bot.words import quoting
from bot.words.quoting import shown

MOST_PATHS = 10
MOST_HOSTS = 10
NEVER = ("github.com", "api.github.com", "api.anthropic.com")
"""No config opens the way to these: what is done there is done by the host."""
_CONFIG = "`.github/forgehand.yml`"


def withheld(notes: Sequence[str]) -> str:
    """One folded line, so that nobody wonders why the agent did not know."""
    if not notes:
        return ""
    rows = "\n".join(f"- {neutralise.line(note)}" for note in notes)
    head = "1 thing was" if len(notes) == 1 else f"{len(notes)} things were"
    return f"<details><summary>{head} left out of the agent's prompt</summary>\n\n{rows}\n\n</details>"


def ignored(paths: Sequence[str], base: str | None) -> str:
    """Said where a pull request would have steered its own run."""
    if not paths:
        return ""
    of_the_base = f" The version on {shown(base, 200)} counts." if base else ""
    named = quoting.named(paths, MOST_PATHS)
    return f"Not used in this run, because this pull request changes it: {named}.{of_the_base}"


def blocked(hosts: Sequence[dict[str, Any]]) -> str:
    """With the way to allow them, for those that can be."""
    if not hosts:
        return ""
    named = ", ".join(f"{_host(one)} ×{one['count']}" for one in hosts[:MOST_HOSTS])
    more = f" and {len(hosts) - MOST_HOSTS} more" if len(hosts) > MOST_HOSTS else ""
    text = f"**Blocked by the network:** {named}{more}."
    if any(one["host"] not in NEVER and one["port"] == 443 for one in hosts):
        text += f" To allow a host, add it to `egress:` in {_CONFIG} on the default branch."
    if any(one["port"] != 443 for one in hosts):
        text += " Only https (port 443) can be allowed."
    return text


def _host(one: dict[str, Any]) -> str:
    port = "" if one["port"] == 443 else f":{one['port']}"
    return shown(f"{one['host']}{port}", 120)
