"""Makes the bearer tokens that Google's APIs take, with google-auth, which is synchronous and so runs in a thread."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from datetime import UTC
from typing import Any

import httpx

from bot.errors import SettingsError
from bot.settings import Secret, VertexSettings
from bot.vendors.identity import IdentityRefused, IdentityUnavailable, Lasting, Renewed, SecretWitness, shown

WHOSE = "Google"
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
CALL_SECONDS = 10.0
NEEDED = "FORGEHAND_PROVIDER=vertex needs: pip install 'forgehand[vertex]'"


class GoogleTokens:
    def __init__(self, settings: VertexSettings, witness: SecretWitness | None = None) -> None:
        self._key = settings.key
        self._renewed = Renewed(WHOSE, self._fetch, witness)

    async def current(self) -> Secret:
        return await self._renewed.current()

    def doubt(self) -> bool:
        """Drop a token that Google refused; False if a new one would be refused too."""
        return self._renewed.doubt()

    def _fetch(self) -> Lasting[Secret]:
        require()
        from google.auth.exceptions import GoogleAuthError, TransportError

        try:
            known = self._credentials()
            known.refresh(_sent)
        except TransportError as error:
            raise IdentityUnavailable(f"Google cannot be asked for a token: {shown(error)}.") from None
        except GoogleAuthError as error:
            if getattr(error, "retryable", False):
                raise IdentityUnavailable(f"Google gives no token at the moment: {shown(error)}.") from None
            words = "Make a new key for the service account, and set FORGEHAND_VERTEX_KEY_FILE to it."
            raise IdentityRefused(f"Google gives no token for the key in use: {shown(error)}. {words}") from None
        except ValueError as error:  # a key file with a part missing or broken
            words = "Download it again, and set FORGEHAND_VERTEX_KEY_FILE to it."
            raise IdentityRefused(f"The key for Google cannot be used ({type(error).__name__}). {words}") from None
        token = Secret(str(known.token))
        until = known.expiry.replace(tzinfo=UTC).timestamp() if known.expiry else time.time() + 600
        return Lasting(token, until, (token,))

    def _credentials(self) -> Any:
        """Load exactly the kinds of files that the settings admit."""
        from google.auth import compute_engine, identity_pool
        from google.oauth2 import service_account

        if self._key is None:
            return compute_engine.Credentials()  # type: ignore[no-untyped-call]
        known = json.loads(self._key.reveal())
        if known["type"] == "service_account":
            return service_account.Credentials.from_service_account_info(known, scopes=SCOPES)  # type: ignore[no-untyped-call]
        return identity_pool.Credentials.from_info(known, scopes=SCOPES)  # type: ignore[no-untyped-call]


def require() -> None:
    try:
        import google.auth  # noqa: F401
    except ImportError:
        raise SettingsError(NEEDED) from None


class _Answer:
    """An answer, as google-auth reads it."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.data = response.content


def _sent(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **_: Any,
) -> _Answer:
    """Send a request of google-auth: without proxies, redirects or more time than `CALL_SECONDS`."""
    from google.auth.exceptions import TransportError

    try:
        with httpx.Client(
            trust_env=False, timeout=min(timeout or CALL_SECONDS, CALL_SECONDS), verify=ssl.create_default_context()
        ) as client:
            return _Answer(client.request(method, url, content=body, headers=dict(headers or {})))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise TransportError(type(error).__name__) from None  # type: ignore[no-untyped-call]
