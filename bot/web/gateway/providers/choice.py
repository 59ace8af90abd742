"""Makes the provider that is set."""

from __future__ import annotations

from bot.settings import BedrockSettings, ModelSettings
from bot.vendors.identity import SecretWitness
from bot.web.gateway.dialect import Dialect
from bot.web.gateway.providers import ModelProvider
from bot.web.gateway.providers.anthropic import AnthropicApi, Credentials


def chosen(model: ModelSettings, credentials: Credentials, witness: SecretWitness | None = None) -> ModelProvider:
    """Import only what the provider needs. The witness hears of each key or token that is fetched."""
    at = model.provider.at
    if at is None:
        return AnthropicApi(model.upstream, credentials, Dialect(model.admitted))
    if isinstance(at, BedrockSettings):
        from bot.vendors.amazon_keys import AmazonKeys
        from bot.web.gateway.providers.bedrock import Bedrock

        return Bedrock(model.provider, at, AmazonKeys(at, witness), model.admitted)
    from bot.vendors.google import GoogleTokens
    from bot.web.gateway.providers.vertex import Vertex

    return Vertex(model.provider, at, GoogleTokens(at, witness), model.admitted)
