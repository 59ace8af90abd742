"""Lists on the command line: headers, columns that line up, filters, and money without digits that nobody paid."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from bot.cli import table
from bot.cli.table import Column
from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.world import World
from tests.world.command_line import forgehand

COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("N", lambda row: str(row["n"]), right=True),
    Column("NOTE", lambda row: row["note"]),
    Column("WORDS", lambda row: row["words"]),
)


def test_columns_line_up_and_an_empty_one_is_left_out() -> None:
    rows = [
        {"name": "a", "n": 5, "note": "", "words": "one\ntwo\x1b[2J"},
        {"name": "long name", "n": 1234, "note": "", "words": ""},
    ]
    assert table.laid_out(rows, COLUMNS, None) == [
        "NAME          N  WORDS",
        "a             5  one two",
        "long name  1234",
    ]


def test_only_the_last_column_is_cut_to_the_terminal() -> None:
    rows = [{"name": "a" * 30, "n": 1, "note": "x", "words": "w" * 100}]
    header, line = table.laid_out(rows, COLUMNS, 64)
    assert len(header) <= 64 and len(line) <= 64
    assert line.startswith("a" * 30) and line.endswith("w…")
    narrow = table.laid_out(rows, COLUMNS, 10)[1]
    assert narrow.endswith(f"{'w' * (table.LEAST_LAST - 1)}…"), "it stays readable"


async def test_sessions_are_found_by_repository_person_state_and_time(world: World) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude look around")
        assert await world.outcome() == "no_change"

        async def found(*words: str) -> list[dict[str, object]]:
            ran = await forgehand(world.environment, "sessions", "list", *words, "--json")
            assert ran.code == 0, ran.text
            rows: list[dict[str, object]] = ran.json
            return rows

        [row] = await found()
        assert {"id", "repo", "number", "state", "outcome", "cost_usd", "requester"} <= row.keys()
        assert row["requester"] == "alice"
        for yes in (
            ["--repo", world.repo.full_name.upper()],
            ["--by", "Alice"],
            ["--state", "done"],
            ["--since", "1h"],
        ):
            assert await found(*yes) == [row]
        for no in (["--repo", "octo-org/none"], ["--by", "bob"], ["--state", "running"], ["--outcome", "failed"]):
            assert await found(*no) == []
        assert await found("--since", "2999-01-01") == []
        text = (await forgehand(world.environment, "sessions", "list")).out.splitlines()
        none = await forgehand(world.environment, "sessions", "list", "--by", "bob")
        wrong = await forgehand(world.environment, "sessions", "list", "--state", "asleep")
    assert text[0].split() == ["ID", "SINCE", "THREAD", "BY", "TURNS", "USD", "STATE"]
    assert re.fullmatch(rf"\w{{8}}  20.* UTC  {world.repo.full_name}#1  alice +1  0\.\d\d  no_change", text[1]), text
    assert none.out == "No session matches.\n"
    assert wrong.code == 2 and "--state takes one of queued, running, done" in wrong.err


async def test_deliveries_name_their_thread_and_leave_out_what_we_caused(world: World) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude look around")
        assert await world.outcome() == "no_change"
        listed = (await forgehand(world.environment, "deliveries", "list", "--json")).json
        noisy = (await forgehand(world.environment, "deliveries", "list", "--noise", "--json")).json
        header, first, *_ = (await forgehand(world.environment, "deliveries", "list", "--by", "alice")).out.splitlines()
        acted = (await forgehand(world.environment, "deliveries", "list", "--state", "acted", "--json")).json
        one = (await forgehand(world.environment, "deliveries", "list", "--limit", "1", "--noise", "--json")).json
    assert header.split() == ["WHEN", "THREAD", "BY", "EVENT", "STATE", "SESSION", "ID"]
    assert f"{world.repo.full_name}#1  alice  issue_comment.created  acted" in first
    ours = {row["guid"] for row in noisy if row["sender"] == f"{world.app.slug}[bot]"}
    assert ours and not ours & {row["guid"] for row in listed}, "the live comment and its edits"
    assert [row["sender"] for row in acted] == ["alice"] and len(one) == 1
    assert all(before["received_at"] >= after["received_at"] for before, after in pairwise(noisy))


async def test_money_in_json_has_six_decimals_at_most(world: World) -> None:
    world.model.default(Script([Call("Bash", {"command": "true"}), Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude look around")
        assert await world.outcome() == "no_change"
        told = [
            (await forgehand(world.environment, *words, "--json")).out
            for words in (["sessions", "list"], ["spend", "--by", "model"], ["spend", "--by", "kind"])
        ]
    money = [found for text in told for found in re.findall(r'usd": ([\d.e-]+)', text)]
    assert money and all(len(f"{float(one):.12f}".rstrip("0").partition(".")[2]) <= 6 for one in money), money
    assert json.loads(told[1])[0]["model"] == "claude-sonnet-5-5"
    assert [row["kind"] for row in json.loads(told[2])] == ["run"]


async def test_spend_of_a_period_and_a_repository(world: World) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude look around")
        assert await world.outcome() == "no_change"

        async def spent(*words: str) -> list[dict[str, object]]:
            rows: list[dict[str, object]] = (await forgehand(world.environment, "spend", *words, "--json")).json
            return rows

        assert len(await spent("--by", "account")) == 1
        assert len(await spent("--repo", world.repo.full_name)) == 1
        assert await spent("--repo", "octo-org/none") == []
        assert await spent("--until", "2026-01-01", "--since", "2025-01-01") == []
        text = (await forgehand(world.environment, "spend", "--by", "repo")).out.splitlines()
        wrong = await forgehand(world.environment, "spend", "--until", "soon")
    assert text[0].split() == ["REPO", "USD", "REQUESTS", "TOKENS"] and len(text) == 3
    assert text[1].startswith(world.repo.full_name) and text[2].endswith("in the last 30 days")
    assert wrong.code == 1 and "--until takes a day" in wrong.err


async def test_the_log_of_a_session_follows_its_agent_to_the_end(world: World) -> None:
    world.model.default(Script([Wait("on"), Say("All is well here.")]))
    async with world.bot():
        world.say("/claude look around")
        await world.model.reached("on", timeout=60)
        session = str(world.states()[0]["session"])
        before = await forgehand(world.environment, "sessions", "logs", session)
        assert before.code == 0 and "All is well" not in before.out, "without --follow it ends at once"
        world.model.release("on")
        followed = await forgehand(world.environment, "sessions", "logs", session, "--follow")
    assert "All is well here." in followed.out


async def test_triggers_are_tried_on_what_came_lately(world: World, tmp_path: Path) -> None:
    config = tmp_path / "forgehand.yml"
    config.write_text("triggers: {label: true, issue_opened: true, review_opened: true, ci_fix: true}\n", "utf-8")
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude look around")
        assert await world.outcome() == "no_change"
        for title in ("One", "Two"):
            world.github.open_issue(world.repo, title=title, by="alice")

        async def known() -> bool:
            rows = (await forgehand(world.environment, "deliveries", "list", "--json")).json
            return len([row for row in rows if (row["event"], row["action"]) == ("issues", "opened")]) == 2

        async with asyncio.timeout(30):
            while not await known():
                await world.github.idle()
        tried = ("config", "try", str(config), "--repo", world.repo.full_name)
        rows = {row["trigger"]: row for row in (await forgehand(world.environment, *tried, "--json")).json}
        text = (await forgehand(world.environment, *tried)).out
        nothing = await forgehand(world.environment, *tried[:-1], "octo-org/none")
    opened = rows["issue_opened"]
    assert (opened["at_most"], opened["kind"]) == (2, "run")
    assert opened["at_most_usd"] == pytest.approx(2 * opened["each_usd"]) and opened["each_usd"] > 0
    assert rows["review_opened"]["at_most"] == 0 and rows["review_opened"]["each_usd"] is None
    assert "Each number is the most" in text and "`ci_fix`: whether checks fail is not kept" in text
    assert "The ledger begins only" in text and "unknown" in text
    assert nothing.code == 1 and "nothing of octo-org/none" in nothing.err
