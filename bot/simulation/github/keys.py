"""Makes and checks App keys, JSON web tokens and installation tokens."""

from __future__ import annotations

import base64
import functools
import json
import secrets
import string
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ALPHABET = string.ascii_letters + string.digits


@functools.lru_cache(maxsize=64)
def key_pair(n: int) -> rsa.RSAPrivateKey:
    """Return the n-th key of this process, made once, because each costs up to 0.1 s and tests start many servers."""
    return rsa.generate_private_key(65537, 2048)


def pem(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def parts(jwt: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Return (header, claims, signed bytes, signature); ValueError if it is no JSON web token."""
    head, claims, signature = jwt.split(".")
    parsed = [json.loads(decode(each)) for each in (head, claims)]
    if not all(isinstance(each, dict) for each in parsed):
        raise ValueError("not an object")
    return parsed[0], parsed[1], f"{head}.{claims}".encode(), decode(signature)


def verifies(public_keys: list[Any], signed: bytes, signature: bytes) -> bool:
    for key in public_keys:
        try:
            key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            continue
        return True
    return False


def classic_token() -> str:
    return "ghs_" + "".join(secrets.choice(ALPHABET) for _ in range(36))


def stateless_token(app_id: int, claims: dict[str, Any]) -> str:
    """Make a token in the form of 2026: `ghs_APPID_` and a JSON web token, about 520 characters."""
    head = encode(json.dumps({"typ": "JWT", "alg": "RS256", "kid": secrets.token_hex(8)}).encode())
    body = encode(json.dumps(claims).encode())
    # a signature of real size that holds both characters of base64url which the classic form lacks
    signature = encode(b"\xfb\xff\xbf" + secrets.token_bytes(189))
    return f"ghs_{app_id}_{head}.{body}.{signature}"
