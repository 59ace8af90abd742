"""Signs a request to S3 (Signature Version 4) with botocore's signer."""

from __future__ import annotations

from typing import Any

from bot.errors import StoreError
from bot.settings import BucketSettings


class RequestSigner:
    def __init__(self, settings: BucketSettings) -> None:
        """The signer is an extra, and loaded only by installations that use it."""
        try:
            from botocore.auth import S3SigV4Auth  # type: ignore[import-untyped]
            from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
            from botocore.credentials import Credentials  # type: ignore[import-untyped]
        except ImportError as error:
            raise StoreError(
                "FORGEHAND_FILES_URL needs a signer of requests. Install it: pip install 'forgehand[s3]'"
            ) from error
        key = Credentials(settings.key_id.reveal(), settings.secret.reveal())
        self._auth: Any = S3SigV4Auth(key, "s3", settings.region)
        self._request: Any = AWSRequest

    def headers(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the headers of a request, whose signature covers the digest of its body too."""
        request = self._request(method=method, url=url, data=body)
        self._auth.add_auth(request)
        return dict(request.headers.items())
