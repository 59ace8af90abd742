"""Signs requests to Amazon (Signature Version 4) with botocore's signer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bot.errors import SettingsError
from bot.settings import Secret


@dataclass(frozen=True)
class AmazonKey:
    """An access key. The token belongs to one that lasts some hours."""

    id: str = field(repr=False)
    secret: Secret
    token: Secret | None = None


class RequestSigner:
    def __init__(self, service: str, region: str, needed_by: str) -> None:
        """The signer is an extra, and loaded only by installations that use it."""
        try:
            from botocore.auth import S3SigV4Auth, SigV4Auth  # type: ignore[import-untyped]
            from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
            from botocore.credentials import Credentials  # type: ignore[import-untyped]
        except ImportError as error:
            extra = "s3" if service == "s3" else service
            raise SettingsError(
                f"{needed_by} needs a signer of requests. Install it: pip install 'forgehand[{extra}]'"
            ) from error
        self._auth: Any = S3SigV4Auth if service == "s3" else SigV4Auth
        self._request: Any = AWSRequest
        self._credentials: Any = Credentials
        self._scope = service, region

    def headers(
        self, key: AmazonKey, method: str, url: str, body: bytes, headers: dict[str, str] | None = None
    ) -> dict[str, str]:
        """Return these headers with those of the signature, which covers them and the digest of the body."""
        request = self._request(method=method, url=url, data=body, headers=headers or {})
        known = self._credentials(key.id, key.secret.reveal(), key.token.reveal() if key.token else None)
        self._auth(known, *self._scope).add_auth(request)
        return dict(request.headers.items())
