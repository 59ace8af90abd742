"""Finds the bucket for files: an S3-compatible service, a bucket there, and the key for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from bot.errors import SettingsError
from bot.settings.reader import Secret, SettingsReader, address

NAME, KEY_ID, SECRET = "FORGEHAND_FILES_URL", "FORGEHAND_FILES_KEY_ID", "FORGEHAND_FILES_SECRET"
_FORM = f"{NAME} must be like s3://bucket/prefix?region=eu-central-1, with &endpoint=https://… for other than AWS"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}/){0,9}")
"""No character that needs an escape, and no segment that a proxy would resolve."""
_REGION = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True)
class BucketSettings:
    name: str
    prefix: str
    """Empty, or ends with a slash."""
    endpoint: str
    region: str
    key_id: Secret
    secret: Secret


def read(reader: SettingsReader) -> BucketSettings | None:
    """Read the address and the key; no part of the URL is repeated before it is known to hold no secret."""
    url, key_id, secret = reader.text(NAME, ""), reader.header(KEY_ID), reader.header(SECRET)
    if not url:
        if key_id is not None or secret is not None:
            raise SettingsError(f"{KEY_ID} or {SECRET} is set without {NAME}. Set all three, or none.")
        return None
    bucket, prefix, chosen = _parts(url)
    if key_id is None or secret is None:
        missing = KEY_ID if key_id is None else SECRET
        raise SettingsError(f"{missing} is not set. {NAME} needs it; set it, or {missing}_FILE to the path of a file.")
    region = chosen.get("region", "us-east-1")
    endpoint = chosen.get("endpoint", f"https://s3.{region}.amazonaws.com")
    return BucketSettings(bucket, prefix, address(f"The endpoint in {NAME}", endpoint), region, key_id, secret)


def _parts(url: str) -> tuple[str, str, dict[str, str]]:
    try:
        parts = urlsplit(url)
        chosen = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise SettingsError(f"{_FORM}.") from None
    if "@" in url or chosen.keys() - {"endpoint", "region"}:
        raise SettingsError(
            f"{NAME} holds more than a bucket, `endpoint` and `region`. Put the key into {KEY_ID} and its secret into "
            f"{SECRET} or {SECRET}_FILE: others may see the URL."
        )
    prefix = f"{path}/" if (path := parts.path.strip("/")) else ""
    if parts.scheme != "s3" or parts.fragment or not _BUCKET.fullmatch(parts.netloc) or not _PREFIX.fullmatch(prefix):
        raise SettingsError(f"{_FORM}.")
    if "region" in chosen and not _REGION.fullmatch(chosen["region"]):
        raise SettingsError(f"{_FORM}: the region is a name such as eu-central-1.")
    if not {"region", "endpoint"} & chosen.keys():
        raise SettingsError(f"{_FORM}: it names neither.")
    return parts.netloc, prefix, chosen
