"""The key `notify` of a repository's config: which of the account's receivers hear of what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.repo_config.wrong import Wrong

MOST_RECEIVERS = 20
_RECEIVER = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


class BulletinEvent(StrEnum):
    """What receivers hear of."""

    ENDED = "ended"
    ASKS = "asks"
    OVER_BUDGET = "over_budget"


@dataclass(frozen=True)
class NotifyRule:
    to: str
    on: tuple[BulletinEvent, ...]

    def __str__(self) -> str:
        return f"{self.to}: {' '.join(self.on)}"


def read(value: Any) -> tuple[NotifyRule, ...]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value) or len(value) > MOST_RECEIVERS:
        raise Wrong(
            f"must be a list of at most {MOST_RECEIVERS} lines such as `- {{to: team-chat, on: [ended, asks]}}`"
        )
    rules = [_rule(line) for line in value]
    if len({one.to for one in rules}) < len(rules):
        raise Wrong("names a receiver twice; list all of its events in one line")
    return tuple(rules)


def _rule(line: dict[Any, Any]) -> NotifyRule:
    one = {"on" if key is True else key: words for key, words in line.items()}  # YAML reads a bare `on` as true
    if "url" in one:
        raise Wrong(
            "takes no `url`, because such addresses are secrets. An owner stores it on the account's settings page "
            "under a name; write `to: NAME`"
        )
    if {*one} != {"to", "on"}:
        raise Wrong("needs `to` and `on` in each line, and takes nothing else")
    if not isinstance(one["to"], str) or not _RECEIVER.fullmatch(one["to"]):
        raise Wrong("must name receivers with 1 to 40 lower-case letters, digits and hyphens")
    return NotifyRule(one["to"], events(one["on"]))


def events(value: Any) -> tuple[BulletinEvent, ...]:
    named = [value] if isinstance(value, str) else value
    if not isinstance(named, list) or not named or not all(one in list(BulletinEvent) for one in named):
        raise Wrong(f"must list events in `on`: {', '.join(BulletinEvent)}")
    return tuple(dict.fromkeys(map(BulletinEvent, named)))


_EVENT = {"enum": list(BulletinEvent)}
SCHEMA = {
    "type": "array",
    "maxItems": MOST_RECEIVERS,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["to", "on"],
        "properties": {
            "to": {"type": "string", "pattern": f"^{_RECEIVER.pattern}$"},
            "on": {"anyOf": [_EVENT, {"type": "array", "items": _EVENT, "minItems": 1}]},
        },
    },
}
