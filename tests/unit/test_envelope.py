"""The envelope of a payload is read from anything, or the anything is refused in one way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.web import bodies
from bot.web.bodies import Envelope, NotJson

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


def test_fields_of_a_comment() -> None:
    body = {
        "action": "created",
        "installation": {"id": 7, "node_id": "x"},
        "repository": {"id": 8, "name": "calc"},
        "issue": {"number": 9, "title": "broken"},
        "sender": {"login": "alice", "id": 1},
    }
    assert bodies.read_envelope(json.dumps(body).encode()) == Envelope("created", 7, 8, 9, "alice", repo_name="calc")


def test_number_of_a_pull_request() -> None:
    assert bodies.read_envelope(b'{"pull_request":{"number":4},"number":4}').number == 4
    assert bodies.read_envelope(b'{"number":5}').number == 5


@pytest.mark.acceptance("A10")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"1",
        b'"text"',
        b"payload=%7B%7D",
        b"{",
        b"{}{}",
        b'{"number":NaN}',
        b'{"a":Infinity}',
        b'\xef\xbb\xbf{"action":"x"}',
        '{"action":"x"}'.encode("utf-16"),
        b'{"action":"a\x00b"}',
        b'{"body":"\\ud800"}',
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"issue":' + b'{"a":' * 100_000,
        b"[" * 100_000,
    ],
)
def test_what_is_not_a_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(NotJson):
        bodies.read_envelope(body)


@pytest.mark.acceptance("A10")
def test_odd_values_are_passed_over() -> None:
    assert bodies.read_envelope(b'{"number":1' + b"0" * 400 + b',"sender":{"login":"alice"}}') == Envelope(
        sender="alice"
    )
    assert bodies.read_envelope(b'{"issue":{"number":9223372036854775808},"action":"x"}') == Envelope(action="x")
    assert bodies.read_envelope(b'{"action":"a","action":"b"}').action == "b"
    assert len(bodies.read_envelope(b'{"action":"' + b"a" * 5000 + b'"}').action or "") == 100


@pytest.mark.acceptance("A11")
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "action": anything,
            "number": anything,
            "installation": anything | st.fixed_dictionaries({"id": anything}),
            "repository": anything | st.fixed_dictionaries({"id": anything}),
            "issue": anything | st.fixed_dictionaries({"number": anything}),
            "pull_request": anything | st.fixed_dictionaries({"number": anything}),
            "sender": anything | st.fixed_dictionaries({"login": anything}),
        },
    )
)
def test_any_field_may_be_anything(payload: dict[str, Any]) -> None:
    try:
        seen = bodies.read_envelope(json.dumps(payload).encode())
    except NotJson:
        return
    for number in (seen.installation_id, seen.repo_id, seen.number):
        assert number is None or 0 <= number < 2**63


@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    try:
        bodies.read_envelope(body)
    except NotJson:
        return
