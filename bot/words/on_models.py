"""Sentences about models: which one answers, and what it has forgotten."""

from __future__ import annotations

from bot.text.markup import shown

_REASONS = {
    "overloaded": "is overloaded",
    "server_error": "answers with errors",
    "model_not_found": "is not available",
    "permission_denied": "is not available",
    "model_blocked": "is not available",
    "refusal": "refused to answer",
}


def switched(model: str, fallback: str, reason: str) -> str:
    """The names come in the form that their place needs."""
    return f"{model} {_REASONS.get(reason, 'does not answer')}, so {fallback} goes on."


def compacted(before: int, after: int) -> str:
    return (
        "The agent's conversation had become too long, so its program replaced most of it by a summary "
        f"({before:,} tokens before, {after:,} after)."
    )


def same_twice(model: str) -> str:
    return f"`--fallback` names {shown(model, 80)}, the model of `--model`. Name another one, or leave it out."
