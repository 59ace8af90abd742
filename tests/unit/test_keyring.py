"""What is encrypted comes back only with its key, in its place, unchanged."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import VaultError
from bot.keyring import KeyRing, SecretPlace, key_id
from bot.settings import Secret

names = st.text(st.characters(blacklist_characters="|", codec="utf-8"), max_size=20)
places = st.builds(SecretPlace, names, names, st.integers(0, 2**53), names)
values = st.text(st.characters(codec="utf-8"), max_size=300)
keys = st.binary(min_size=32, max_size=32)


def key(raw: bytes) -> Secret:
    return Secret(base64.b64encode(raw).decode())


A, B = (key(hashlib.sha256(name).digest()) for name in (b"a", b"b"))
PLACE = SecretPlace("credentials", "ciphertext", 7, "ANTHROPIC_API_KEY")


@given(raw=keys, value=values, place=places)
def test_what_goes_in_comes_out(raw: bytes, value: str, place: SecretPlace) -> None:
    ring = KeyRing([key(raw)])
    assert ring.open(ring.seal(value, place), place).reveal() == value


@pytest.mark.acceptance("F12")
@given(value=values, place=places, other=places)
def test_moved_to_any_other_place_it_does_not_decrypt(value: str, place: SecretPlace, other: SecretPlace) -> None:
    ring = KeyRing([A])
    sealed = ring.seal(value, place)
    if place != other:
        with pytest.raises(VaultError):
            ring.open(sealed, other)


@pytest.mark.acceptance("F12")
@pytest.mark.parametrize("part", [{"table": "others"}, {"column": "other"}, {"installation": 8}, {"row": "OTHER"}])
def test_each_part_of_its_place_counts(part: dict[str, Any]) -> None:
    ring = KeyRing([A])
    with pytest.raises(VaultError):
        ring.open(ring.seal("secret", PLACE), replace(PLACE, **part))


@pytest.mark.acceptance("F12")
@given(value=values, data=st.data())
def test_a_changed_byte_is_noticed(value: str, data: st.DataObject) -> None:
    ring = KeyRing([A])
    head, _, body = ring.seal(value, PLACE).rpartition(".")
    raw = bytearray(base64.urlsafe_b64decode(body))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(VaultError):
        ring.open(f"{head}.{base64.urlsafe_b64encode(bytes(raw)).decode()}", PLACE)


@given(garbage=st.text(max_size=80))
def test_what_is_no_ciphertext_is_refused_in_words(garbage: str) -> None:
    ring = KeyRing([A])
    for text in (garbage, f"v1.{ring.newest}.{garbage}"):
        with pytest.raises(VaultError):
            ring.open(text, PLACE)


@pytest.mark.acceptance("F15")
@given(value=st.text("abcdefghij", min_size=12))
def test_neither_words_nor_reprs_hold_a_value_or_a_key(value: str) -> None:
    ring = KeyRing([A])
    sealed = ring.seal(value, PLACE)
    with pytest.raises(VaultError) as moved:
        ring.open(sealed, replace(PLACE, installation=8))
    with pytest.raises(VaultError) as strange:
        KeyRing([B]).open(sealed, PLACE)
    for text in (sealed, repr(ring), str(moved.value), repr(strange.value), repr(ring.open(sealed, PLACE))):
        assert value not in text
        assert A.reveal() not in text


@pytest.mark.acceptance("F12")
def test_the_newest_key_encrypts_and_all_decrypt() -> None:
    old, both, new = KeyRing([A]), KeyRing([B, A]), KeyRing([B])
    former, latter = old.seal("x", PLACE), both.seal("x", PLACE)
    assert key_id(former) == old.newest and key_id(latter) == new.newest != old.newest
    assert both.open(former, PLACE).reveal() == both.open(latter, PLACE).reveal() == "x"
    assert key_id(both.seal("x", PLACE, under=old.newest)) == old.newest
    with pytest.raises(VaultError, match="does not hold"):
        new.open(former, PLACE)
    with pytest.raises(VaultError, match="does not hold"):
        new.seal("x", PLACE, under=old.newest)


def test_the_same_value_never_looks_the_same() -> None:
    ring = KeyRing([A])
    assert len({ring.seal("x", PLACE) for _ in range(50)}) == 50


def test_a_place_whose_names_could_be_read_in_two_ways_is_refused() -> None:
    with pytest.raises(ValueError, match="must not hold"):
        SecretPlace("a|b", "c", 1, "d")
