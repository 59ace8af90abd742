"""The settings of Amazon Bedrock and Google Vertex, which can replace Anthropic's API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.errors import SettingsError
from bot.settings.reader import Secret, SettingsReader, address

PROVIDER, IDS = "FORGEHAND_PROVIDER", "FORGEHAND_MODEL_IDS"
KEY_ID, SECRET, TOKEN = "FORGEHAND_BEDROCK_KEY_ID", "FORGEHAND_BEDROCK_SECRET", "FORGEHAND_BEDROCK_TOKEN"
PROFILE, METADATA, ROLE = "FORGEHAND_BEDROCK_PROFILE", "FORGEHAND_BEDROCK_METADATA", "FORGEHAND_BEDROCK_ROLE"
PROJECT, KEY = "FORGEHAND_VERTEX_PROJECT", "FORGEHAND_VERTEX_KEY"
VERTEX_METADATA = "FORGEHAND_VERTEX_METADATA"
REGIONAL_FACTOR = 1.1
"""Both ask a tenth more where they promise a region, for every model in our table."""
GLOBAL = "global"
_AREAS = (GLOBAL, "us", "eu", "jp", "apac", "au", "ca", "us-gov", "none")
_REGION = re.compile(r"[a-z0-9-]{2,40}")
_PROJECT = re.compile(r"[a-z0-9.:-]{4,100}")
_ID = re.compile(r"[A-Za-z0-9._:/@-]{1,500}")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,500}", re.ASCII)
_VERTEX_HOSTS = {GLOBAL: "aiplatform", "us": "aiplatform.us.rep", "eu": "aiplatform.eu.rep"}
_EXAMPLE = '{"claude-sonnet-5-5": "us.anthropic.claude-sonnet-5-5"}'


@dataclass(frozen=True)
class BedrockSettings:
    region: str
    url: str
    area: str = GLOBAL
    """The inference profile: its regions share the requests; `none` for the model of the region itself."""
    key_id: Secret | None = None
    secret: Secret | None = None
    token: Secret | None = None
    profile: str = ""
    """A profile in the files of Amazon's tools, used if there is no key."""
    role: str = ""
    """A role to take on with the key, the profile or the machine's identity."""
    sts_url: str | None = None
    """The address of the service that gives out roles; None for Amazon's own."""
    title = "Amazon Bedrock"

    def price_factor(self, model_id: str) -> float:
        """Count an id of the operator's as regional unless it says otherwise: it may be a profile of any area."""
        area = model_id.partition(".")[0] if model_id else self.area
        return 1.0 if area == GLOBAL else REGIONAL_FACTOR

    def secrets(self) -> tuple[Secret, ...]:
        return tuple(one for one in (self.secret, self.token) if one)

    def hosts(self) -> tuple[str, ...]:
        """List addresses besides the model's that get a credential of ours."""
        return (self.sts_url or f"https://sts.{self.region}.amazonaws.com",)


@dataclass(frozen=True)
class VertexSettings:
    project: str
    region: str
    url: str
    key: Secret | None = None
    """A service account's key, or how to exchange another identity for one (JSON); None for the machine's identity."""
    title = "Google Vertex AI"

    def price_factor(self, _: str) -> float:
        return 1.0 if self.region == GLOBAL else REGIONAL_FACTOR

    def secrets(self) -> tuple[Secret, ...]:
        """Return the secret parts of the file; its other lines may stand in any repository."""
        known = json.loads(self.key.reveal()) if self.key else {}
        return tuple(Secret(str(known[name])) for name in ("private_key", "client_secret") if known.get(name))

    def hosts(self) -> tuple[str, ...]:
        known = json.loads(self.key.reveal()) if self.key else {}
        named = [known.get(name) for name in ("token_uri", "token_url", "service_account_impersonation_url")]
        return tuple(one for one in named if isinstance(one, str))


ProviderSettings = BedrockSettings | VertexSettings


@dataclass(frozen=True)
class ModelProviderSettings:
    """The provider that is set, and the operator's own ids of its models by the names that people use."""

    at: ProviderSettings | None = None
    ids: Mapping[str, str] = field(default_factory=dict)


def read(reader: SettingsReader) -> ModelProviderSettings:
    chosen = reader.choice(PROVIDER, "anthropic", ("anthropic", "bedrock", "vertex"))
    if chosen == "anthropic":
        if reader.text(IDS, ""):
            raise SettingsError(f"{IDS} is set without {PROVIDER}. Set {PROVIDER} to bedrock or vertex, or remove it.")
        return ModelProviderSettings()
    at = _bedrock(reader) if chosen == "bedrock" else _vertex(reader)
    return ModelProviderSettings(at, _ids(reader.text(IDS, "")))


def _bedrock(reader: SettingsReader) -> BedrockSettings:
    region = _named(reader, "FORGEHAND_BEDROCK_REGION", _REGION, "eu-central-1")
    key_id, secret, token = reader.header(KEY_ID), reader.header(SECRET), reader.header(TOKEN)
    profile, machine = reader.text(PROFILE, ""), reader.choice(METADATA, "0", ("0", "1")) == "1"
    if (key_id is None) != (secret is None) or (token is not None and key_id is None):
        raise SettingsError(f"{KEY_ID} and {SECRET} belong together: set both (each also as …_FILE), or neither.")
    if [key_id is not None, bool(profile), machine].count(True) != 1:
        raise SettingsError(
            f"{PROVIDER}=bedrock needs one identity at Amazon: {KEY_ID} with {SECRET}, or {PROFILE}, or {METADATA}=1 "
            "for the role of this machine."
        )
    role = reader.text(ROLE, "")
    if role and not _ROLE.fullmatch(role):
        raise SettingsError(f"{ROLE} must be like arn:aws:iam::123456789012:role/forgehand.")
    return BedrockSettings(
        region=region,
        url=reader.url("FORGEHAND_BEDROCK_URL", f"https://bedrock-runtime.{region}.amazonaws.com"),
        area=reader.choice("FORGEHAND_BEDROCK_AREA", GLOBAL, _AREAS),
        key_id=key_id,
        secret=secret,
        token=token,
        profile=profile,
        role=role,
        sts_url=reader.optional_url("FORGEHAND_BEDROCK_STS_URL"),
    )


def _vertex(reader: SettingsReader) -> VertexSettings:
    project = _named(reader, PROJECT, _PROJECT, "my-project")
    region = reader.text("FORGEHAND_VERTEX_REGION", GLOBAL)
    if not _REGION.fullmatch(region):
        raise SettingsError(f"FORGEHAND_VERTEX_REGION must be a name such as europe-west1 or global, not {region!r}.")
    key = reader.secret(KEY)
    if (key is None) == (reader.choice(VERTEX_METADATA, "0", ("0", "1")) == "0"):
        raise SettingsError(
            f"{PROVIDER}=vertex needs one identity at Google: {KEY}_FILE with the path of a service account's key or "
            f"of a workload identity's configuration, or {VERTEX_METADATA}=1 for the identity of this machine."
        )
    if key is not None:
        _check_key(key)
    host = _VERTEX_HOSTS.get(region, f"{region}-aiplatform")
    return VertexSettings(project, region, reader.url("FORGEHAND_VERTEX_URL", f"https://{host}.googleapis.com"), key)


def _named(reader: SettingsReader, name: str, form: re.Pattern[str], example: str) -> str:
    value = reader.text(name)
    if not form.fullmatch(value):
        raise SettingsError(f"{name} must be a name such as {example}, not {value!r}.")
    return value


def _check_key(key: Secret) -> None:
    """Check the form only, without repeating any of it."""
    try:
        found: Any = json.loads(key.reveal())
    except (ValueError, RecursionError):
        found = None
    known: dict[str, Any] = found if isinstance(found, dict) else {}
    source: Any = known.get("credential_source")
    is_account = known.get("type") == "service_account" and isinstance(known.get("private_key"), str)
    is_workload = known.get("type") == "external_account" and isinstance(source, dict)
    if not is_account and not (is_workload and source and {"file", "url"} & source.keys()):
        raise SettingsError(
            f"{KEY} is no key that Forgehand can use. It takes the JSON file of a service account or of a workload "
            "identity with a file or an address as its source, as Google Cloud's console or `gcloud` writes it."
        )
    addresses = [known.get(name, "") for name in ("token_uri", "token_url", "service_account_impersonation_url")]
    for one in filter(None, addresses):
        address(f"An address in {KEY}", str(one))


def _ids(text: str) -> dict[str, str]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise SettingsError(f"{IDS} is not JSON. It takes {_EXAMPLE}.") from None
    if not isinstance(found, dict) or not all(isinstance(one, str) and _ID.fullmatch(one) for one in found.values()):
        raise SettingsError(f"{IDS} takes the provider's id of each model, such as {_EXAMPLE}.")
    return {name.strip().lower(): one for name, one in found.items()}
