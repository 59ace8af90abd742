"""Sentences about an account's package registries."""

from __future__ import annotations

from collections.abc import Sequence

from bot.text.markup import shown

NO_GATEWAY = (
    "The config opens package registries (`registries`), but this Forgehand has switched its gateway off "
    "(`FORGEHAND_E2B_UNMETERED`), and sandboxes reach registries only through it. Remove `registries` from the config."
)


def missing(names: Sequence[str]) -> str:
    listed = ", ".join(shown(name) for name in names)
    what = "a registry" if len(names) == 1 else "registries"
    return (
        f"The config opens {what} that this account has not stored: {listed}. An owner of the account can store "
        "them on its settings page, or the operator with `forgehand registries add`. Or remove the names from "
        "`registries`."
    )
