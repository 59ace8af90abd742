"""The operator's prices of models: a JSON object, in dollars for a million tokens of each kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bot.errors import SettingsError

SETTING = "FORGEHAND_PRICES"
MOST = 1_000_000
"""A larger whole number may not fit into a float."""
_EXAMPLE = '{"my-model": {"input": 1, "output": 5}}'

Given = Mapping[str, Mapping[str, float]]


def read(text: str) -> Given:
    """Check the form only; the table of prices knows the kinds of tokens."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise SettingsError(f"{SETTING} is not JSON. It takes {_EXAMPLE}.") from None
    if not isinstance(found, dict) or not all(name.strip() and _is_price(one) for name, one in found.items()):
        raise SettingsError(f"{SETTING} takes dollars for a million tokens of each model, such as {_EXAMPLE}.")
    return {name: {kind: float(usd) for kind, usd in one.items()} for name, one in found.items()}


def _is_price(value: Any) -> bool:
    numbers = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(one, int | float) and type(one) is not bool and 0 <= one <= MOST for one in numbers)
