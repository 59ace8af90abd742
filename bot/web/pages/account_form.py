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
Field = dict[str, str | bool]  # the values of a field in a template
Found = tuple[dict[str, Value | None], dict[str, str]]  # (choices, problems by name)


@dataclass(frozen=True)
class Entered:
    """The problems of a rejected form and what was typed, so that nothing is lost; empty for a fresh form."""

    problems: Mapping[str, str]
    typed: Fields | None = None


NOTHING = Entered({})


class WrongFields(UserError):
    def __init__(self, entered: Entered) -> None:
        super().__init__("Nothing was changed; see the marked fields.")
        self.entered = entered


def limit_fields(limits: Limits, own: Choices, spent: Mapping[str, str], entered: Entered) -> list[Field]:
    return [
        {
            **_field(one.key.name, one.key.title, one.key.typed(one.choice.value if one.choice else None), entered),
            "spent": spent.get(one.key.name, ""),
            "operators": one.key.words(one.key.operators(limits)),
            "now": one.key.words(one.value),
            "source": account_settings.source(one.source, one.choice),
            "whole": not one.key.dollars,
        }
        for one in account_settings.effective(limits, own)
    ]


def trigger_fields(own: Choices, entered: Entered) -> list[Field]:
    """The `source` of a trigger is empty if it is off."""
    found = []
    for name, title in TRIGGERS.items():
        choice = own.get(name)
        stored = str(choice.value) if choice and choice.value else ""
        source = account_settings.source(ACCOUNT, choice) if stored else ""
        found.append({**_field(name, title, stored, entered), "yes_no": name in YES_NO, "source": source})
    return found


def sharing_field(own: Choices, entered: Entered) -> Field:
    choice = own.get(account_settings.SHARING)
    stored = str(choice.value) if choice and choice.value else ""
    field = _field(account_settings.SHARING, account_settings.SHARING_TITLE, stored, entered)
    return {**field, "source": account_settings.source(ACCOUNT, choice) if stored else ""}


def _field(name: str, title: str, stored: str, entered: Entered) -> Field:
    typed = stored if entered.typed is None else entered.typed.get(name, "")
    return {"name": name, "title": title, "typed": typed, "problem": entered.problems.get(name, "")}


async def change_limits(store: Store, limits: Limits, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
    changed = await _change(store, row, visitor, fields, account_settings.read_limits(fields, limits))
    titles = {one.name: f"{one.title[:1].lower()}{one.title[1:]}" for one in LIMITS}
    return _said([titles[name] for name in changed], "The change applies from the next request to the model.")


async def change_triggers(store: Store, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
    changed = await _change(store, row, visitor, fields, account_settings.read_triggers(fields))
    return _said(
        [name.replace("_", " ") for name in changed], "The change applies to repositories without their own file."
    )


async def change_sharing(store: Store, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
    changed = await _change(store, row, visitor, fields, account_settings.read_sharing(fields))
    return _said(["public links" for _ in changed], "Links that are no longer allowed show nothing from now on.")


async def change_on_forks(store: Store, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
    changed = await _change(store, row, visitor, fields, account_settings.read_on_forks(fields))
    return _said(
        ["registries for code of forks" for _ in changed], "The change applies to turns that begin from now on."
    )


async def _change(store: Store, row: InstallationRow, visitor: Visitor, fields: Fields, found: Found) -> list[str]:
    wanted, problems = found
    if problems:
        raise WrongFields(Entered(problems, fields))
    seen = fields.get("version", "")
    known = int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 10 else -1
    changed = await accounts.change_settings(store, row.id, SettingsChange(wanted, visitor.login, row.account, known))
    if changed is None:
        raise UserError(OUTDATED)
    return changed


def _said(changed: list[str], more: str) -> str:
    return f"Changed: {', '.join(changed)}. {more}" if changed else "You changed nothing."
