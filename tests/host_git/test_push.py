"""One push: to one ref, never by force, adopted where its answer was lost, told apart where it was refused."""

from __future__ import annotations

import asyncio
import os

import pytest

from bot.errors import BotError, GitHubRefused, GitHubUnavailable, Unrecognised
from bot.git import remote
from bot.git.errors import (
    BadName,
    GitRefusal,
    PushRaced,
    PushRefused,
)
from bot.git.quarantine import Quarantine
from tests.host_git.bench import (
    BOT,
    REPO,
    Bench,
)
from tests.world.git_remote import git


async def test_a_push_makes_one_branch_and_moves_nothing_else(
    bench: Bench, base: str, quarantine: Quarantine, work: str
) -> None:
    result = await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)
    assert (result.sha, result.arrived_before) == (work, False)
    assert bench.remote_heads() == {"main": base, "forgehand/1-a": work}
    assert await remote.branch_sha(quarantine._dir, bench.access, "forgehand/1-a") == work
    assert await remote.branch_sha(quarantine._dir, bench.access, "forgehand/1") is None
    again = await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)
    assert again.arrived_before
    assert sum(r.is_push for r in bench.remote.requests) == 1


@pytest.mark.acceptance("E10")
async def test_a_rescue_ref_is_no_branch_and_no_other_ref_can_be_pushed(
    bench: Bench, base: str, quarantine: Quarantine, work: str
) -> None:
    ref = "refs/forgehand/rescue/abcd1234-1"
    assert not (await quarantine.push(bench.access, work, ref, expect=None)).arrived_before
    assert (await quarantine.push(bench.access, work, ref, expect=None)).arrived_before
    assert await remote.branch_sha(quarantine._dir, bench.access, ref) == work
    assert bench.remote_heads() == {"main": base}
    assert git(bench.remote.path("calc"), "rev-parse", ref) == work
    for bad in ("refs/heads/main", "refs/tags/v1", "refs/notes/x", "refs/forgehand/../heads/main", "refs/forgehand/"):
        with pytest.raises(BadName):
            await quarantine.push(bench.access, work, bad, expect=None)


async def test_a_push_from_a_shallow_mirror_of_a_moved_base_arrives(bench: Bench) -> None:
    for n in range(5):
        bench.commit({"a": str(n), f"n{n}": os.urandom(3000).hex()})
    bench.publish()
    base = await bench.cache.fetch(REPO, bench.access, "main", depth=1)
    bench.commit({"moved": "on"})
    bench.publish()
    async with bench.cache.quarantine(REPO) as q:
        tree = git(q._dir, "rev-parse", f"{base}^{{tree}}")
        commit = await q.commit(tree, [base], "work", BOT, 1)
        await q.push(bench.access, commit, "forgehand/2-b", expect=None)
    assert git(bench.remote.path("calc"), "rev-list", "--count", "forgehand/2-b") == "6"
    assert max(len(r.body) for r in bench.remote.requests if r.is_push) < 1500, "what the remote has is not sent again"
    git(bench.remote.path("calc"), "fsck", "--strict")


@pytest.mark.acceptance("C02")
@pytest.mark.parametrize("exists", [False, True])
async def test_a_push_whose_answer_was_lost_is_adopted(
    bench: Bench, base: str, quarantine: Quarantine, work: str, exists: bool
) -> None:
    if exists:
        bench.publish(f"{base}:refs/heads/forgehand/1-a")
    bench.remote.lose = 1
    result = await quarantine.push(bench.access, work, "forgehand/1-a", expect=base if exists else None)
    assert (result.sha, result.arrived_before) == (work, True)
    assert bench.remote_heads()["forgehand/1-a"] == work


@pytest.mark.acceptance("C02")
async def test_a_push_that_did_not_arrive_may_be_repeated(
    bench: Bench, base: str, quarantine: Quarantine, work: str
) -> None:
    bench.remote.break_off = 1
    with pytest.raises(GitHubUnavailable):
        await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)
    assert bench.remote_heads() == {"main": base}
    assert not (await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)).arrived_before


@pytest.mark.acceptance("C02")
async def test_a_branch_that_is_only_begun_is_known_by_what_is_made_with_it_or_neither_is(
    bench: Bench, base: str, quarantine: Quarantine, work: str
) -> None:
    other = bench.commit({"other": "x"})
    bench.publish(f"{base}:refs/heads/theirs", f"{other}:refs/heads/moved")
    for name, stands in (("theirs", base), ("moved", other)):
        with pytest.raises(PushRaced) as raced:
            await quarantine.beginning(bench.access, name, base, mark=f"refs/forgehand/{name}", commit=work).run()
        assert raced.value.actual == stands
    assert await remote.branch_sha(quarantine._dir, bench.access, "refs/forgehand/moved") is None
    ours = quarantine.beginning(bench.access, "ours", base, mark="refs/forgehand/ours", commit=work)
    assert not await ours.has_been()
    bench.remote.lose = 1
    await ours.run()
    assert await ours.has_been() and bench.remote_heads()["ours"] == base


@pytest.mark.acceptance("E02")
async def test_a_branch_of_somebody_else_is_left_alone(
    bench: Bench, base: str, quarantine: Quarantine, work: str
) -> None:
    bench.publish(f"{base}:refs/heads/forgehand/1-a")
    with pytest.raises(PushRaced) as raced:
        await quarantine.push(bench.access, work, "forgehand/1-a", expect=None)
    assert raced.value.actual == base
    with pytest.raises(PushRaced):
        await quarantine.push(bench.access, work, "forgehand/none", expect=base)
    for taken in ("forgehand/1-a/x", "Forgehand/1-A", "forgehand"):
        with pytest.raises(PushRefused) as refused:
            await quarantine.push(bench.access, work, taken, expect=None)
        assert refused.value.kind is GitRefusal.NAME
    assert bench.remote_heads() == {"main": base, "forgehand/1-a": base}


@pytest.mark.acceptance("E04")
@pytest.mark.parametrize("expected", [False, True])
async def test_a_branch_that_moves_during_the_push_wins(
    bench: Bench, base: str, quarantine: Quarantine, work: str, expected: bool
) -> None:
    if expected:
        bench.publish(f"{base}:refs/heads/b")
    other = bench.commit({"z": "other"})
    bench.remote.hold = asyncio.Event()
    push = asyncio.create_task(quarantine.push(bench.access, work, "b", expect=base if expected else None))
    await asyncio.wait_for(bench.remote.arrived.wait(), 10)
    bench.publish(f"+{other}:refs/heads/b")
    bench.remote.hold.set()
    with pytest.raises(PushRaced) as raced:
        await push
    assert raced.value.actual == other == bench.remote_heads()["b"]


@pytest.mark.acceptance("E04")
async def test_nothing_is_ever_pushed_by_force(bench: Bench, base: str, quarantine: Quarantine, work: str) -> None:
    other = await quarantine.commit(git(bench.dev, "rev-parse", "HEAD^{tree}"), [base], "other", BOT, 5)
    await quarantine.push(bench.access, work, "b", expect=None)
    with pytest.raises(PushRefused) as refused:
        await quarantine.push(bench.access, other, "b", expect=work)
    assert refused.value.kind is GitRefusal.NON_FAST_FORWARD
    assert bench.remote_heads()["b"] == work
    for bad in ("-x", "a..b", "x/../y", "refs heads", "@", "x.lock", "a\nb", ""):
        with pytest.raises(BadName):
            await quarantine.push(bench.access, work, bad, expect=None)


REFUSALS = {
    GitRefusal.PROTECTED: "error: GH006: Protected branch update failed for refs/heads/b.",
    GitRefusal.RULES: "error: GH013: Repository rule violations found for refs/heads/b.\n\n- Changes must be reviewed.",
    GitRefusal.SECRET: "error: GH013: Repository rule violations found\n- Push cannot contain secrets",
    GitRefusal.WORKFLOW: "refusing to allow a GitHub App to create or update workflow `.github/workflows/x.yml`",
    GitRefusal.FILE_SIZE: (
        "error: GH001: Large files detected.\nerror: this exceeds GitHub's file size limit of 100.00 MB"
    ),
    GitRefusal.LFS: "error: GH008: Your push referenced at least 1 unknown Git LFS object:",
    GitRefusal.OTHER: "we do not like you\x1b[31m\x07",
}


@pytest.mark.acceptance("E03")
@pytest.mark.acceptance("E05")
@pytest.mark.parametrize("kind", list(REFUSALS))
async def test_refusals_are_told_apart_and_their_words_are_kept(
    bench: Bench, base: str, quarantine: Quarantine, work: str, kind: GitRefusal
) -> None:
    (bench.root / "words").write_text(REFUSALS[kind])
    bench.remote.hook("calc", f"cat '{bench.root}/words' >&2; exit 1")
    with pytest.raises(PushRefused) as refused:
        await quarantine.push(bench.access, work, "b", expect=None)
    kind_of_hook = GitRefusal.RULES if kind is GitRefusal.OTHER else kind
    assert refused.value.kind in (kind, kind_of_hook)
    assert REFUSALS[kind].splitlines()[-1].split("\x1b")[0] in refused.value.words
    assert "remote:" not in refused.value.words and refused.value.words.isprintable() is (
        "\n" not in refused.value.words
    )
    assert sum(r.is_push for r in bench.remote.requests) == 1
    assert "b" not in bench.remote_heads()


@pytest.mark.acceptance("C03")
async def test_a_rate_limit_of_git_itself_may_pass(bench: Bench) -> None:
    bench.remote.status, bench.remote.words = 403, "You have exceeded a secondary rate limit."
    with pytest.raises(GitHubUnavailable):
        await bench.cache.fetch(REPO, bench.access, "main")


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (500, GitHubUnavailable),
        (503, GitHubUnavailable),
        (429, GitHubUnavailable),
        (301, GitHubRefused),
        (401, Unrecognised),
        (403, GitHubRefused),
    ],
)
async def test_http_failures_are_told_apart(
    bench: Bench, base: str, quarantine: Quarantine, work: str, status: int, expected: type[BotError]
) -> None:
    bench.remote.status = status
    with pytest.raises(expected):
        await quarantine.push(bench.access, work, "b", expect=None)
    with pytest.raises(expected):
        await bench.cache.fetch(REPO, bench.access, "main")
    assert (bench.cache._root / f"{REPO}.git").is_dir(), "the remote's fault is not the mirror's"
