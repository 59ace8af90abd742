"""Whose no has ended a run, the provider's or the gateway's own: the agent's client tells both by the same status."""

from __future__ import annotations

from bot.models import Outcome, TurnKey
from bot.sessions.verdict import RunVerdict
from bot.store import gateway, spend
from bot.store.base import Store
from bot.words import endings

PROVIDERS = ("provider_401", "provider_403")
ANY = "api_error"
OURS = ("field", "storm")
"""Reasons of the gateway that end a run whatever else its requests met."""


async def told_apart(store: Store, key: TurnKey, verdict: RunVerdict) -> RunVerdict:
    """A request that the gateway refused has reached no provider, and has no row of spending."""
    if verdict.error not in (*PROVIDERS, ANY):
        return verdict
    reason = await gateway.last_refusal(store, key)
    if verdict.error == ANY and reason not in OURS:
        return verdict
    if reason not in OURS and await spend.was_refused(store, key):
        return verdict
    if reason is None and verdict.error == "provider_403":
        return verdict
    ended = reason in (None, "ended")
    words = endings.token_ended() if ended else endings.gateway_refused(str(reason))
    return RunVerdict(Outcome.FAILED, words, "token_ended" if ended else f"gateway_{reason}")
