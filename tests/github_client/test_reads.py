"""What the client reads of GitHub, as our own types."""

from __future__ import annotations

import asyncio

import pytest

from bot.errors import NotFound
from bot.models import Permission
from bot.simulation.github.faults import Fault
from tests.github_client.bench import BODY, MARKER, Bench


async def test_who_we_are(bench: Bench) -> None:
    who = await bench.app.identity()
    assert (who.slug, who.owner, who.bot_login) == ("forgehand", "octo", "forgehand[bot]")
    assert who.bot_id == bench.github.user("forgehand[bot]").id
    before = len(bench.github.calls)
    assert await bench.app.identity() is who
    assert len(bench.github.calls) == before


async def test_who_we_are_before_anybody_installed_it(bench: Bench) -> None:
    bench.github.uninstall(bench.installed)
    assert (await bench.app.identity()).bot_login == "forgehand[bot]"


async def test_who_we_are_is_known_while_github_keeps_one_account_waiting(bench: Bench) -> None:
    held = bench.github.faults.add(Fault("POST */access_tokens", "hold", times=None))
    async with asyncio.timeout(5):
        assert (await bench.app.identity()).bot_login == "forgehand[bot]"
    assert held.hits


async def test_reads(bench: Bench) -> None:
    at, repo = bench.at, bench.repo
    issue = await at.issue(repo, bench.issue.number)
    assert (issue.title, issue.body, issue.author.login, issue.is_pull) == ("Broken", "It *is*.", "alice", False)
    assert issue.body_text.strip() == "It is."
    assert await at.file(repo, ".github/forgehand.yml", "main") == b"model: m\n"
    assert await at.file(repo, "no/such", "main") is None
    assert await at.file(repo, "../../../user", "main") is None
    assert await at.file(repo, ".github", "main") is None
    assert await at.branch_sha(repo, "no/such") is None
    assert len(await at.branch_sha(repo, "main") or "") == 40
    assert (await at.repo("octo/calc")).default_branch == "main"
    assert await at.pull_by_head(repo, "main") is None
    with pytest.raises(NotFound):
        await at.issue(repo, 99)


async def test_permission(bench: Bench) -> None:
    bench.github.state.repos[bench.repo.id].grant("alice", "maintain")
    alice = bench.github.user("alice").id
    bench.github.user("eve")
    assert await bench.at.permission(bench.repo, "alice") == (alice, Permission.MAINTAIN)
    assert (await bench.at.permission(bench.repo, "eve"))[1] is Permission.NONE
    with pytest.raises(NotFound):
        await bench.at.permission(bench.repo, "nobody-of-that-name")


@pytest.mark.acceptance("B11")
async def test_the_newest_comments_of_a_long_thread(bench: Bench) -> None:
    for number in range(250):
        bench.github.comment(bench.issue, f"n{number}", by="alice")
    found = await bench.at.comments(bench.repo, bench.issue.number, 60)
    assert [comment.body for comment in found] == [f"n{number}" for number in range(190, 250)]
    assert len(await bench.at.comments(bench.repo, bench.issue.number, 1000)) == 250


async def test_a_comment_is_found_by_its_marker_and_author(bench: Bench) -> None:
    bench.github.comment(bench.issue, BODY, by="alice")
    bench.github.comment(bench.issue, BODY.replace("turn=1", "turn=10"), by="forgehand[bot]")
    bench.github.comment(bench.issue, f"> {BODY}", by="forgehand[bot]")
    me = (await bench.app.identity()).bot_id
    assert await bench.at.find_comment(bench.repo, bench.issue.number, MARKER, me) is None
    ours = bench.github.comment(bench.issue, BODY, by="forgehand[bot]")
    assert await bench.at.find_comment(bench.repo, bench.issue.number, MARKER, me) == (ours.id, BODY)
