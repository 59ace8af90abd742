"""Only one well-formed header counts, and any of the secrets that are valid now."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from bot.settings import Secret
from bot.web import webhooks
from bot.web.webhooks import Signatures

BODY = b'{"zen":"anything"}'


def digest(key: bytes) -> bytes:
    return hmac.new(key, BODY, hashlib.sha256).digest()


@pytest.mark.acceptance("A01")
@pytest.mark.parametrize(
    "headers",
    [
        [],
        [b""],
        [b"sha1=" + b"0" * 40],
        [b"sha256=" + b"0" * 63],
        [b"sha256=" + b"0" * 65],
        [b"sha256=" + b"g" * 64],
        [b" sha256=" + b"0" * 64],
        [b"sha256=" + b"0" * 64 + b"\n"],
        [b"sha256=" + b"0" * 64, b"sha256=" + b"0" * 64],
    ],
)
def test_malformed_headers_claim_nothing(headers: list[bytes]) -> None:
    assert webhooks.claimed_digest(headers) is None


def test_the_claim_is_the_digest() -> None:
    assert webhooks.claimed_digest([b"sha256=" + digest(b"key").hex().encode()]) == digest(b"key")


@pytest.mark.acceptance("A16")
def test_old_and_new_secret_both_count_while_rotating() -> None:
    keys = Signatures([Secret("old"), Secret("new")])
    assert keys.match(digest(b"old"), BODY)
    assert keys.match(digest(b"new"), BODY)
    assert not keys.match(digest(b"other"), BODY)
    assert not keys.match(digest(b"new"), BODY + b"\n")


def test_an_empty_secret_opens_nothing() -> None:
    assert not Signatures([Secret("")]).match(digest(b""), BODY)


@pytest.mark.acceptance("F15")
def test_a_repr_shows_no_secret() -> None:
    assert repr(Signatures([Secret("hunter2")])) == "Signatures(1 secrets)"
