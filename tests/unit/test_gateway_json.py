"""The body of a request is read in short steps, within bounds that text never meets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.web.gateway import model_request
from bot.web.gateway.clients import GatewayRefusal
from bot.web.gateway.model_request import MOST_PARTS, PIECE_BYTES

pytestmark = pytest.mark.review("security-5")

words = st.text(st.sampled_from('a,[]{}":\\\n\u00e9 '), max_size=12)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)
bodies = st.dictionaries(words | st.sampled_from(["messages", "system", "tools"]), documents, max_size=4)


def body(parts: int) -> bytes:
    """A body of exactly so many: the brackets of two dicts and a list, and what stands between commas."""
    return b'{"messages":[{"a":[1' + b",1" * (parts - 4) + b"]}]}"


@given(bodies, st.booleans())
def test_what_is_read_is_what_was_sent(sent: dict[str, Any], is_ascii: bool) -> None:
    read = model_request.decode(json.dumps(sent, ensure_ascii=is_ascii).encode())
    assert read == sent
    assert json.loads(model_request.encode(read)) == sent


@given(bodies, st.integers(1, 40), st.integers(2, 9))
def test_parts_are_counted_outside_of_strings_alone(sent: dict[str, Any], most: int, step: int) -> None:
    """However the steps fall in which they are counted."""
    raw = json.dumps(sent).encode()
    expected, in_string, escaped = 0, False, False
    for letter in raw.decode():
        if escaped:
            escaped = False
        elif letter == "\\" and in_string:
            escaped = True
        elif letter == '"':
            in_string = not in_string
        else:
            expected += letter in ",[{" and not in_string
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_request, "MOST_PARTS", most)
        patch.setattr(model_request, "STEP_BYTES", step)
        if expected <= most:
            assert model_request.decode(raw) == sent
        else:
            with pytest.raises(GatewayRefusal) as refused:
                model_request.decode(raw)
            assert (refused.value.status, refused.value.reason) == (413, "too_large")


def test_as_many_parts_as_may_be_and_one_more() -> None:
    assert len(model_request.decode(body(MOST_PARTS))["messages"][0]["a"]) == MOST_PARTS - 3
    with pytest.raises(GatewayRefusal, match="too many parts"):
        model_request.decode(body(MOST_PARTS + 1))


def test_text_has_as_many_commas_as_it_likes() -> None:
    code = 'f(a, b, [c, {"d": "\\n"}]);\n' * 60_000
    assert model_request.decode(json.dumps({"system": code}).encode()) == {"system": code}


def test_one_message_may_be_as_large_as_one_step_allows_and_many_may_be_larger() -> None:
    fits = "x" * (PIECE_BYTES - 2)
    assert len(model_request.decode(json.dumps({"messages": [fits, fits]}).encode())["messages"]) == 2
    with pytest.raises(GatewayRefusal, match="one message is larger than 8 MB"):
        model_request.decode(json.dumps({"messages": [fits + "x"]}).encode())


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"1", b"{", b'{"a":NaN}', b'{"messages":[1,]}', b"\xff", b'{"a":"\\ud800"}']
)
def test_what_is_no_object_of_json_is_refused(raw: bytes) -> None:
    with pytest.raises(GatewayRefusal) as refused:
        model_request.decode(raw)
    assert (refused.value.status, refused.value.reason) == (400, "malformed")
