"""What an account has spent: for chosen days, beside its limits, and as a file that no spreadsheet carries out."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Sequence

import pytest

from bot.errors import UserError
from bot.models import SessionId
from bot.simulation.anthropic import Say, Script
from bot.store.spend_lines import SpendLine
from bot.web.pages import spend_csv, spending
from bot.web.pages.days import Days
from tests.world import World
from tests.world.visitor import visitor

NOW = 1_795_000_000.0  # 2026-11-18


async def test_days_are_chosen_and_stand_beside_the_limits(world: World) -> None:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    world.model.default(Script([Say("Nothing to do.")]))
    path = f"/installations/{world.installation.id}/spend"
    async with world.bot() as service:
        world.say("/claude look around")
        assert await world.outcome() == "no_change"
        async with visitor(world, service.url, "alice") as alice:
            assert [(await alice.get(one)).status_code for one in (path, f"{path}.csv")] == [404, 404]
        async with visitor(world, service.url, "olga") as olga:
            page = (await olga.get(path)).text
            for words in ("By day", "By repository", "By person", "By model", "By kind", "claude-sonnet-5-5"):
                assert words in page, words
            assert re.search(r"Today</span> <strong>\$0\.\d\d</strong> of \$50\.00", page)
            assert re.search(r"This month</span> <strong>\$0\.\d\d</strong> of \$500\.00", page)
            assert 'href="/?repo=octo-org%2Fshop"' in page and 'href="/?person=alice"' in page
            assert not re.search(r"\$\d+\.\d{3}", page), "whole cents"
            before = (await olga.get(f"{path}?from=2025-01-01&to=2025-01-31")).text
            assert "Nothing was spent." in before and "from 2025-01-01 to 2025-01-31" in before
            assert "in January 2025" in (await olga.get(f"{path}?month=2025-01")).text
            for wrong in ("month=soon", "from=2026-02-30", "from=2026-02-02&to=2026-02-01", "to=9999-12-31&from=1"):
                assert (await olga.get(f"{path}?{wrong}")).status_code == 422, wrong
            export = await olga.get(f"{path}.csv")
    assert export.headers["content-type"].startswith("text/csv")
    assert re.fullmatch(
        r'attachment; filename="forgehand-spend-octo-org-[\d-]+\.csv"', export.headers["content-disposition"]
    )
    [row] = list(csv.DictReader(io.StringIO(export.text)))
    assert (row["repository"], row["person"], row["thread"], row["kind"]) == ("octo-org/shop", "alice", "1", "run")
    assert float(row["model_usd"]) > 0 and row["session"] == world.states()[0]["session"]


async def test_a_long_export_is_written_beside_the_event_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """50,000 lines take a quarter of a second, in which nobody else would be answered."""
    write, threads = spend_csv.text, list[int]()

    def text(lines: Sequence[SpendLine]) -> str:
        threads.append(threading.get_ident())
        return write(lines)

    monkeypatch.setattr(spend_csv, "text", text)
    monkeypatch.setattr(spending, "FEW_LINES", 0)
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        world.say("/claude look around")
        assert await world.outcome() == "no_change"
        export = await olga.get(f"/installations/{world.installation.id}/spend.csv")
    assert "octo-org/shop" in export.text and len(threads) == 1
    assert threading.get_ident() not in threads


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "=cmd|' /C calc'!A0", "\uff1d1"]
)
def test_a_cell_that_a_spreadsheet_would_carry_out_is_text(text: str) -> None:
    line = SpendLine(20_000, text, text, 1, text, SessionId("a"), 1, text, text, 1, 1, 1, 1, 1, 0.5, 0.0, 0.0)
    [row] = list(csv.DictReader(io.StringIO(spend_csv.text([line]), newline="")))
    for name in ("account", "repository", "person", "kind", "model"):
        assert row[name] == f"'{text}"
    assert row["model_usd"] == "0.500000" and row["day"] == "2024-10-04"


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ({}, "2026-10-20", "2026-11-18"),
        ({"month": "2026-02"}, "2026-02-01", "2026-02-28"),
        ({"month": "2026-12"}, "2026-12-01", "2026-12-31"),
        ({"from": "2026-11-01"}, "2026-11-01", "2026-11-18"),
        ({"to": "2026-11-10"}, "2026-10-12", "2026-11-10"),
        ({"from": "2026-11-10", "to": "2026-11-10"}, "2026-11-10", "2026-11-10"),
    ],
)
def test_an_address_names_days(query: dict[str, str], first: str, last: str) -> None:
    found = Days.of(query, NOW)
    assert (str(found.first), str(found.last)) == (first, last)
    assert found.until - found.since == ((found.last - found.first).days + 1) * 86_400


@pytest.mark.parametrize("query", [{"month": "9999-12"}, {"from": "0001-01-01"}, {"to": "x"}, {"month": "2026-13"}])
def test_an_address_that_names_none_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        Days.of(query, NOW)
