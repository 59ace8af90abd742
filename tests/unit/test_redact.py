"""No registered value leaves in any encoding, and no way of cutting a stream lets one through."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.outbound.redact import REDACTED, Redactor

CANARY = "c4nary+Secret/Value=with~signs&more"
PEM = """-----BEGIN RSA PRIVATE KEY-----
MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo
abcdEFGHijklMNOPqrstUVWXyz0123456789
-----END RSA PRIVATE KEY-----
"""
STATELESS = "ghs_12345_eyJhbGciOiJSUzI1NiJ9." + "a-B_c" * 90 + "." + "sIg-_" * 8

ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64url": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "percent": quote,
    "percent all": lambda value: "".join(f"%{byte:02x}" for byte in value.encode()),
    "json": lambda value: json.dumps(value)[1:-1],
    "json all": lambda value: "".join(f"\\u{ord(char):04x}" for char in value),
    "markdown": lambda value: re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", value),
    "html": html.escape,
    "html all": lambda value: "".join(f"&#{ord(char)};" for char in value),
    "html hex": lambda value: "".join(f"&#x{ord(char):X};" for char in value),
    "reversed": lambda value: value[::-1],
    "split": lambda value: "<!-- -->".join(value[at : at + 3] for at in range(0, len(value), 3)),
}


@pytest.mark.acceptance("D11")
@pytest.mark.parametrize("name", ENCODINGS)
def test_each_encoding_is_redacted(name: str) -> None:
    encoded = ENCODINGS[name](CANARY)
    redacted = Redactor([CANARY]).redact(f"before {encoded} after")
    assert redacted.startswith(f"before {REDACTED}")
    assert redacted.endswith(" after")
    assert encoded[4:] not in redacted


@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("tail", ["", "x", "xy"])
def test_base64_of_a_text_around_the_value(shift: int, tail: str) -> None:
    inside = ("k" * shift + CANARY + tail).encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        redacted = Redactor([CANARY]).redact(encode(inside).decode())
        assert REDACTED in redacted
        assert len(redacted) <= len(REDACTED) + 8


def test_wrapped_base64_and_spaced_hex() -> None:
    redactor = Redactor([CANARY * 3])
    wrapped = base64.encodebytes((CANARY * 3).encode()).decode()
    spaced = (CANARY * 3).encode().hex(" ")
    assert redactor.redact(wrapped).strip() in (REDACTED, REDACTED + "=", REDACTED + "==")
    assert redactor.redact(spaced) == REDACTED


@pytest.mark.acceptance("C05")
@pytest.mark.parametrize(
    "token",
    [
        "ghs_" + "a1B2" * 9,
        "ghp_" + "a1B2" * 9,
        "gho_" + "a1B2" * 9,
        "ghu_" + "a1B2" * 9,
        "ghr_" + "a1B2" * 9,
        STATELESS,
        "github_pat_" + "A1b2C3" * 10,
        "sk-ant-api03-" + "a-B_1" * 12,
        "fht_" + "a-B_1" * 8,
        "e2b_" + "0123abcd" * 5,
        "AKIA" + "ABCD" * 4,
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0NSJ9.c2lnbmF0dXJlLXBhcnQ",
        "sk_live_" + "a1B2" * 6,
        "hf_" + "aBcD" * 9,
        "pypi-AgEIcHlwaS5vcmc" + "a-B_" * 12,
        "ya29." + "a-B_1" * 10,
        "dop_v1_" + "0a1b" * 16,
        "SG." + "a-B_" * 5 + "." + "a-B_1" * 8,
        PEM.strip(),
    ],
)
def test_tokens_that_nobody_registered(token: str) -> None:
    assert Redactor().redact(f"a {token} b") == f"a {REDACTED} b"
    assert Redactor().redact(f'{{"t": {json.dumps(token)}}}') == f'{{"t": "{REDACTED}"}}'
    assert Redactor().redact(f"a {ENCODINGS['markdown'](token)} b") == f"a {REDACTED} b"


def test_userinfo_of_a_url() -> None:
    assert Redactor().redact("https://x-access-token:abc@github.com/o/r") == f"https://{REDACTED}@github.com/o/r"
    public = "https://0123456789abcdef0123456789abcdef@o1.ingest.example/42"
    assert Redactor().redact(public) == public, "a name alone may be one that is meant to be public"


@pytest.mark.parametrize("name", ["percent all", "html all", "html hex", "split"])
def test_a_backslash_before_another_escape_hides_nothing(name: str) -> None:
    encoded = ENCODINGS[name](CANARY)
    assert encoded[4:] not in Redactor([CANARY]).redact(f"\\{encoded}")


def test_an_unfinished_key_is_redacted() -> None:
    assert "MIIE" not in Redactor().redact(PEM[:80])


def test_a_line_of_a_registered_key_is_redacted() -> None:
    assert Redactor([PEM]).redact(PEM.splitlines()[1]) == REDACTED


def test_ordinary_text_stays() -> None:
    text = "ghs_ is a prefix, eyJ too; `sk-` as well. 100% of https://example.com:8080/a@b\\n &amp; more"
    redactor = Redactor([CANARY])
    assert redactor.redact(text) == text
    assert redactor.redact("") == ""


def test_forgotten_and_short_values() -> None:
    redactor = Redactor([CANARY, "short"])
    redactor.forget(CANARY)
    assert redactor.redact(f"short {CANARY}") == f"short {CANARY}"
    assert CANARY not in repr(Redactor([CANARY]))


secrets = st.sampled_from([CANARY, STATELESS, PEM, "ghs_" + "a1B2" * 9, "hunter2hunter2", "aXaXaXa"])
encoded = st.builds(lambda value, name: ENCODINGS[name](value), secrets, st.sampled_from(sorted(ENCODINGS)))
partial = st.builds(lambda text, share: text[: int(len(text) * share)], encoded, st.floats(0, 1))
filler = st.one_of(
    st.text(max_size=12),
    st.text(alphabet=" \n\t%\\u&#;-ghs_", max_size=12),
    st.sampled_from(["-----BEGIN ", "RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "eyJ", "\\", "%6", "&#"]),
)
pieces = st.lists(st.one_of(encoded, partial, filler), max_size=6)


@pytest.mark.acceptance("D11")
@settings(max_examples=300, deadline=None)
@given(pieces=pieces, data=st.data())
def test_any_chunking_gives_what_the_whole_gives(pieces: list[str], data: st.DataObject) -> None:
    redactor = Redactor([CANARY, "hunter2hunter2", "aXaXaXa", PEM])
    whole = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    stream = redactor.stream()
    bounds = [0, *cuts, len(whole)]
    out = [stream.feed(whole[start:end]) for start, end in pairwise(bounds)]
    assert "".join(out) + stream.end() == redactor.redact(whole)


@pytest.mark.acceptance("D11")
@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from(sorted(ENCODINGS)),
    value=st.text(alphabet="abXY09+/=&%~-_.\\;lt", min_size=16, max_size=60).filter(lambda text: text == text.strip()),
    around=st.tuples(
        st.text(max_size=20), st.sampled_from(' \n"(=,:'), st.sampled_from(' \n")<,;'), st.text(max_size=20)
    ),
    cuts=st.lists(st.integers(0, 700), max_size=6),
)
def test_no_value_gets_through_in_any_encoding_whatever_stands_around_it(
    name: str, value: str, around: tuple[str, str, str, str], cuts: list[int]
) -> None:
    """Judged by the encoded value itself, also where the text comes in pieces."""
    before, opening, closing, after = around
    encoded = ENCODINGS[name](value)
    text = f"{before}{opening}{encoded}{closing}{after}"
    stream = Redactor([value]).stream()
    bounds = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    shown = "".join(stream.feed(text[start:end]) for start, end in pairwise(bounds)) + stream.end()
    assert encoded[4:-4] not in shown
    assert REDACTED in shown


@pytest.mark.acceptance("D11")
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize(
    "value", ["000000000000&%00", "hunter2&lt;%41hunter2", "p%26w\\u0041&amp;pass", "a\\n%0a&#10;bcdef"]
)
def test_a_value_that_looks_as_if_it_were_escaped_already(name: str, value: str) -> None:
    encoded = ENCODINGS[name](value)
    shown = Redactor([value]).redact(f"x {encoded} y")
    assert encoded[4:-4] not in shown and REDACTED in shown


@pytest.mark.acceptance("D11")
@pytest.mark.parametrize("name", ENCODINGS)
def test_every_single_split(name: str) -> None:
    text = f"x {ENCODINGS[name](CANARY)} y"
    redactor = Redactor([CANARY])
    for at in range(len(text) + 1):
        stream = redactor.stream()
        assert stream.feed(text[:at]) + stream.feed(text[at:]) + stream.end() == redactor.redact(text)


def test_a_stream_gives_words_out_at_once() -> None:
    stream = Redactor([CANARY]).stream()
    assert stream.feed("one two thr") == "one two "
    assert stream.feed("ee c4nary") == "three "
    assert stream.feed("\n") == ""
    assert stream.feed("no ") == "c4nary\nno "


def test_a_stream_is_bounded() -> None:
    stream = Redactor([CANARY]).stream()
    given_out = sum(len(stream.feed("x" * 65_536)) for _ in range(32))
    assert given_out >= 65_536 * 26
