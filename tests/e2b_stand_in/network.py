"""Which network rules E2B accepts: pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

ALL_TRAFFIC = "0.0.0.0/0"
NEEDS_BLOCK_ALL = (
    "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out "
    "to block all other traffic."
)
MAX_DOMAINS, MAX_TRANSFORMS, MAX_HEADERS = 10, 1, 20
MAX_DOMAIN, MAX_NAME, MAX_VALUE = 128, 64, 2048
_DOMAIN = re.compile(r"(?=.{1,253}$)([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_-]{1,63}\.?")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Invalid(Exception):
    """A sentence for the client."""


def check(network: Mapping[str, Any]) -> None:
    deny, allow = network.get("denyOut") or [], network.get("allowOut") or []
    _addresses(deny, allow)
    rules = network.get("rules") or {}
    if len(rules) > MAX_DOMAINS:
        raise Invalid(f"Network rules can have at most {MAX_DOMAINS} domains.")
    for domain, items in rules.items():
        _rule(domain, items)


def looks_like_address(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def is_address(text: str) -> bool:
    """An address or a range of them, and not the empty one, unless it is that of all traffic."""
    if text == ALL_TRAFFIC:
        return True
    return looks_like_address(text) and not ipaddress.ip_address(text.partition("/")[0]).is_unspecified


def _addresses(deny: Sequence[str], allow: Sequence[str]) -> None:
    for each in deny:
        if not is_address(each):
            raise Invalid(f"invalid denied CIDR {each}")
    for each in allow:
        if looks_like_address(each) and not is_address(each):
            raise Invalid(f"invalid allowed address {each}")
    domains = [each for each in allow if not looks_like_address(each)]
    if domains and ALL_TRAFFIC not in deny:
        raise Invalid(NEEDS_BLOCK_ALL)


def _rule(domain: str, items: Sequence[Mapping[str, Any]]) -> None:
    if not domain:
        raise Invalid("Rule domain must not be empty.")
    if len(domain) > MAX_DOMAIN:
        raise Invalid(f'Rule domain "{domain}" exceeds maximum length of {MAX_DOMAIN} characters.')
    if not _DOMAIN.fullmatch(domain):
        raise Invalid(f'Rule domain "{domain}" is not a valid domain name.')
    if len(items) > MAX_TRANSFORMS:
        raise Invalid(f'Domain "{domain}" can have at most {MAX_TRANSFORMS} transform rule.')
    for item in items:
        headers = (item.get("transform") or {}).get("headers") or {}
        if len(headers) > MAX_HEADERS:
            raise Invalid(f'Domain "{domain}" can have at most {MAX_HEADERS} headers per rule.')
        for name, value in headers.items():
            _header(domain, name, value)


def _header(domain: str, name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise Invalid(
            f'Header name "{name}" in rule for domain "{domain}" must contain only valid HTTP token characters.'
        )
    if len(name) > MAX_NAME:
        raise Invalid(
            f'Header name "{name}" in rule for domain "{domain}" exceeds maximum length of {MAX_NAME} characters.'
        )
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
        raise Invalid(f'Value for header "{name}" in rule for domain "{domain}" contains invalid characters.')
    if len(value) > MAX_VALUE:
        said = (
            f'Value for header "{name}" in rule for domain "{domain}" exceeds maximum length of {MAX_VALUE} characters.'
        )
        raise Invalid(said)
