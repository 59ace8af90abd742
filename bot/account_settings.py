"""The settings that an account's owner may choose: limits below the operator's, and default triggers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from bot.repo_config import PATH, RepoConfig, Triggers, layers
from bot.repo_config.layers import ConfigLayer, ConfigOrigin, LayeredConfig
from bot.repo_config.values import KEYS
from bot.repo_config.wrong import Wrong
from bot.settings import Limits

Value = float | int | str | bool
_DOLLARS = re.compile(r"\$?\s*([0-9]{1,6}(?:[.][0-9]{1,2})?)")
_WHOLE = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True)
class SettingChoice:
    value: Value | None
    """None if the owner removed it."""
    set_by: str
    set_at: float
    changes: int = 1


Choices = Mapping[str, SettingChoice]


def version(choices: Choices) -> int:
    return sum(one.changes for one in choices.values())


@dataclass(frozen=True)
class LimitKey:
    name: str
    title: str
    operators: Callable[[Limits], float]
    dollars: bool = True

    def words(self, value: float) -> str:
        return f"${value:,.2f}" if self.dollars else f"{value:g}"

    def typed(self, value: Value | None) -> str:
        return "" if value is None else f"{value:.2f}".removesuffix(".00") if self.dollars else f"{value}"

    def read(self, text: str, limits: Limits) -> float | int | None:
        if not text:
            return None
        match = (_DOLLARS if self.dollars else _WHOLE).fullmatch(text)
        if match is None or float(match[match.lastindex or 0]) <= 0:
            like = "an amount in US dollars above zero, such as 20 or 7.50" if self.dollars else "a whole number from 1"
            raise Wrong(f"must be {like}; leave it empty to use the operator's limit")
        value = float(match[1]) if self.dollars else int(text)
        if value > (most := self.operators(limits)):
            raise Wrong(f"may be {self.words(most)} at most, which is the operator's limit")
        return value


LIMITS = (
    LimitKey(
        "session_budget", "Dollars for one thread (an issue or pull request)", lambda limits: limits.session_budget_usd
    ),
    LimitKey("day_budget", "Dollars for all repositories in a day (UTC)", lambda limits: limits.day_budget_usd),
    LimitKey("month_budget", "Dollars for all repositories in a month (UTC)", lambda limits: limits.month_budget_usd),
    LimitKey(
        "sessions", "Threads that are worked on at the same time", lambda limits: limits.max_sessions, dollars=False
    ),
)
TRIGGERS = {
    "label": "Label on an issue or pull request that starts work",
    "issue_opened": "New issues by people with write access start work",
    "review_label": "Label on a pull request that asks for a review",
    "review_team": "Team that can be asked for a review",
    "review_user": "User who can be asked for a review",
    "review_opened": "Review pull requests when they are opened or marked ready",
    "ci_fix": "Fix failing checks of Forgehand's own pull requests",
}
"""The triggers that an account may set for repositories without a config file."""
YES_NO = frozenset(name for name in TRIGGERS if isinstance(getattr(Triggers(), name), bool))
SHARING = "share_links"
SHARING_TITLE = "Public links to sessions"
SHARING_CHOICES = {
    "": "of public repositories only",
    "all": "also of private repositories",
    "none": "forbidden",
}
ON_FORKS = "registries_on_forks"
ON_FORKS_TITLE = "Package registries for code of forks"
ON_FORKS_CHOICES = {"": "closed", "open": "open, as for the repository's own code"}
OPERATOR = "the operator"
ACCOUNT = "this account"
PAGE = "the account's page"


@dataclass(frozen=True)
class Effective:
    key: LimitKey
    value: float
    source: str
    choice: SettingChoice | None


def effective(limits: Limits, choices: Choices) -> list[Effective]:
    found = []
    for key in LIMITS:
        choice, most = choices.get(key.name), key.operators(limits)
        own = _number(choice)
        narrows = own is not None and own < most
        found.append(Effective(key, own if narrows and own else most, ACCOUNT if narrows else OPERATOR, choice))
    return found


def narrowed(limits: Limits, choices: Choices) -> Limits:
    """Lower the day and month budgets. `funds` applies a session's budget, and admission the number of sessions."""
    values = {one.key.name: one.value for one in effective(limits, choices)}
    return replace(limits, day_budget_usd=values["day_budget"], month_budget_usd=values["month_budget"])


def session_budget(choices: Choices) -> float | None:
    return _number(choices.get("session_budget"))


def may_share(choices: Choices, *, private: bool) -> bool:
    """Decide whether people with write access may make public links; without a choice, not of private repositories."""
    choice = choices.get(SHARING)
    chosen = choice.value if choice is not None else None
    return chosen == "all" or (chosen is None and not private)


def may_read_on_forks(choices: Choices) -> bool:
    """Decide whether turns on a fork's code may read the registries that the repository opens."""
    choice = choices.get(ON_FORKS)
    return choice is not None and choice.value == "open"


def triggers(choices: Choices) -> Triggers:
    set_here = {name: one.value for name in TRIGGERS if (one := choices.get(name)) and one.value}
    return Triggers(**set_here)  # type: ignore[arg-type]  # `read_triggers` has checked them


def defaults(choices: Choices, file: str | None, account: str, *, silent: bool = False) -> LayeredConfig:
    """Lay the account's file over the triggers of its page. The page's triggers are for repositories without a file:
    leave them out for others. With `silent`, leave out the file's words for agents."""
    page = triggers(choices)
    set_here = [name for name in TRIGGERS if (one := choices.get(name)) and one.value]
    found = LayeredConfig().under(
        ConfigLayer(RepoConfig(triggers=page), {f"triggers.{name}": ConfigOrigin(PAGE) for name in set_here})
    )
    if file is None:
        return found
    layer = layers.of_file(file, f"{PATH} of {account}/.github")
    return found.under(layer.silent() if silent else layer)


def source(whose: str, choice: SettingChoice | None) -> str:
    if choice is None:
        return f"set by {whose}"
    when = datetime.fromtimestamp(choice.set_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if whose == ACCOUNT:
        return f"set here by {choice.set_by}, {when}"
    if choice.value is None:
        return f"set by {whose}; {choice.set_by} removed this account's own, {when}"
    return f"set by {whose}, lower than {choice.set_by} set here"


def listed(limits: Limits, choices: Choices) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "name": one.key.name,
            "title": one.key.title,
            "value": one.value,
            "words": one.key.words(one.value),
            "source": source(one.source, one.choice),
        }
        for one in effective(limits, choices)
    ]
    sharing = choices.get(SHARING)
    own = sharing.value if sharing else None
    whose = source(ACCOUNT, sharing) if own else "unless this account's owner says otherwise"
    words = SHARING_CHOICES.get(str(own or ""), "forbidden")
    rows.append({"name": SHARING, "title": SHARING_TITLE, "value": own, "words": words, "source": whose})
    counting = triggers(choices)
    for name, title in TRIGGERS.items():
        value, choice = getattr(counting, name), choices.get(name)
        words = "off" if not value else "on" if value is True else str(value)
        whose = source(ACCOUNT, choice) if value else "unless a repository's own file says otherwise"
        rows.append({"name": name, "title": title, "value": value, "words": words, "source": whose})
    return rows


def read_limits(fields: Mapping[str, str], limits: Limits) -> tuple[dict[str, Value | None], dict[str, str]]:
    """Return the values by name, and what is wrong with each field that was not accepted."""
    keys = {key.name: key for key in LIMITS}
    return _read(keys, lambda name, text: keys[name].read(text, limits), fields)


def read_triggers(fields: Mapping[str, str]) -> tuple[dict[str, Value | None], dict[str, str]]:
    """Accept the same values as a repository's file."""

    def read(name: str, text: str) -> Value | None:
        if not text:
            return None
        value: Value = True if name in YES_NO else KEYS[f"triggers.{name}"].read(text)
        return value

    return _read(TRIGGERS, read, fields)


def read_sharing(fields: Mapping[str, str]) -> tuple[dict[str, Value | None], dict[str, str]]:
    return _read((SHARING,), lambda _, text: _chosen(text, SHARING_CHOICES), fields)


def read_on_forks(fields: Mapping[str, str]) -> tuple[dict[str, Value | None], dict[str, str]]:
    return _read((ON_FORKS,), lambda _, text: _chosen(text, ON_FORKS_CHOICES), fields)


def _chosen(text: str, choices: Mapping[str, str]) -> str | None:
    if text not in choices:
        raise Wrong(f"must be one of: {', '.join(choices.values())}")
    return text or None


def _read(
    names: Iterable[str], read: Callable[[str, str], Value | None], fields: Mapping[str, str]
) -> tuple[dict[str, Value | None], dict[str, str]]:
    wanted: dict[str, Value | None] = {}
    problems: dict[str, str] = {}
    for name in names:
        try:
            wanted[name] = read(name, fields.get(name, ""))
        except Wrong as wrong:
            problems[name] = f"It {wrong}."
    return wanted, problems


def _number(choice: SettingChoice | None) -> float | None:
    value = choice.value if choice else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
