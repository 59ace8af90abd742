"""Parts of a session's page that only compute: what an address asks for, and the timeline."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from bot.web.pages.conversation import ConversationEntry
from bot.web.pages.query import PAGE, TranscriptQuery, next_failed, page_of
from bot.web.pages.timeline import COLUMNS, Clock


def entry(seq: int, *, tool: str = "Bash", ok: bool | None = True) -> ConversationEntry:
    return ConversationEntry(f"e{seq}-0", (seq, 0), 1, float(seq), seq, "tool", tool=tool, ok=ok)


ALL = [entry(seq, ok=seq % 100 != 0) for seq in range(1, 1001)]


def asked(address: str) -> TranscriptQuery:
    return TranscriptQuery.of(QueryParams(address))


@pytest.mark.parametrize(
    ("address", "first", "last"),
    [
        ("", 901, 1000),
        ("before=e901-0", 801, 900),
        ("before=e31-0", 1, 30),
        ("before=e1-0", 1, 0),
        ("after=e30-0", 31, 130),
        ("after=e999-0", 1000, 1000),
        ("at=e500-0", 450, 549),
        ("at=e1-0", 1, 100),
        ("at=e1000-0", 901, 1000),
        ("at=e5000-3", 901, 1000),
        ("at=nonsense", 901, 1000),
    ],
)
def test_session_page_shows_the_part_that_its_address_names(address: str, first: int, last: int) -> None:
    page = page_of(ALL, asked(address))
    assert (page.first, page.last, page.total) == (first, last, 1000)
    assert [one.place[0] for one in page.entries] == list(range(first, last + 1))
    assert page.following == (ALL[last] if last < 1000 else None)


def test_session_page_reaches_every_entry_by_paging() -> None:
    seen: list[str] = []
    query = asked("")
    while page := page_of(ALL, query).entries:
        seen = [one.id for one in page] + seen
        query = asked(query.address(before=page[0].id).removeprefix("?"))
    assert seen == [one.id for one in ALL]


def test_session_page_leads_to_the_next_error_and_round() -> None:
    at, walked = "", []
    for _ in range(11):
        found = next_failed(ALL, at)
        assert found is not None
        at = found.id
        walked.append(found.place[0])
    assert walked == [*range(100, 1001, 100), 100]
    assert next_failed([entry(1)], "") is None


def test_session_page_keeps_its_filters_from_part_to_part() -> None:
    query = asked("find=a%26b&tool=Bash&only=errors&before=e5-0&open=all")
    assert query.address(after="e9-0") == "?find=a%26b&tool=Bash&only=errors&open=all&after=e9-0"
    assert query.here(opened=False) == "?find=a%26b&tool=Bash&only=errors&before=e5-0"
    assert not query.takes(entry(1)) and query.takes(entry(1, ok=False)) and not query.takes(entry(1, tool="Edit"))
    assert len(page_of(ALL, asked("")).entries) == PAGE


def test_session_page_clock_leaves_out_the_time_between_turns() -> None:
    clock = Clock({1: (1000.0, 60.0, 0.0), 2: (9000.0, 60.0, 60.0)}, 120.0)
    assert [clock.column(1000.0, 1), clock.column(1060.0, 1), clock.column(9000.0, 2)] == [0, 60, 60]
    assert clock.column(9060.0, 2) == COLUMNS - 1
    assert clock.column_of(5000.0) == 60, "between the turns: their seam"
    assert (clock.moment(30.0), clock.moment(90.0)) == (1030.0, 9030.0)
