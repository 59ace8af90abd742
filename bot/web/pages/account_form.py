"""Fills and reads the forms of an account's limits and triggers, and marks what was wrong in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot import account_settings
from bot.account_settings import ACCOUNT, LIMITS, TRIGGERS, YES_NO, Choices, Value
from bot.errors import UserError
from bot.settings import Limits
from bot.store import accounts
from bot.store.accounts import SettingsChange
from bot.store.base import Store
from bot.store.repos import InstallationRow
from bot.web.pages.gate import Fields
from bot.web.pages.visitors import Visitor

OUTDATED = "Someone changed these settings in the meantime. Please check the current values and send yours again."


class WrongFields(UserError):
    """Keeps what was typed, so that nothing is lost."""

    def __init__(self, problems: Mapping[str, str], typed: Fields) -> None:
        super().__init__("Nothing was changed; see the marked fields.")
        self.problems = problems
        self.typed = typed


@dataclass(frozen=True)
class Entered:
    """The problems of a rejected form and what was typed; both empty if there is none."""

    problems: Mapping[str, str]
    typed: Fields | None = None


NOTHING = Entered({})


@dataclass(frozen=True)
class LimitField:
    name: str
    title: str
    spent: str
    operators: str
    now: str
    source: str
    typed: str
    problem: str
    whole: bool
    """It is a whole number, not dollars."""


@dataclass(frozen=True)
class TriggerField:
    name: str
    title: str
    yes_no: bool
    typed: str
    problem: str
    source: str
    """Empty if it is off."""


def limit_fields(
    limits: Limits, own: Choices, spent: Mapping[str, str], entered: Entered = NOTHING
) -> list[LimitField]:
    return [
        LimitField(
            name=one.key.name,
            title=one.key.title,
            spent=spent.get(one.key.name, ""),
            operators=one.key.words(one.key.operators(limits)),
            now=one.key.words(one.value),
            source=account_settings.source(one.source, one.choice),
            typed=_typed(entered, one.key.name, one.key.typed(one.choice.value if one.choice else None)),
            problem=entered.problems.get(one.key.name, ""),
            whole=not one.key.dollars,
        )
        for one in account_settings.effective(limits, own)
    ]


def trigger_fields(own: Choices, entered: Entered = NOTHING) -> list[TriggerField]:
    found = []
    for name in TRIGGERS:
        choice = own.get(name)
        stored = str(choice.value) if choice and choice.value else ""
        found.append(
            TriggerField(
                name=name,
                title=TRIGGERS[name],
                yes_no=name in YES_NO,
                typed=_typed(entered, name, stored),
                problem=entered.problems.get(name, ""),
                source=account_settings.source(ACCOUNT, choice) if stored else "",
            )
        )
    return found


async def change_limits(store: Store, limits: Limits, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
    changed = await _change(store, row, visitor, fields, account_settings.read_limits(fields, limits))
    titles = {one.name: one.title.lower() for one in LIMITS}
    return _said([titles[name] for name in changed], "It applies from the next request to the model on.")


async def change_triggers(store: Store, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
    changed = await _change(store, row, visitor, fields, account_settings.read_triggers(fields))
    return _said([name.replace("_", " ") for name in changed], "It applies to repositories without their own file.")


async def _change(
    store: Store,
    row: InstallationRow,
    visitor: Visitor,
    fields: Fields,
    found: tuple[dict[str, Value | None], dict[str, str]],
) -> list[str]:
    wanted, problems = found
    if problems:
        raise WrongFields(problems, fields)
    seen = fields.get("version", "")
    known = int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 10 else -1
    changed = await accounts.change_settings(store, row.id, SettingsChange(wanted, visitor.login, row.account, known))
    if changed is None:
        raise UserError(OUTDATED)
    return changed


def _typed(entered: Entered, name: str, stored: str) -> str:
    return stored if entered.typed is None else entered.typed.get(name, "")


def _said(changed: list[str], more: str) -> str:
    return f"Changed: {', '.join(changed)}. {more}" if changed else "Nothing was different."
