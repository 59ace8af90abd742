"""Amazon Bedrock (InvokeModel): the model in the path, version and betas in the body, SigV4, an event stream back.

No header of the agent's goes on, because some headers choose a dearer service.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from bot.settings import BedrockSettings
from bot.settings.providers import ModelProviderSettings
from bot.vendors.amazon import RequestSigner
from bot.vendors.amazon_keys import AmazonKeys
from bot.web.gateway.model_request import CheckedRequest
from bot.web.gateway.providers import COUNT_TOKENS, AgentRequest, OutgoingRequest, ProviderError, StreamForm, foreign
from bot.web.gateway.providers.event_stream import AmazonStream
from bot.web.gateway.providers.foreign import ForeignDialect
from bot.web.gateway.providers.model_ids import countable, model_id

VERSION = "bedrock-2023-05-31"
SIGNED_BESIDE_BYTES = 256 << 10
"""A larger body is hashed in a thread: that takes a millisecond for each megabyte."""
STREAMED = "application/vnd.amazon.eventstream"
CODE, REQUEST_ID = "x-amzn-errortype", "x-amzn-requestid"
EXPIRED = frozenset({"ExpiredTokenException", "ExpiredToken"})
UNKNOWN_KEY = frozenset({
    "IncompleteSignature", "IncompleteSignatureException", "InvalidClientTokenId", "InvalidSignatureException",
    "MissingAuthenticationTokenException", "SignatureDoesNotMatch", "UnrecognizedClientException",
})  # fmt: skip
DENIED = frozenset({"AccessDeniedException", "FTUFormNotFilled", "NotAuthorized", "OptInRequired"})
STATUSES = {
    "ThrottlingException": 429,
    "TooManyRequestsException": 429,
    "ServiceQuotaExceededException": 429,
    "ModelNotReadyException": 529,
    "ServiceUnavailableException": 529,
    "ModelTimeoutException": 504,
    "ModelErrorException": 500,
    "ModelStreamErrorException": 500,
    "InternalServerException": 500,
    "InternalFailure": 500,
}
NO_MODEL = ("model identifier is invalid", "on-demand throughput", "end of its life", "is not supported in this region")


class Bedrock:
    title = BedrockSettings.title

    def __init__(
        self, provider: ModelProviderSettings, at: BedrockSettings, keys: AmazonKeys, admitted: frozenset[str]
    ) -> None:
        self.url = at.url
        self._settings = provider
        self._keys = keys
        self._dialect = ForeignDialect(admitted)
        self._signer = RequestSigner("bedrock", at.region, "FORGEHAND_PROVIDER=bedrock")

    def left_out(self, request: AgentRequest) -> tuple[list[str], list[str]]:
        return self._dialect.left_out(request)

    def encode(self, request: AgentRequest, model: str, body: dict[str, Any]) -> bytes:
        self._dialect.adapt(request, body, VERSION, stays=frozenset())
        if betas := self._dialect.betas(request):
            body["anthropic_beta"] = betas
        if request.path == COUNT_TOKENS:
            body.setdefault("max_tokens", 1)  # counted as a request to invoke would be
            inner = base64.b64encode(foreign.encode(body)).decode()
            return msgspec.json.encode({"input": {"invokeModel": {"body": inner}}})
        return foreign.encode(body)

    async def outgoing(self, request: AgentRequest, checked: CheckedRequest) -> OutgoingRequest:
        found, body = model_id(self._settings, checked.model), checked.body
        if request.path == COUNT_TOKENS:
            path = f"/model/{quote(countable(found), safe='')}/count-tokens"
        else:
            path = f"/model/{quote(found, safe='')}/{'invoke-with-response-stream' if checked.streams else 'invoke'}"
        key = await self._keys.current()
        headers = {"accept": "application/json", "content-type": "application/json"}
        call = key, "POST", f"{self.url}{path}", body, headers
        if len(body) > SIGNED_BESIDE_BYTES:
            signed = await asyncio.to_thread(self._signer.headers, *call)
        else:
            signed = self._signer.headers(*call)
        hidden = tuple(one.reveal() for one in (key.secret, key.token) if one)
        return OutgoingRequest(path, [*signed.items(), ("accept-encoding", "identity")], body, (*hidden, key.id))

    def returned(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {"request-id": headers[REQUEST_ID]} if REQUEST_ID in headers else {}

    def stream(self, kind: str) -> StreamForm | None:
        return AmazonStream() if kind == STREAMED else None

    def whole(self, path: str, body: bytes) -> bytes:
        if path != COUNT_TOKENS:
            return body
        found = foreign.parsed(body)
        counted = found.get("inputTokens") if isinstance(found, dict) else None
        return msgspec.json.encode({"input_tokens": counted if isinstance(counted, int) else 0})

    def error(self, status: int, headers: Mapping[str, str], body: bytes | None) -> ProviderError | None:
        found = foreign.parsed(body)
        if not isinstance(found, dict):
            return None
        code = headers.get(CODE, "").partition(":")[0] or str(found.get("__type", "")).rpartition("#")[2]
        said = foreign.words_of(str(found.get("message") or found.get("Message") or code))
        if code in EXPIRED | UNKNOWN_KEY:
            return self._of_key(code, said)
        if code in DENIED or (status == 403 and code not in STATUSES):
            trouble = (
                "the key may not use this model. Allow it bedrock:InvokeModel and "
                "bedrock:InvokeModelWithResponseStream on the model and its inference profile, and open the model to "
                "the account."
            )
            return foreign.refused(self.title, trouble, said, "provider_denied")
        if code == "ResourceNotFoundException" or any(words in said for words in NO_MODEL):
            trouble = "there is no such model in this region. Look at FORGEHAND_BEDROCK_AREA and FORGEHAND_MODEL_IDS."
            return foreign.refused(self.title, trouble, said, "provider_model")
        return foreign.passing(STATUSES.get(code, 400 if status < 500 else 500), self.title, said, headers)

    def _of_key(self, code: str, said: str) -> ProviderError:
        if self._keys.doubt():
            return foreign.passing(529, self.title, "The key has ended; a new one is fetched.", {"retry-after": "1"})
        if "now" in said and "signature" in said.lower() and code not in EXPIRED:  # "Signature expired: … is now …"
            trouble = "it says that our clock is wrong. Set the clock of this machine, best by NTP."
            return foreign.refused(self.title, trouble, said, "provider_clock")
        if code in EXPIRED:
            trouble = "the key has expired. Set a new one in FORGEHAND_BEDROCK_KEY_ID, _SECRET and _TOKEN, and restart."
            return foreign.refused(self.title, trouble, said, "provider_expired")
        trouble = (
            "it does not accept the key. Check FORGEHAND_BEDROCK_KEY_ID, FORGEHAND_BEDROCK_SECRET and that "
            "FORGEHAND_BEDROCK_REGION belongs to the address."
        )
        return foreign.refused(self.title, trouble, said, "provider_key")
