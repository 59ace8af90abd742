"""A stand-in for Amazon Bedrock and for the service that gives out roles; it computes each signature again."""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.simulation.anthropic import ModelRequest
from tests.providers.foreign import ForeignModel, ForeignRefusal
from tests.world.aws_signature import Refused, Signers

KEY_ID, SECRET, REGION = "AKIACANARYBEDROCK001", "canary/secret+of/bedrock/0123456789ABCDE", "eu-central-1"
ROLE = "arn:aws:iam::123456789012:role/forgehand"
ROLE_SECRET, ROLE_TOKEN = "canary/secret+of/the/role/0123456789ABCDE", "canaryTokenOfTheRole+/=" * 4
PATH = re.compile(r"/model/([^/]+)/(invoke|invoke-with-response-stream|count-tokens)")
CODES = {
    "SignatureDoesNotMatch": (403, "InvalidSignatureException", "The request signature we calculated does not match."),
    "InvalidAccessKeyId": (
        403,
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    ),
    "RequestTimeTooSkewed": (403, "InvalidSignatureException", "Signature expired: 1 is now earlier than 2"),
    "AuthorizationHeaderMalformed": (
        403,
        "InvalidSignatureException",
        "Credential should be scoped to a valid region.",
    ),
    "AccessDenied": (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
}
THROTTLED = "Too many requests, please wait before trying again."
OF_STATUS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    500: "InternalServerException",
    529: "ServiceUnavailableException",
}


class SimulatedBedrock(ForeignModel):
    def __init__(self) -> None:
        super().__init__()
        self.signers = Signers({KEY_ID: SECRET}, REGION, "bedrock")
        self.tokens: dict[str, tuple[str, datetime]] = {}
        """Of keys that last some time: the token, and their end."""
        self.skew = timedelta()
        self.models = {"global.anthropic.claude-sonnet-5-5", "anthropic.claude-sonnet-5-5"}
        self.roles_given = 0
        self.lasts = timedelta(hours=1)

    def door(self, request: Request, raw: bytes) -> tuple[str, str, bool]:
        if request.url.path == "/":
            return "other", "", False
        self._judge(request, raw, self.signers)
        found = PATH.fullmatch(request.scope["raw_path"].decode("ascii"))
        if found is None:
            raise ForeignRefusal(404, "UnknownOperationException", "no such operation")
        model, what = unquote(found[1]), found[2]
        if model not in self.models:
            raise ForeignRefusal(400, "ValidationException", "The provided model identifier is invalid.")
        if what == "count-tokens" and model.startswith("global."):
            raise ForeignRefusal(400, "ValidationException", "The provided model doesn't support counting tokens.")
        name = f"claude-{model.partition('anthropic.claude-')[2]}"
        return ("count" if what == "count-tokens" else what), name, what == "invoke-with-response-stream"

    def plain(self, what: str, asked: ModelRequest) -> Mapping[str, Any]:
        body = asked.body
        if what == "count":
            body = json.loads(base64.b64decode(body["input"]["invokeModel"]["body"], validate=True))
        if body.get("anthropic_version") != "bedrock-2023-05-31":
            raise ForeignRefusal(400, "ValidationException", "anthropic_version: Field required")
        self.checked(body, list(body.get("anthropic_beta", [])), set())
        if any(name.startswith("anthropic-") for name in asked.headers):
            raise ForeignRefusal(400, "ValidationException", "a header of another API")
        return body

    def refusal(self, refused: ForeignRefusal) -> Response:
        code = refused.code if refused.code.endswith("Exception") else OF_STATUS[refused.status]
        status = 503 if refused.status == 529 else refused.status
        said = THROTTLED if refused.status == 429 else refused.message
        return JSONResponse({"message": said}, status, {"x-amzn-errortype": f"{code}:http://internal.amazon.com/"})

    def framed(self, body: bytes) -> bytes:
        name, data = body.decode().removeprefix("event: ").rstrip().split("\ndata: ")
        if name == "error":
            said = json.loads(data)["error"]["message"]
            headers = {":message-type": "exception", ":exception-type": "serviceUnavailableException"}
            return frame(headers, json.dumps({"message": said}).encode())
        payload = {"bytes": base64.b64encode(data.encode()).decode(), "p": "abcdefghijkl"[: len(data) % 12]}
        headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
        return frame(headers, json.dumps(payload).encode())

    def kind_of_stream(self) -> str:
        return "application/vnd.amazon.eventstream"

    def counted(self, tokens: int) -> dict[str, Any]:
        return {"inputTokens": tokens}

    def other(self, request: Request, raw: bytes) -> Response:
        """Give out a role."""
        self._judge(request, raw, Signers({KEY_ID: SECRET}, REGION, "sts"))
        asked = parse_qs(raw.decode())
        if asked["Action"] != ["AssumeRole"] or asked["RoleArn"] != [ROLE]:
            words = "not authorized to perform: sts:AssumeRole"
            error = f"<ErrorResponse><Error><Code>AccessDenied</Code><Message>{words}</Message></Error></ErrorResponse>"
            return Response(error, 403, media_type="text/xml")
        self.roles_given += 1
        key, end = f"ASIACANARYROLE{self.roles_given:06d}", datetime.now(UTC) + self.lasts
        self.signers.keys[key] = ROLE_SECRET
        self.tokens[key] = ROLE_TOKEN, end
        return Response(
            "<AssumeRoleResponse><AssumeRoleResult><Credentials>"
            f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{ROLE_SECRET}</SecretAccessKey>"
            f"<SessionToken>{ROLE_TOKEN}</SessionToken><Expiration>{end:%Y-%m-%dT%H:%M:%SZ}</Expiration>"
            f"</Credentials><AssumedRoleUser><Arn>{ROLE}/forgehand</Arn><AssumedRoleId>A:f</AssumedRoleId>"
            "</AssumedRoleUser></AssumeRoleResult></AssumeRoleResponse>",
            media_type="text/xml",
        )

    def _judge(self, request: Request, raw: bytes, signers: Signers) -> None:
        key = request.headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]
        if key in self.tokens:
            token, end = self.tokens[key]
            if request.headers.get("x-amz-security-token") != token:
                raise ForeignRefusal(*CODES["InvalidAccessKeyId"])
            if datetime.now(UTC) > end:
                words = "The security token included in the request is expired"
                raise ForeignRefusal(403, "ExpiredTokenException", words)
        try:
            signers.judge(request, raw, datetime.now(UTC) + self.skew)
        except Refused as refused:
            raise ForeignRefusal(*CODES[refused.code]) from None


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    heads = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(heads) + len(payload), len(heads))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + heads + payload
    return message + struct.pack(">I", binascii.crc32(message))
