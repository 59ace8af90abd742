"""The outbound door against a GitHub that loses answers: nothing twice."""

from __future__ import annotations

import asyncio
import html
import re
import urllib.parse
from collections.abc import Awaitable, Callable

import pytest

from bot.errors import GitHubUnavailable, NotFound
from bot.github.types import CheckOutput
from bot.outbound import TextKind, neutralise
from bot.simulation.github.faults import Fault
from tests.github_client.bench import BODY, CREATE_COMMENT, MARKER, Bench


@pytest.mark.acceptance("C02")
@pytest.mark.parametrize("kind", ["lose", "fail_after", "truncate"])
async def test_a_comment_whose_answer_was_lost_is_adopted(bench: Bench, kind: str) -> None:
    bench.github.faults.add(Fault(CREATE_COMMENT, kind))  # type: ignore[arg-type]
    made = (await bench.outbound.comment(bench.thread, BODY, MARKER)).id
    assert bench.comments == [BODY]
    assert bench.issue.comments[0].id == made
    assert (await bench.outbound.comment(bench.thread, BODY, MARKER)).id == made
    assert bench.sent("POST /repos/octo/calc/issues/1/comments") == 1


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize("kind", ["reset", "fail"])
async def test_a_comment_that_was_not_made_is_made(bench: Bench, kind: str) -> None:
    bench.github.faults.add(Fault(CREATE_COMMENT, kind))  # type: ignore[arg-type]
    await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert bench.comments == [BODY]


@pytest.mark.acceptance("C02")
async def test_a_comment_lost_by_a_process_that_died_is_adopted(bench: Bench) -> None:
    """The answer and the read-back are lost; the next attempt finds the comment."""
    bench.github.faults.add(Fault(CREATE_COMMENT, "lose"))
    bench.github.faults.add(Fault("GET /repos/*/comments", "fail", times=3, skip=1))
    with pytest.raises(GitHubUnavailable):
        await bench.outbound.comment(bench.thread, BODY, MARKER)
    await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert bench.comments == [BODY]


def _pull(bench: Bench, *, draft: bool = True) -> Awaitable[object]:
    return bench.outbound.open_pull(
        bench.thread, title="Fix @x", body="Closes #1, fixes #2", head="forgehand/1-abcd1234", base="main", draft=draft
    )


@pytest.fixture
def branch(bench: Bench) -> None:
    repo = bench.github.state.repos[bench.repo.id]
    bench.github.commit(repo, "forgehand/1-abcd1234", {"a.py": "x = 2\n"})


@pytest.mark.acceptance("C02")
@pytest.mark.usefixtures("branch")
@pytest.mark.parametrize("kind", ["lose", "fail_after", "reset", "fail"])
async def test_one_pull_request_whatever_happens(bench: Bench, kind: str) -> None:
    bench.github.faults.add(Fault("POST /repos/*/pulls", kind))  # type: ignore[arg-type]
    first = await _pull(bench)
    assert await _pull(bench) == first
    assert len(bench.github.state.repos[bench.repo.id].pulls) == 1


@pytest.mark.acceptance("D09")
@pytest.mark.usefixtures("branch")
async def test_a_pull_request_closes_its_own_issue_only(bench: Bench) -> None:
    await _pull(bench)
    pull = await bench.at.pull_by_head(bench.repo, "forgehand/1-abcd1234")
    assert pull is not None
    assert (pull.title, pull.body, pull.draft) == ("Fix @ x", "Closes #1, fixes #<!-- -->2", True)


@pytest.mark.usefixtures("branch")
async def test_where_drafts_are_not_to_be_had(bench: Bench) -> None:
    refusal = '{"message": "Draft pull requests are not supported in this repository."}'
    bench.github.faults.add(Fault("POST /repos/*/pulls", "fail", status=422, body=refusal))
    await _pull(bench)
    pull = await bench.at.pull_by_head(bench.repo, "forgehand/1-abcd1234")
    assert pull is not None
    assert not pull.draft


@pytest.mark.acceptance("C07")
async def test_a_deleted_comment_is_not_found(bench: Bench) -> None:
    made = (await bench.outbound.comment(bench.thread, BODY, MARKER)).id
    await bench.outbound.edit_comment(bench.thread, made, BODY.replace("queued", "running"))
    bench.github.delete_comment(bench.issue.comments[0])
    with pytest.raises(NotFound):
        await bench.outbound.edit_comment(bench.thread, made, BODY)


async def test_reactions_are_one(bench: Bench) -> None:
    comment = bench.github.comment(bench.issue, "/claude fix", by="alice")
    bench.github.faults.add(Fault("POST /repos/*/reactions", "lose"))
    await bench.outbound.react(bench.thread, comment.id, "eyes")
    await bench.outbound.react(bench.thread, None, "eyes")
    assert len(comment.reactions) == 1


@pytest.mark.acceptance("C02")
async def test_one_check_run(bench: Bench) -> None:
    sha = await bench.at.branch_sha(bench.repo, "main")
    assert sha
    bench.github.faults.add(Fault("POST /repos/*/check-runs", "lose"))

    async def say(output: CheckOutput) -> int:
        return await bench.outbound.check(bench.thread, sha=sha, name="Forgehand", external_id="t1", output=output)

    first = await say(CheckOutput("Working", "…"))
    assert await say(CheckOutput("Done", "ok", "success")) == first
    run = await bench.at.check_run(bench.repo, sha, "Forgehand", "t1")
    assert run is not None
    assert (run.status, run.conclusion) == ("completed", "success")


async def test_changes_are_made_one_at_a_time(bench: Bench) -> None:
    hold = bench.github.faults.add(Fault("POST /repos/*/reactions", "hold"))
    first = asyncio.create_task(bench.outbound.react(bench.thread, None, "eyes"))
    async with asyncio.timeout(10):
        await hold.reached.wait()
    second = asyncio.create_task(bench.outbound.react(bench.thread, None, "rocket"))
    assert (await bench.at.issue(bench.repo, bench.issue.number)).title == "Broken"
    assert bench.sent("POST /repos") == 1
    hold.release.set()
    await asyncio.gather(first, second)
    assert bench.sent("POST /repos") == 2


@pytest.mark.acceptance("D11")
@pytest.mark.parametrize("made", [neutralise.inert, neutralise.block, neutralise.whole_plain, str])
@pytest.mark.parametrize("value", ["hook-1$x@team#42/!pw", "5;#6kTa6$2/n6Y_8", "a@b;#1%41<pass>", "key=!r+[x](z)#9"])
async def test_what_makes_a_text_harmless_lets_no_secret_through(
    bench: Bench, value: str, made: Callable[[str], str]
) -> None:
    """A sign that is put between its letters, or one that is taken out there, and nobody sees on the page."""
    bench.redactor.register(value)
    forms = (value, "\u200b".join(value), "\u2060".join(value), f"{value[:8]}\n{value[8:]}")
    for number, form in enumerate(forms):
        await bench.outbound.comment(bench.thread, f"so {made(f'a {form} b')} it is", f"{MARKER}{number}")
        shown = html.unescape(re.sub("<!--.*?-->", "", bench.comments[-1]))
        assert "[redacted]" in shown
        assert value not in "".join(shown.split()) and value not in urllib.parse.unquote(shown)


async def test_the_delivery_log(bench: Bench) -> None:
    page = await bench.app.deliveries()
    assert page.items == ()
    assert page.next_cursor is None


@pytest.mark.acceptance("D12")
@pytest.mark.parametrize("kind", list(TextKind))
def test_each_kind_has_its_limit(bench: Bench, kind: TextKind) -> None:
    limit = {TextKind.TITLE: 256, TextKind.CHECK: 65_535}.get(kind, 65_536)
    fill: list[Callable[[], str]] = [
        lambda: "@bob " * 40_000,
        lambda: "word " * 40_000,
        lambda: "x" * 200_000,
        lambda: "line with 😀\n" * 20_000,
        lambda: "```\n" + "code\n" * 40_000,
    ]
    for make in fill:
        out = bench.outbound.text(kind, make())
        assert 0 < len(out.encode("utf-16-le")) // 2 <= limit
