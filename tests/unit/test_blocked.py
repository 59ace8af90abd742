"""The log of refused hosts, which the agent may have written itself."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from sandbox import blocked
from sandbox.blocked import Blocked


def line(host: object, port: object = "443", at: object = 10.0) -> bytes:
    return json.dumps({"host": host, "port": port, "at": at}).encode() + b"\n"


def test_hosts_are_counted_the_most_asked_for_first() -> None:
    log = line("a.example") + line("B.example.") + line("b.example") + line("a.example", "22")
    assert blocked.counted(log, 0) == [
        Blocked("b.example", 443, 2),
        Blocked("a.example", 22, 1),
        Blocked("a.example", 443, 1),
    ]


def test_what_an_earlier_turn_asked_for_is_not_this_ones() -> None:
    assert blocked.counted(line("a.example", at=4.9) + line("b.example", at=5.0), 5.0) == [Blocked("b.example", 443, 1)]


def test_what_is_no_host_is_left_out() -> None:
    bad = ["`x`", "a b", "[a](b)", "x" * 300, "", None, 7.5, "a\nb", "@org/team", "http://a"]
    log = b"".join(map(line, bad)) + b"no json\n[]\n" + line("a", "0") + line("a", "x") + line("a", at="nan")
    assert [one.host for one in blocked.counted(log, 0)] == ["7.5", "none"]


def test_a_torrent_is_bounded() -> None:
    log = b"".join(line(f"h{n}.example") for n in range(1000))
    assert len(blocked.counted(log, 0)) == blocked.MOST_HOSTS


@given(st.binary(max_size=300))
def test_anything_can_be_read(log: bytes) -> None:
    assert all(one.count for one in blocked.counted(log, 0))
