"""How often GitHub is asked what somebody may see: each minute about one person, less often about each of many."""

from __future__ import annotations

from bot.models import Permission
from bot.web.pages.access import EACH_SECONDS, HOLDS_SECONDS, LONGEST_SECONDS, VisitorAccess
from bot.web.pages.visitors import Visitor
from tests.github_client.bench import Bench

ASKED = "GET /repos/octo/calc/collaborators/"
MANY = 40


def people(bench: Bench, count: int) -> list[Visitor]:
    known = [bench.github.user(f"reader-{number}") for number in range(count)]
    return [Visitor(one.id, one.login, 0.0, "", "") for one in known]


async def look(bench: Bench, access: VisitorAccess, who: list[Visitor], after: float) -> int:
    """How many questions it took."""
    bench.clock.now += after
    before = bench.sent(ASKED)
    for one in who:
        assert await access.permission(one, (bench.repo, bench.thread.installation)) is Permission.READ
    return bench.sent(ASKED) - before


async def test_an_answer_holds_longer_where_many_watch(bench: Bench) -> None:
    bench.issue.repo.private = False
    access, [alone, *others] = VisitorAccess(bench.app, bench.clock), people(bench, MANY)
    assert [await look(bench, access, [alone], after) for after in (0.0, HOLDS_SECONDS - 1, 2.0)] == [1, 0, 1]
    assert await look(bench, access, others, 0.0) == MANY - 1
    assert await look(bench, access, [alone, *others], EACH_SECONDS * MANY - 1) == 0
    access.doubt(alone.id)
    assert await look(bench, access, [alone, *others], 0.0) == 1, "what is in doubt is asked at once, also then"
    assert await look(bench, access, [alone, *others], 2.0) == MANY - 1
    assert await look(bench, access, [alone], LONGEST_SECONDS + 1) == 1
    assert await look(bench, access, [alone], HOLDS_SECONDS + 1) == 1, "those who have gone count no more"
