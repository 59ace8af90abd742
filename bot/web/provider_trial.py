"""Tries out Bedrock or Vertex with a free request: identity, region, rights and the model's id at once."""

from __future__ import annotations

from bot.errors import BotError
from bot.sessions.money.budget import Sizes
from bot.settings import ModelSettings
from bot.store.accounts import OPERATOR
from bot.web.credentials import MOST_BYTES, READ_SECONDS, Trial, from_settings
from bot.web.gateway.connection import ConnectionBroken
from bot.web.gateway.exchange import Unreachable, Upstream
from bot.web.gateway.model_request import CheckedRequest
from bot.web.gateway.providers import COUNT_TOKENS, AgentRequest, ModelProvider
from bot.web.gateway.providers.choice import chosen

UNCOUNTED = b"support counting tokens"
"""Bedrock says so of newer models, after it has judged the key."""


async def try_out(model: ModelSettings) -> Trial:
    try:
        provider = chosen(model, from_settings(model))
        return await _tried(provider, model.model)
    except BotError as error:
        return Trial(False, str(error))


async def _tried(provider: ModelProvider, model: str) -> Trial:
    request = AgentRequest(COUNT_TOKENS, "", (), OPERATOR)
    asked = {"model": model, "messages": [{"role": "user", "content": "Does this key work?"}]}
    sent = await provider.outgoing(
        request, CheckedRequest(provider.encode(request, model, asked), model, Sizes(0, 0, 0))
    )
    upstream = Upstream(provider.url, READ_SECONDS)
    try:
        async with upstream.ask(sent.path, sent.headers, sent.body) as answer:
            status, headers, said = answer.status, answer.headers, await answer.whole(MOST_BYTES)
    except (Unreachable, ConnectionBroken) as error:
        return Trial(False, f"{provider.title} could not be reached ({error}). Check the region and the network.")
    finally:
        await upstream.close()
    if status == 200:
        return Trial(True, f"{provider.title} accepts the key, and counted tokens for {model}.")
    refusal = provider.error(status, headers, said)
    if refusal is None:
        return Trial(False, f"{provider.title} answered {status} in an unknown form. Check the address.")
    if UNCOUNTED in refusal.body:
        words = (
            f"{provider.title} accepts the key. It counts no tokens for {model}, so the first session tries the rest."
        )
        return Trial(True, words)
    if refusal.complaint:
        return Trial(False, ": ".join(refusal.complaint))
    return Trial(False, f"{provider.title} answered {status}; the key was not judged.")
