"""Pull requests from forks over the wire: read and worked on as nobody's code, and never a push into the repository."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.anthropic.script import Step
from bot.simulation.github import gitstore
from bot.simulation.github.faults import Fault
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Comment, Pull, Review
from tests.world import World, ways_out
from tests.world.command_line import forgehand
from tests.world.visitor import visitor

CODE = "def half(n):\n    return n / 0\n\n\ndef twice(n):\n    return n + n\n"
SETUP = "touch /tmp/was-set-up"
LOOK = Call("Bash", {"command": "ls /tmp; cat calc.py; env", "description": "Look"})
REACH = Call("Bash", {"command": ways_out.asking("allowed.example.invalid", "more.example.invalid")})
MEND = Call("Bash", {"command": "sed -i 's|n / 0|n / 2|' calc.py", "description": "Mend"})
BESIDE = Call("Bash", {"command": "sed -i 's|n / 0|n / 2|' calc.py; echo new > more.py", "description": "Mend"})
ELSEWHERE = Call("Bash", {"command": "echo '# more' >> README.md", "description": "Write"})
DONE = Say("Halving divides by two now.")


@dataclass
class Fork:
    repo: Repository
    pull: Pull

    @property
    def sha(self) -> str:
        return self.pull.head_sha


def forked(world: World, files: Mapping[str, str] | None = None, branch: str = "feature") -> Fork:
    """A pull request of somebody who may not write here, from a copy of the repository of their own."""
    repo = world.github.fork(world.repo, "mallory")
    world.github.commit(repo, branch, {"calc.py": CODE, **(files or {})}, by="mallory")
    return Fork(repo, world.github.open_pull(world.repo, head=f"mallory:{branch}", by="mallory", title="Halves"))


def refs(world: World) -> dict[str, str]:
    """All of the repository that is ours to push to."""
    found = gitstore.refs(world.repo.path)
    return {name: sha for name, sha in found.items() if not name.startswith("pull/")}


def ours(world: World, pull: Pull) -> list[Review]:
    return [one for one in pull.reviews if one.author is world.app.bot]


def seen(world: World) -> str:
    """What the agent's tools told it."""
    return "\n".join(result.text for one in world.model.requests for result in one.tool_results)


def patch_in(world: World, pull: Pull) -> Comment:
    [found] = [one for one in world.replies(pull) if "forgehand:patch=" in one.body]
    return found


def works(*steps: Step) -> Script:
    return Script(list(steps), after=DONE)


async def test_a_question_on_a_fork_is_answered_by_the_base_s_rules_without_setup_and_without_a_network(
    world: World,
) -> None:
    files = {".github/forgehand.yml": f"setup:\n  - {SETUP}\negress: [more.example.invalid]\n", "CLAUDE.md": "Base."}
    world.github.commit(world.repo, "main", files, by="alice")
    world.model.default(works(LOOK, REACH, Say("It halves.")))
    async with world.bot(FORGEHAND_EGRESS="allowed.example.invalid"):
        fork = forked(world, {"CLAUDE.md": "Fork's.", ".github/forgehand.yml": "nonsense: 1\n"})
        before = refs(world)
        world.say("/claude ask what does half do?", on=fork.pull)
        assert await world.outcome(on=fork.pull) == "answered", world.replies(fork.pull)[0].body
    assert "return n / 0" in seen(world) and "was-set-up" not in seen(world)
    system = world.model.requests[0].system
    assert "Base." in system and "Fork's." not in system
    assert "allowed.example.invalid 403" in seen(world), "what all may reach is closed to a fork"
    assert "more.example.invalid 403" in seen(world), "and what the repository may reach as well"
    assert refs(world) == before


@pytest.mark.acceptance("B08")
async def test_work_on_a_fork_becomes_suggestions_and_a_patch_and_nothing_is_pushed(
    world: World, tmp_path: Path
) -> None:
    config = {".github/forgehand.yml": f"setup:\n  - {SETUP}\nchecks:\n  - touch /tmp/was-checked\n"}
    world.github.commit(world.repo, "main", config, by="alice")
    world.model.default(works(MEND, LOOK))
    async with world.bot():
        fork = forked(world)
        before = refs(world)
        world.say("/claude fix the division", on=fork.pull)
        assert await world.outcome(on=fork.pull) == "reviewed", world.replies(fork.pull)[0].body
        assert refs(world) == before, "no branch and no rescue ref"
    [review] = ours(world, fork.pull)
    assert review.state == "COMMENTED" and review.commit_id == fork.sha
    [line] = review.comments
    assert (line.path, line.line, line.start_line) == ("calc.py", 2, None)
    assert line.body == "```suggestion\n    return n / 2\n```"
    assert "was-set-up" not in seen(world) and "was-checked" not in seen(world)
    live = world.replies(fork.pull)[0].body
    assert "the setup commands, which run on a fork's code only once" in live
    assert "### 🩹 Suggested the changes" in live and "Verified" not in live
    assert f"/claude approve {fork.sha[:12]}" in live and "run again" not in live
    mended = applied(tmp_path, fork, patch_in(world, fork.pull).body)
    assert mended.read_text() == CODE.replace("n / 0", "n / 2")


async def test_words_at_a_line_are_answered_there_as_work_on_a_fork_and_not_as_a_review(world: World) -> None:
    world.model.default(works(MEND))
    async with world.bot():
        fork = forked(world)
        lines = [("calc.py", 2, "It divides by zero"), ("calc.py", 5, "And this?")]
        review = world.github.review(fork.pull, "/claude fix this", by="alice", lines=lines)
        assert await world.outcome(on=fork.pull) == "reviewed", world.replies(fork.pull)[0].body
    said = [one for mine in ours(world, fork.pull) for one in mine.comments if one.reply_to in review.comments]
    assert len(said) == 2 and all("**🩹 Suggested the changes**" in one.body for one in said)
    assert "Reviewed" not in said[0].body


async def test_what_lies_beside_the_diff_is_in_the_patch_which_clicks_are_not_in_the_way_of(
    world: World, tmp_path: Path
) -> None:
    world.model.default(works(BESIDE))
    async with world.bot():
        fork = forked(world)
        world.say("/claude fix the division", on=fork.pull)
        assert await world.outcome(on=fork.pull) == "reviewed", world.replies(fork.pull)[0].body
        [review] = ours(world, fork.pull)
        assert len(review.comments) == 1 and "1 more change is only in the patch" in review.body
        assert "1 of 2 changes" in world.replies(fork.pull)[0].body
        body = patch_in(world, fork.pull).body
        world.github.commit(fork.repo, "feature", {"calc.py": CODE.replace("n / 0", "n / 2")}, by="mallory")
    mended = applied(tmp_path, fork, body)
    assert mended.read_text() == CODE.replace("n / 0", "n / 2") and (mended.parent / "more.py").read_text() == "new\n"


@pytest.mark.acceptance("C02")
async def test_answers_that_are_lost_make_no_second_review_and_no_second_patch(world: World) -> None:
    world.model.default(works(MEND))
    async with world.bot():
        fork = forked(world)
        world.github.faults.add(Fault(match="POST /repos/*/pulls/*/reviews", kind="lose"))
        world.github.faults.add(Fault(match="POST /repos/*/issues/*/comments", kind="lose", times=2))
        world.say("/claude fix the division", on=fork.pull)
        assert await world.outcome(on=fork.pull) == "reviewed", world.replies(fork.pull)[0].body
    assert len(ours(world, fork.pull)) == 1 and patch_in(world, fork.pull)


async def test_the_next_turn_goes_on_from_work_that_could_not_be_pushed(world: World, tmp_path: Path) -> None:
    world.model.default(works(ELSEWHERE))
    async with world.bot():
        fork = forked(world)
        world.say("/claude write it down", on=fork.pull)
        assert await world.outcome(on=fork.pull) == "answered", world.replies(fork.pull)[0].body
        assert not ours(world, fork.pull), "nothing of it lies at lines that the diff shows"
        world.model.default(works(MEND))
        world.say("/claude and fix the division", on=fork.pull)
        assert await world.outcome(2, on=fork.pull) == "reviewed", world.replies(fork.pull)[-1].body
    *_, last = [one for one in world.replies(fork.pull) if "forgehand:patch=" in one.body]
    mended = applied(tmp_path, fork, last.body)
    assert mended.read_text() == CODE.replace("n / 0", "n / 2")
    assert "# more" in (mended.parent / "README.md").read_text(), "the later patch has all of it"
    assert "/claude approve" not in world.replies(fork.pull)[0].body, "what is offered is the later work"


@pytest.mark.parametrize("may", ["write", "read"])
async def test_where_the_app_is_installed_on_the_fork_its_branch_gets_the_work_of_who_may_write_there(
    world: World, may: str
) -> None:
    world.model.default(works(MEND))
    async with world.bot(FORGEHAND_ACCOUNTS="octo-org,mallory"):
        fork = forked(world)
        world.github.install(world.app, repos=[fork.repo])
        fork.repo.grant("alice", may)
        before, sha = refs(world), fork.sha
        world.say("/claude fix the division", on=fork.pull)
        expected = "pushed" if may == "write" else "reviewed"
        assert await world.outcome(on=fork.pull) == expected, world.replies(fork.pull)[0].body
        assert refs(world) == before
    head = fork.repo.branch_sha("feature")
    if may == "read":
        assert head == sha
        return
    assert head is not None and head != sha and not ours(world, fork.pull)
    assert gitstore.git(fork.repo.path, "rev-parse", f"{head}^").decode().strip() == sha
    assert (fork.repo.file("feature", "calc.py") or b"").decode() == CODE.replace("n / 0", "n / 2")
    assert "Pushed to the fork's branch" in world.replies(fork.pull)[0].body


@pytest.mark.parametrize(("branch", "served"), [("feature", "octo-org"), ("main", "octo-org,mallory")])
async def test_an_account_that_is_not_served_and_a_fork_s_default_branch_are_not_pushed_to(
    world: World, branch: str, served: str
) -> None:
    world.model.default(works(MEND))
    async with world.bot(FORGEHAND_ACCOUNTS=served):
        fork = forked(world, branch=branch)
        world.github.install(world.app, repos=[fork.repo])
        fork.repo.grant("alice", "admin")
        sha = fork.sha
        world.say("/claude fix the division", on=fork.pull)
        assert await world.outcome(on=fork.pull) == "reviewed", world.replies(fork.pull)[0].body
    assert fork.repo.branch_sha(branch) == sha
    words = "which is the fork's default branch or protected"
    assert (words in world.replies(fork.pull)[0].body) == (branch == "main")


async def test_a_patch_that_has_no_room_in_a_comment_is_downloaded(world: World, tmp_path: Path) -> None:
    long = Call("Bash", {"command": "seq 1 9000 > numbers.txt", "description": "Count"})
    world.model.default(works(long))
    for login in ("rita", "eve"):
        world.github.user(login)
    world.repo.grant("rita", "read")
    async with world.bot() as service:
        fork = forked(world)
        world.say("/claude count", on=fork.pull)
        assert await world.outcome(on=fork.pull) == "answered", world.replies(fork.pull)[0].body
        page = f"/sessions/{world.states(fork.pull)[0]['session']}/patch/"
        async with visitor(world, service.url, "rita") as rita, visitor(world, service.url, "eve") as eve:
            there = await rita.get(f"{page}1")
            assert there.status_code == 200 and "attachment" in there.headers["content-disposition"]
            shown = await rita.get(page.removesuffix("/patch/"))
            assert f'href="{page}1" download' in shown.text
            assert (await rita.get(f"{page}2")).status_code == (await eve.get(f"{page}1")).status_code == 404
    body = patch_in(world, fork.pull).body
    assert "```diff" not in body and len(body) < 1_000
    [command] = re.findall(r"`forgehand (sessions patch [^`]+)`", body)
    told = await forgehand(world.environment, *command.split())
    assert told.code == 0 and told.out == there.text, told.text
    clone = tmp_path / "clone"
    run(tmp_path, "git", "clone", "--quiet", "--branch", "feature", str(fork.repo.path), str(clone))
    (clone / "forgehand.patch").write_text(told.out)
    run(clone, "git", "apply", "--3way", "forgehand.patch")
    assert (clone / "numbers.txt").read_text().endswith("\n9000\n")


def applied(folder: Path, fork: Fork, body: str) -> Path:
    """The patch as a person copies it out of the comment, applied by the very command that stands there."""
    [block] = re.findall(r"```diff\n(.*?)\n```\n", body, re.DOTALL)
    [command] = re.findall(r"```sh\n(.*?)\n```", body, re.DOTALL)
    clone = folder / "clone"
    run(folder, "git", "clone", "--quiet", "--branch", fork.pull.head, str(fork.repo.path), str(clone))
    (clone / "forgehand.patch").write_text(f"{block}\n")
    run(clone, "git", "-c", "user.name=mallory", "-c", "user.email=m@example.invalid", *command.split()[1:])
    return clone / "calc.py"


def run(folder: Path, *argv: str) -> str:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout
