"""A credential is found in an answer, however a program writes it, and wherever the pieces of the answer end."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from bot.outside import echoes

SECRET = 'canary/"sécret"+<value>'


def test_each_writing_is_known() -> None:
    pair = base64.b64encode(f"user:{SECRET}".encode()).decode()
    known = [form for one in echoes.parts(f"Basic {pair}") for form in echoes.writings(one)]
    plain = SECRET, json.dumps(SECRET), json.dumps({"a": SECRET}, ensure_ascii=False), quote(SECRET), pair
    said = [one.encode() for one in plain]
    for before in range(6):
        text = b"x" * before + SECRET.encode() + b"yz"
        said += [base64.b64encode(text), base64.urlsafe_b64encode(text), text.hex().encode()]
    assert [one for one in said if not any(form in one for form in known)] == []


async def test_no_part_of_it_leaves_before_it_is_found() -> None:
    async def pieces(text: bytes, size: int) -> AsyncIterator[bytes]:
        for at in range(0, len(text), size):
            yield text[at : at + size]

    text = b"before " * 9 + b"canary-secret" + b" after"
    for size in (1, 3, 7, 200):
        passed = b""
        with pytest.raises(echoes.CredentialRepeated):
            async for piece in echoes.without_echo(pieces(text, size), [b"canary-secret", b"other"]):
                passed += piece
        assert b"c" not in passed
        whole = [one async for one in echoes.without_echo(pieces(text, size), [b"canary-secrets"])]
        assert b"".join(whole) == text
