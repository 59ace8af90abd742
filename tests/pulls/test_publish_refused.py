"""Pulls, publishing: what GitHub refuses is told in its own words, with what to do; the work is kept; no second try."""

from __future__ import annotations

import pytest

from bot.simulation.github.gitstore import refs
from tests.world import World
from tests.world.pulls import does
from tests.world.visitor import visitor

SIGNATURES = ("- Commits must have verified signatures.", "  Found 1 violation:")


def posts(world: World) -> int:
    """How often a push was sent."""
    return sum(one.method == "POST" and one.path.endswith("git-receive-pack") for one in world.github.calls)


@pytest.mark.acceptance("E03")
@pytest.mark.parametrize(
    ("lines", "ruleset", "only", "advice"),
    [
        (("Changes must be made through a pull request.",), False, "", "choose other branch names with `branch`"),
        (
            ("- Cannot create ref due to creations being restricted.",),
            True,
            "",
            "choose other branch names with `branch`",
        ),
        (SIGNATURES, True, "signatures", "`commits: verified`"),
        (("Commits must be signed.",), False, "signatures", "`commits: verified`"),
    ],
    ids=["protected", "ruleset", "signatures", "signatures of a protected branch"],
)
async def test_pulls_a_rule_for_the_branch_leaves_the_work_on_a_ref_of_ours(
    world: World, lines: tuple[str, ...], ruleset: bool, only: str, advice: str
) -> None:
    world.github.protect(world.repo, "forgehand/*", *lines, ruleset=ruleset, only=only)
    world.model.default(does("echo x > a.txt"))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "refused"
    live = world.replies()[0].body
    assert lines[0] in live and advice in live, live
    [name] = refs(world.repo.path, "refs/forgehand/")
    assert f"git fetch origin refs/forgehand/{name}" in live
    assert world.repo.branches().keys() == {"main"} and not world.pulls()
    assert posts(world) == 2, "the branch once, the ref of ours once"


@pytest.mark.acceptance("E03")
async def test_pulls_what_push_protection_finds_stays_on_the_host_and_is_not_shown(world: World) -> None:
    secret = "acme-live-0123456789"
    world.repo.known_secrets = [secret]
    world.model.default(does(f"echo key={secret} > settings.txt"))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "refused"
    live = world.replies()[0].body
    assert "Push cannot contain secrets" in live and "settings.txt:1" in live and secret not in live
    assert not refs(world.repo.path, "refs/forgehand/") and posts(world) == 1
    [kept] = (world.root / "data" / "kept").iterdir()
    assert f"forgehand sessions pull {kept.name[:8]}" in live and f"git fetch {kept.name}" in live
    assert "Ask the person who runs it to send you that file" in live
    async with world.bot() as service, visitor(world, service.url, "alice") as alice:
        session = f"/sessions/{kept.name[:8]}"
        for path in ("changes", "changes?turn=all", "patch/1", "bundle/1"):
            answer = await alice.get(f"{session}/{path}")
            assert secret not in answer.text and answer.status_code == (200 if "changes" in path else 403), path
        assert "GitHub found a secret" in (await alice.get(f"{session}/changes")).text
        shared = await alice.send(f"{session}/share", days="7", confirmed="yes")
        assert shared.status_code == 422 and "cannot be shared" in shared.text


@pytest.mark.acceptance("E03")
async def test_pulls_a_file_that_is_too_large_for_the_remote_stays_on_the_host(world: World) -> None:
    world.repo.max_file_bytes = 1 << 20
    world.model.default(does("head -c 2000000 /dev/zero > big.bin"))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "refused"
    live = world.replies()[0].body
    assert "File big.bin is 1.91 MB" in live and "stored elsewhere" in live and posts(world) == 1
    assert list((world.root / "data" / "kept").iterdir()) and not refs(world.repo.path, "refs/forgehand/")


@pytest.mark.acceptance("E03")
async def test_pulls_words_of_a_remote_do_not_act(world: World) -> None:
    world.github.protect(world.repo, "forgehand/*", "@everyone ![x](https://evil.example/x.png) Fixes #1", ruleset=True)
    world.model.default(does("echo x > a.txt"))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "refused"
    shown = world.replies()[0].body
    assert "```text" in shown.partition("@everyone")[0], "in a block of code, which calls nobody"


@pytest.mark.acceptance("E05")
async def test_pulls_workflows_of_the_base_that_changed_since_do_not_stop_work_on_other_files(world: World) -> None:
    """The commit stands on the base as it was pinned; what was changed there since is no part of the push."""
    workflow = {".github/workflows/ci.yml": "on: push\n"}
    world.github.commit(world.repo, "main", workflow, by="alice")
    world.model.default(does("echo x > a.txt"))
    async with world.bot():
        world.say("/claude fix this")
        await world.github.changed(lambda: bool(world.model.requests), 30)
        world.github.commit(world.repo, "main", {".github/workflows/ci.yml": "on: pull_request\n"}, by="alice")
        assert await world.outcome() == "pull_request", world.replies()[0].body
