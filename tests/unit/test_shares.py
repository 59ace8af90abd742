"""How a room is divided: nobody gets more than they claim, and nothing lies idle while somebody claims more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent import material
from bot.agent.material import RoomClaim

CLAIMS = st.dictionaries(
    st.text(max_size=3), st.builds(RoomClaim, st.integers(0, 10_000), st.integers(1, 5)), max_size=6
)


@pytest.mark.parametrize(
    ("room", "claims", "given_out"),
    [
        (100, {}, {}),
        (100, {"a": RoomClaim(10), "b": RoomClaim(500)}, {"a": 10, "b": 90}),
        (100, {"a": RoomClaim(500), "b": RoomClaim(500)}, {"a": 50, "b": 50}),
        (100, {"a": RoomClaim(500, 3), "b": RoomClaim(500, 1)}, {"a": 75, "b": 25}),
        (90, {"a": RoomClaim(20, 1), "b": RoomClaim(500, 1), "c": RoomClaim(30, 1)}, {"a": 20, "b": 40, "c": 30}),
        (-5, {"a": RoomClaim(20), "b": RoomClaim(0)}, {"a": 0, "b": 0}),
    ],
)
def test_the_room_is_divided(room: int, claims: dict[str, RoomClaim], given_out: dict[str, int]) -> None:
    assert material.allot(room, claims) == given_out


@given(st.integers(-10, 20_000), CLAIMS)
def test_it_is_fair(room: int, claims: dict[str, RoomClaim]) -> None:
    got = material.allot(room, claims)
    assert got.keys() == claims.keys()
    assert all(0 <= got[name] <= claim.size for name, claim in claims.items())
    assert sum(got.values()) <= max(0, room)
    short = [name for name, claim in claims.items() if got[name] < claim.size]
    if short:
        assert sum(got.values()) > max(0, room) - len(claims), "all of it, but for what rounding leaves"
        most = max(got[name] / claims[name].weight for name in claims)
        assert all(got[name] / claims[name].weight >= most - 1 for name in short), (
            "who has less than asked has the most"
        )


@given(st.text(max_size=200), st.integers(20, 60))
def test_what_is_shortened_fits_and_says_so(text: str, room: int) -> None:
    for shorten, at in ((material.beginning, -1), (material.ending, 0)):
        found = shorten(text, room)
        assert material.size(found) <= room
        assert found.splitlines()[at] == material.CUT
