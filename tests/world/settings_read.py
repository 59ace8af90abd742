"""Finds all settings by reading them from a mapping that remembers each name."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import cache

from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bot import settings

CLOUD = {"FORGEHAND_SANDBOX": "e2b", "E2B_API_KEY": "key", "FORGEHAND_PUBLIC_URL": "https://bot.example"}
BEDROCK = {
    "FORGEHAND_PROVIDER": "bedrock",
    "FORGEHAND_BEDROCK_REGION": "eu-central-1",
    "FORGEHAND_BEDROCK_METADATA": "1",
}
VERTEX = {"FORGEHAND_PROVIDER": "vertex", "FORGEHAND_VERTEX_PROJECT": "project", "FORGEHAND_VERTEX_METADATA": "1"}
OF_THE_SYSTEM = {"HOME", "XDG_DATA_HOME"}


class Recorder(Mapping[str, str]):
    """Settings that remember which names were read."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@cache
def needed() -> Mapping[str, str]:
    """Return only the settings that the documents require."""
    key = generate_private_key(65537, 2048)
    return {
        "HOME": "/nowhere",
        "FORGEHAND_APP_ID": "1",
        "FORGEHAND_PRIVATE_KEY": key.private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        ).decode(),
        "FORGEHAND_WEBHOOK_SECRET": "secret",
        "FORGEHAND_SECRET_KEY": base64.b64encode(bytes(32)).decode(),
        "ANTHROPIC_API_KEY": "key",
    }


@cache
def known() -> frozenset[str]:
    """Return the names of all settings, without those that name a file."""
    readers = [Recorder({**needed(), **more}) for more in ({}, CLOUD, BEDROCK, VERTEX)]
    for reader in readers:
        settings.read(reader)
        settings.read_api_token(reader)
    asked = {name for reader in readers for name in reader.asked if not name.endswith("_FILE")}
    return frozenset(asked - OF_THE_SYSTEM)
