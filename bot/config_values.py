"""Lists the keys of a repository's config, each with the value that counts there and where that stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from bot import account_settings
from bot.account_settings import Choices
from bot.repo_config import RepoConfig
from bot.repo_config.layers import in_words
from bot.repo_config.values import KEYS
from bot.settings import Limits

DEFAULT, OPERATOR = "default", "the operator"


def is_set(row: Mapping[str, str]) -> bool:
    return row["source"] != DEFAULT


def listed(found: Iterable[Mapping[str, str]] | None, limits: Limits, choices: Choices) -> list[dict[str, str]]:
    """`found`: what the files and the account's page set, as of the last look, if anybody looked. The operator's limits
    cap it."""
    rows, caps = {one["key"]: one for one in found or ()}, _caps(limits, choices)
    listed = []
    for name in KEYS:
        value, source = in_words(name, attrgetter(name)(RepoConfig())), DEFAULT
        if name in rows:
            value, source = rows[name]["value"], rows[name]["source"]
        cap, whose = caps.get(name, (None, ""))
        if cap is not None and (name not in rows or float(rows[name].get("number") or cap) > cap):
            value, source = in_words(name, cap), whose
        listed.append({"key": name, "value": value, "source": source})
    return listed


def _caps(limits: Limits, choices: Choices) -> dict[str, tuple[float, str]]:
    session = next(one for one in account_settings.effective(limits, choices) if one.key.name == "session_budget")
    return {
        "budget": (session.value, account_settings.PAGE if session.source == account_settings.ACCOUNT else OPERATOR),
        "timeout": (limits.timeout_minutes * 60, OPERATOR),
        "subagents.most": (limits.subagents, OPERATOR),
        "subagents.at_once": (limits.subagents_at_once, OPERATOR),
    }
