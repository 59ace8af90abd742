from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.following import LineCutter


@pytest.mark.acceptance("D03")
@settings(deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=30), st.data())
def test_any_split_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    whole = [line.replace(b"\n", b"") for line in lines]
    stream = b"".join(line + b"\n" for line in whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    cutter = LineCutter(100)
    found = [
        line
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for line in cutter.feed(stream[start:end])
    ]
    assert [line.data for line in found] == whole
    assert [line.end - 100 for line in found] == [
        sum(len(one) + 1 for one in whole[: n + 1]) for n in range(len(whole))
    ]
    assert cutter.finish() == []


def test_a_last_line_without_newline_is_kept_until_the_end() -> None:
    cutter = LineCutter(0)
    assert [line.data for line in cutter.feed(b"one\ntw")] == [b"one"]
    (last,) = cutter.finish()
    assert (last.data, last.end) == (b"tw", 6)


@pytest.mark.acceptance("D02")
@pytest.mark.parametrize("size", [(64 << 10) + step for step in (-1, 0, 1)] + [(1 << 20) + step for step in (-1, 0, 1)])
def test_no_size_is_special(size: int) -> None:
    cutter = LineCutter(0)
    line = b"x" * size + b"\n"
    found = [one for start in range(0, len(line), 4096) for one in cutter.feed(line[start : start + 4096])]
    assert [len(one.data or b"") for one in found] == [size]


@pytest.mark.acceptance("D02")
def test_a_line_past_the_cap_is_left_out_and_the_next_is_not() -> None:
    cutter = LineCutter(0, cap=1000)
    found = [one for _ in range(50) for one in cutter.feed(b"x" * 100)]
    assert found == []
    assert cutter._held == 5000
    assert cutter._pieces == []
    found = cutter.feed(b"x\nnext\n")
    assert [(one.data, one.end) for one in found] == [(None, 5002), (b"next", 5007)]


def test_long_lines_are_joined_once() -> None:
    """20 MB in small pieces takes a moment, not the minute that `rest + chunk` takes."""
    cutter = LineCutter(0)
    piece = b"x" * 2048
    started = time.perf_counter()
    for _ in range(10_000):
        cutter.feed(piece)
    assert time.perf_counter() - started < 5
    assert len(cutter.feed(b"\n")[0].data or b"") == 20_480_000
