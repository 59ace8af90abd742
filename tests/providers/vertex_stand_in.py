"""A stand-in for Vertex AI and for Google's giver of tokens: it verifies each JWT, and takes only tokens it gave."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.simulation.anthropic import ModelRequest
from tests.providers.foreign import BETAS, ForeignModel, ForeignRefusal

PROJECT, REGION, ACCOUNT = "canary-project", "europe-west1", "forgehand@canary-project.iam.gserviceaccount.com"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
AUDIENCE = "https://oauth2.googleapis.com/token"
"""Google's, whatever the address of the giver of tokens."""
SUBJECT_TOKEN = "canary-of-the-workload"
POOL = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q"
PATH = re.compile(r"/v1/projects/([^/]+)/locations/([^/]+)/publishers/anthropic/models/([^/:]+):(\w+)")
OF_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    529: "UNAVAILABLE",
}


@cache
def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


class SimulatedVertex(ForeignModel):
    def __init__(self) -> None:
        super().__init__()
        self.betas = BETAS | {"claude-code-20250219", "effort-2025-11-24", "web-search-2025-03-05"}
        self.given: dict[str, float] = {}
        """Tokens by their end."""
        self.lasts = 3600
        self.models = {"claude-sonnet-5-5"}
        self.revoked = False

    def key_file(self) -> str:
        pem = private_key().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        known = {"type": "service_account", "project_id": PROJECT, "private_key_id": "k1", "client_email": ACCOUNT}
        return json.dumps({**known, "private_key": pem.decode(), "token_uri": f"{self.url}/token"})

    def workload_file(self, token: str) -> str:
        known = {"type": "external_account", "audience": POOL, "token_url": f"{self.url}/exchange"}
        kind = "urn:ietf:params:oauth:token-type:jwt"
        return json.dumps({**known, "subject_token_type": kind, "credential_source": {"file": token}})

    def door(self, request: Request, raw: bytes) -> tuple[str, str, bool]:
        if request.url.path in ("/token", "/exchange"):
            return "other", "", False
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or self.given.get(token, 0) < time.time():
            raise ForeignRefusal(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        found = PATH.fullmatch(request.url.path)
        if found is None or (found[1], found[2]) != (PROJECT, REGION):
            raise ForeignRefusal(
                403, "PERMISSION_DENIED", f"denied on resource {request.url.path} (or it may not exist)"
            )
        if found[3] == "count-tokens":
            return "count", str(json.loads(raw).get("model")), False
        if found[3] not in self.models:
            raise ForeignRefusal(404, "NOT_FOUND", f"Publisher Model `{found[3]}` was not found or is not enabled.")
        return found[4], found[3], found[4] == "streamRawPredict"

    def plain(self, what: str, asked: ModelRequest) -> Mapping[str, Any]:
        body = asked.body
        if body.get("anthropic_version") != "vertex-2023-10-16":
            raise ForeignRefusal(400, "INVALID_ARGUMENT", "anthropic_version: Field required")
        betas = [one for one in asked.headers.get("anthropic-beta", "").split(",") if one]
        self.checked(body, betas, {"model"} if what == "count" else {"stream"})
        if "anthropic_beta" in body or {"x-api-key", "anthropic-version"} & asked.headers.keys():
            raise ForeignRefusal(400, "INVALID_ARGUMENT", "not in the form of this API")
        return body

    def refusal(self, refused: ForeignRefusal) -> Response:
        code = refused.code if refused.code.isupper() else OF_STATUS[refused.status]
        status = 503 if refused.status == 529 else refused.status
        error = {"error": {"code": status, "message": refused.message, "status": code}}
        return JSONResponse([error] if status == 429 else error, status)

    def other(self, request: Request, raw: bytes) -> Response:
        asked = {name: values[0] for name, values in parse_qs(raw.decode()).items()}
        if self.revoked:
            return JSONResponse({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}, 400)
        if request.url.path == "/exchange":
            assert (asked["audience"], asked["scope"], asked["subject_token"]) == (POOL, SCOPE, SUBJECT_TOKEN)
            assert asked["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
        else:
            assert asked["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            known = private_key().public_key()
            said = jwt.decode(asked["assertion"], known, algorithms=["RS256"], audience=AUDIENCE)
            assert (said["iss"], said["scope"]) == (ACCOUNT, SCOPE)
            assert said["exp"] - said["iat"] <= 3600
        token = f"ya29.canary-of-vertex-{len(self.given):04d}"
        self.given[token] = time.time() + self.lasts
        kind = "urn:ietf:params:oauth:token-type:access_token"
        return JSONResponse(
            {"access_token": token, "expires_in": self.lasts, "token_type": "Bearer", "issued_token_type": kind}
        )
