"""The ids of models at Bedrock and Vertex, by the names that people and agents use. Pure.

They are those that Claude Code 2.1.326 has for both.
"""

from __future__ import annotations

from bot.sessions.money.budget import canonical
from bot.settings import BedrockSettings
from bot.settings.providers import ModelProviderSettings

_DATED = {
    "claude-haiku-4-5": ("20251001", "-v1:0"),
    "claude-sonnet-4-5": ("20250929", "-v1:0"),
    "claude-opus-4-5": ("20251101", "-v1:0"),
}
_ODD = {"claude-opus-4-6": "claude-opus-4-6-v1"}


def model_id(provider: ModelProviderSettings, model: str) -> str:
    """Return the operator's own id for the model, or the usual one."""
    name = canonical(model)
    for given, own in provider.ids.items():
        if canonical(given) == name:
            return own
    date, version = _DATED.get(name, ("", ""))
    if not isinstance(provider.at, BedrockSettings):
        return f"{name}@{date}" if date else name
    bare = f"{name}-{date}{version}" if date else _ODD.get(name, name)
    return f"anthropic.{bare}" if provider.at.area == "none" else f"{provider.at.area}.anthropic.{bare}"


def countable(bedrock_id: str) -> str:
    """Return the id under which Bedrock counts tokens: that of the model itself, not of a profile."""
    area, mark, rest = bedrock_id.partition("anthropic.")
    return f"{mark}{rest}" if mark and area.count(".") <= 1 else bedrock_id
