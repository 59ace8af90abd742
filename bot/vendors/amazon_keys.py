"""Finds the key for Amazon: a fixed one, a profile's, this machine's, or that of a role.

botocore does that synchronously and over its own connections, so it runs in a thread."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from bot.errors import SettingsError
from bot.settings import BedrockSettings, Secret
from bot.vendors.amazon import AmazonKey
from bot.vendors.identity import IdentityRefused, IdentityUnavailable, Lasting, Renewed, SecretWitness, shown

WHOSE = "Amazon"
OF_MACHINE = ("container-role", "iam-role")
"""botocore's names of the sources that ask the machine's metadata service; others must not reach it."""
FROM_FILE_SECONDS = 900.0
"""How long a profile's key without an end is used before its file is read again."""
CONNECT_SECONDS, READ_SECONDS = 5.0, 10.0
PASSING = frozenset({"Throttling", "ThrottlingException", "RequestTimeout", "ServiceUnavailable", "InternalFailure"})


class AmazonKeys:
    def __init__(self, settings: BedrockSettings, witness: SecretWitness | None = None) -> None:
        self._fixed: AmazonKey | None = None
        if settings.key_id is not None and settings.secret is not None:
            self._fixed = AmazonKey(settings.key_id.reveal(), settings.secret, settings.token)
        self._settings = settings
        self._renewed = Renewed(WHOSE, self._fetch, witness)

    async def current(self) -> AmazonKey:
        if self._fixed is not None and not self._settings.role:
            return self._fixed
        return await self._renewed.current()

    def doubt(self) -> bool:
        """Drop a key that Amazon refused; False if a new one would be refused too."""
        return self._renewed.doubt()

    def _fetch(self) -> Lasting[AmazonKey]:
        try:
            from botocore.exceptions import (  # type: ignore[import-untyped]
                BotoCoreError,
                ClientError,
                HTTPClientError,
            )
        except ImportError:
            raise SettingsError("FORGEHAND_PROVIDER=bedrock needs: pip install 'forgehand[bedrock]'") from None
        try:
            return self._found()
        except HTTPClientError as error:
            raise IdentityUnavailable(f"Amazon cannot be asked for a key: {shown(error)}.") from None
        except ClientError as error:
            if str(error.response.get("Error", {}).get("Code")) in PASSING:
                raise IdentityUnavailable(f"Amazon gives no key at the moment: {shown(error)}.") from None
            raise IdentityRefused(f"Amazon gives no key: {shown(error)}. Look at FORGEHAND_BEDROCK_ROLE.") from None
        except (BotoCoreError, KeyError, OSError, ValueError) as error:  # also of a file that is broken
            raise IdentityRefused(
                f"There is no key for Amazon: {shown(error)}. Look at FORGEHAND_BEDROCK_PROFILE."
            ) from None

    def _found(self) -> Lasting[AmazonKey]:
        session = self._session()
        own = self._own(session)
        if not self._settings.role:
            frozen, end = own.get_frozen_credentials(), getattr(own, "_expiry_time", None)
            key = AmazonKey(
                frozen.access_key, Secret(frozen.secret_key), Secret(frozen.token) if frozen.token else None
            )
            return _lasting(key, end)
        from botocore.credentials import AssumeRoleCredentialFetcher  # type: ignore[import-untyped]

        def client(service: str, **given: Any) -> Any:
            return session.create_client(service, endpoint_url=self._settings.sts_url, **given)

        asked = {"RoleSessionName": "forgehand"}
        given = AssumeRoleCredentialFetcher(client, own, self._settings.role, asked).fetch_credentials()
        key = AmazonKey(given["access_key"], Secret(given["secret_key"]), Secret(given["token"]))
        return _lasting(key, datetime.fromisoformat(given["expiry_time"].replace("Z", "+00:00")))

    def _session(self) -> Any:
        from botocore.config import Config  # type: ignore[import-untyped]
        from botocore.session import Session  # type: ignore[import-untyped]

        session = Session(profile=self._settings.profile or None)
        session.set_config_variable("region", self._settings.region)
        # no proxies and endpoints of botocore's: a variable of the environment must not lead the key to another host
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"max_attempts": 1},
            proxies={},
            ignore_configured_endpoint_urls=True,
        )
        session.set_default_client_config(config)
        return session

    def _own(self, session: Any) -> Any:
        from botocore.credentials import Credentials, create_credential_resolver

        if self._fixed is not None:
            token = self._fixed.token.reveal() if self._fixed.token else None
            return Credentials(self._fixed.id, self._fixed.secret.reveal(), token)
        resolver = create_credential_resolver(session, region_name=self._settings.region)
        by_profile = bool(self._settings.profile)
        resolver.providers = [one for one in resolver.providers if (one.METHOD in OF_MACHINE) is not by_profile]
        found = resolver.load_credentials()
        if found is None:
            where = f"the profile {self._settings.profile}" if by_profile else "this machine's metadata service"
            raise IdentityRefused(f"There is no key for Amazon in {where}. Check it, or set FORGEHAND_BEDROCK_KEY_ID.")
        return found


def _lasting(key: AmazonKey, end: datetime | None) -> Lasting[AmazonKey]:
    until = end.timestamp() if end is not None else time.time() + FROM_FILE_SECONDS
    return Lasting(key, until, tuple(one for one in (key.secret, key.token) if one))
