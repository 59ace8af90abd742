"""The declared checks: run on the commit that is published, where no agent was; what fails goes back to it, once."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot import verification
from bot.models import Step
from bot.sessions.checks import outputs
from bot.simulation.anthropic import Call, ModelRequest, Say, Script
from bot.simulation.github.gitstore import refs
from bot.store import environments, events, sessions
from bot.store.base import Store
from bot.store.records import Turn
from bot.store.rows import many
from bot.words import endings
from sandbox.local.folders import Base
from tests.command_line import forgehand
from tests.e2b_stand_in import E2BStandIn
from tests.e2b_world import e2b_spine
from tests.environment_world import until
from tests.world import World

CONFIG = ".github/forgehand.yml"
CHECK = "checks: ['test \"$(cat out.txt)\" = right']\n"
GIVEN_BACK = "the checks that this repository declares"


def does(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "Work"})


def writes(word: str, also: str = "true") -> Call:
    return does(f"echo {word} > out.txt; {also}")


def mends(first: str, second: str, also: str = "true") -> Script:
    """Another answer once it is told what has failed."""

    def answer(request: ModelRequest) -> Call | Say:
        told = GIVEN_BACK in str(request.messages)
        call = writes(second, also) if told else writes(first)
        done = any(one["input"].get("command") == call.input["command"] for one in request.tool_calls)
        return Say("Wrote it.") if done else call

    return Script([], after=answer)


@dataclass
class Place:
    """The world on one kind of environment."""

    world: World
    e2b: E2BStandIn | None

    def configure(self, text: str, **files: str) -> None:
        self.world.github.commit(self.world.repo, "main", {CONFIG: text, **files})

    async def turn(self) -> Turn:
        found = await self.last()
        assert found is not None
        return found

    async def last(self) -> Turn | None:
        store = await Store.open_reader(self.world.root / "data" / "state.db")
        try:
            found = await sessions.listing(store)
            return (await sessions.turns_of(store, found[0].id))[-1] if found else None
        finally:
            await store.close()

    async def checks(self) -> list[verification.Check]:
        return verification.load((await self.turn()).verified or ())

    def there(self) -> list[str]:
        """Environments that there are."""
        if self.e2b is not None:
            return [one.metadata["forgehand-key"] for one in self.e2b.live]
        return Base(self.world.root / "data" / "environments").environment_ids()

    async def nothing_left(self) -> None:
        """Of the environments for checks: neither they nor their rows."""

        async def gone() -> bool:
            store = await Store.open_reader(self.world.root / "data" / "state.db")
            try:
                rows = await environments.all_of_them(store)
            finally:
                await store.close()
            return not [one for one in [*self.there(), *rows] if one.endswith("-checks")]

        await until(gone, 20)

    async def billed(self) -> dict[str, bool]:
        """Machines that were paid for, and whether their end is known."""
        store = await Store.open_reader(self.world.root / "data" / "state.db")
        try:
            sql = "SELECT environment_id AS id, ended_at FROM machine_runs"
            rows = await store.read(lambda db: many(db, sql))
            return {row["id"]: row["ended_at"] is not None for row in rows}
        finally:
            await store.close()

    async def notes(self) -> list[str]:
        store = await Store.open_reader(self.world.root / "data" / "state.db")
        try:
            rows = await events.of_turn(store, (await self.turn()).key, 0, 10_000)
            return [json.loads(row.line)["note"] for row in rows if row.kind == "note"]
        finally:
            await store.close()


@asynccontextmanager
async def place(kind: str, root: Path, **changes: str) -> AsyncIterator[Place]:
    if kind == "e2b":
        async with e2b_spine(root, **changes) as (world, e2b):
            yield Place(world, e2b)
    else:
        async with World.running(root, **changes) as world:
            yield Place(world, None)


everywhere = pytest.mark.parametrize("kind", ["local", "e2b"])


@everywhere
async def test_checks_run_on_the_published_commit_in_an_environment_of_their_own(kind: str, tmp_path: Path) -> None:
    async with place(kind, tmp_path) as here:
        here.configure(
            "setup: ['echo set-up > made.txt']\n"
            "checks: ['cat made.txt out.txt; env; git rev-parse HEAD; git status --porcelain out.txt']\n"
        )
        here.world.model.default(Script([writes("right"), Say("Done.")]))
        async with here.world.bot():
            here.world.say("/claude fix this")
            assert await here.world.outcome() == "pull_request", here.world.replies()[0].body
        [pull] = here.world.pulls()
        [check] = await here.checks()
        turn = await here.turn()
        assert (check.where, check.exit_code, check.sha) == ("fresh", 0, turn.commit_sha)
        assert verification.all_passed(turn.verified, turn.commit_sha)
        assert here.world.repo.branch_sha(pull.head) == turn.commit_sha
        printed = outputs.path(here.world.root / "data", turn).read_text()
        assert "set-up\nright\n" in printed and f"\n{turn.commit_sha}\n" in printed
        assert "ANTHROPIC_API_KEY" not in printed
        for body in (here.world.replies()[0].body, pull.body or ""):
            assert f"on a clean checkout of {(turn.commit_sha or '')[:12]} in a fresh environment" in body, body
            assert "✓ `cat made.txt out.txt" in body
        assert "### Done, as the agent says" in (pull.body or "")
        await here.nothing_left()
        if here.e2b is not None:
            billed = await here.billed()
            assert billed.keys() == {f"{turn.session_id}-1", f"{turn.session_id}-1-checks"}
            assert billed[f"{turn.session_id}-1-checks"], "its end is known at once"


FAKES = (
    "mkdir -p __pycache__ .git/info .git/hooks; echo forged > __pycache__/verdict; echo forged > ignored.txt; "
    "echo ignored.txt >> .git/info/exclude; "
    "for d in $HOME/bin /tmp/bin $HOME/.local/bin; do mkdir -p $d; for one in judge python3; do "
    "printf '#!/bin/sh\\nexit 0\\n' > $d/$one; chmod +x $d/$one; done; done; "
    "echo 'export PATH=/tmp/bin:$PATH; test() { true; }' | tee -a $HOME/.bashrc $HOME/.profile > $HOME/.bash_profile; "
    "printf '#!/bin/sh\\necho right > out.txt\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; "
    "git config filter.x.smudge 'echo right'; echo 'out.txt filter=x' > .git/info/attributes; "
    "git config core.fsmonitor 'echo right > out.txt'; echo wrong > out.txt"
)


@everywhere
async def test_what_an_agent_leaves_in_its_environment_does_not_pass_a_check(kind: str, tmp_path: Path) -> None:
    """Ignored files, shims on the PATH, shell start-up files, hooks, filters: none of it is in the commit."""
    async with place(kind, tmp_path) as here:
        here.configure(
            "checks:\n  - 'test \"$(cat out.txt)\" = right'\n  - test -e __pycache__/verdict\n"
            "  - test -e ignored.txt\n  - judge\n  - python3 -c 'raise SystemExit(3)'\n"
        )
        here.world.model.default(Script([does(FAKES), Say("All checks pass."), Say("They pass.")]))
        async with here.world.bot():
            here.world.say("/claude fix this")
            assert await here.world.outcome() == "pull_request", here.world.replies()[0].body
        checks = await here.checks()
        assert [one.exit_code for one in checks] == [1, 1, 1, 127, 3]
        assert not verification.all_passed((await here.turn()).verified)
        assert "✗ `judge` exit 127" in here.world.replies()[0].body
        await here.nothing_left()


async def test_work_that_the_agent_takes_back_when_it_is_told_is_no_change(world: World) -> None:
    here = Place(world, None)
    here.configure(CHECK, **{"out.txt": "right\n"})
    world.model.default(mends("wrong", "right"))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "no_change", world.replies()[0].body
    assert await here.notes() == [endings.checks_go_back(1)]
    assert not list((world.root / "data" / "kept").glob("*"))


@everywhere
@pytest.mark.parametrize("second", ["right", "worse"])
async def test_failing_checks_are_mended_once_and_never_twice(kind: str, second: str, tmp_path: Path) -> None:
    async with place(kind, tmp_path) as here:
        here.configure(CHECK, **{"out.txt": "right\n"})
        here.world.model.default(mends("wrong", second, "echo more > more.txt"))
        async with here.world.bot():
            here.world.say("/claude fix this")
            assert await here.world.outcome() == "pull_request", here.world.replies()[0].body
        [check] = await here.checks()
        assert (check.exit_code, check.base_exit_code) == ((0, None) if second == "right" else (1, 0))
        told = [words for one in here.world.model.requests for words in one.spoken if GIVEN_BACK in words]
        assert told and "ended with exit code 1" in told[0] and "does not fail without your work" in told[0]
        assert sum(GIVEN_BACK in words for words in here.world.model.requests[-1].spoken) == 1
        live = here.world.replies()
        assert len(live) == 1 and "Some failed at first" in live[0].body
        assert ("✓" if second == "right" else "✗") in live[0].body
        assert (": not all checks pass" in live[0].body) is (second == "worse"), live[0].body
        assert ("✅ Opened" in live[0].body) is (second == "right")
        assert await here.notes() == [endings.checks_go_back(1)]
        [pull] = here.world.pulls()
        assert here.world.repo.file(pull.head, "more.txt") == b"more\n"
        assert len(here.there()) == 1, "one agent's environment served both times"
        await here.nothing_left()


async def test_a_stop_while_the_agent_mends_is_heard_and_keeps_the_work(world: World) -> None:
    def answer(request: ModelRequest) -> Call | Say:
        if GIVEN_BACK in str(request.messages):
            return Say("I look at it.", hold="mending")
        return Say("Done.") if request.tool_calls else writes("wrong")

    world.github.commit(world.repo, "main", {CONFIG: CHECK, "out.txt": "right\n"}, by="alice")
    world.model.default(Script([], after=answer))
    async with world.bot():
        world.say("/claude fix this")
        await world.model.reached("mending", timeout=60)
        world.say("/claude stop")
        assert await world.outcome(timeout=20) == "stopped", world.replies()[0].body
        await world.github.changed(lambda: "is saved until" in world.replies()[0].body, 20)
    assert not world.pulls() and refs(world.repo.path, "refs/forgehand/rescue/")


async def test_what_fails_on_the_base_too_is_said_and_not_given_to_the_agent(tmp_path: Path) -> None:
    async with place("local", tmp_path) as here:
        here.configure("checks: ['test -e never.txt', 'test -e out.txt']\n")
        here.world.model.default(Script([writes("right"), Say("Done.")]))
        async with here.world.bot():
            here.world.say("/claude fix this")
            assert await here.world.outcome() == "pull_request", here.world.replies()[0].body
        assert [(one.exit_code, one.base_exit_code) for one in await here.checks()] == [(1, 1), (0, None)]
        assert "✗ `test -e never.txt` exit 1 (fails on the base too)" in re.sub(
            r", [\d.]+ s", "", here.world.replies()[0].body
        )
        assert await here.notes() == []


@pytest.mark.parametrize("ask", ["ask what is it?", "look and change nothing"])
async def test_a_turn_without_a_change_runs_no_check(ask: str, world: World) -> None:
    here = Place(world, None)
    here.configure("checks: ['false']\n")
    world.model.default(Script([Say("It is a shop.")]))
    async with world.bot():
        world.say(f"/claude {ask}")
        await world.outcome()
    assert (await here.turn()).verified is None
    assert not outputs.folder(world.root / "data").exists()


@everywhere
async def test_a_stop_cuts_checks_short_and_leaves_nothing_running(kind: str, tmp_path: Path) -> None:
    async with place(kind, tmp_path) as here:
        here.configure("checks: ['sleep 300']\n")
        here.world.model.default(Script([writes("right"), Say("Done.")]))
        async with here.world.bot():
            here.world.say("/claude fix this")
            await until(lambda: _checked(here), 30)
            here.world.say("/claude stop")
            assert await here.world.outcome(timeout=25) == "stopped", here.world.replies()[0].body
            await here.nothing_left()
        [saved] = refs(here.world.repo.path, "refs/forgehand/").values()
        assert here.world.repo.file(saved, "out.txt") == b"right\n"


@everywhere
async def test_a_restart_in_the_middle_repeats_the_checks_and_leaves_no_environment(kind: str, tmp_path: Path) -> None:
    async with place(kind, tmp_path) as here:
        # Whoever is first waits for ever; a second try finds an environment in which nothing was begun.
        here.configure(
            "checks: ['test ! -e begun || exit 9; touch begun; sleep $(cat nap.txt)']\n", **{"nap.txt": "300"}
        )
        here.world.model.default(Script([does("echo 300 > nap.txt; echo right > out.txt"), Say("Done.")]))
        async with here.world.bot():
            here.world.say("/claude fix this")
            await until(lambda: _checked(here), 30)
        async with here.world.bot():
            await until(lambda: _checked(here), 30)
            assert len([one for one in here.there() if one.endswith("-checks")]) <= 1
            here.world.say("/claude stop")
            assert await here.world.outcome(timeout=25) == "stopped"
            await here.nothing_left()
        assert len(here.world.replies()) == 1


async def _checked(here: Place) -> bool:
    """Its environment for the checks is there, and one of them runs."""
    turn = await here.last()
    if turn is None or turn.step is not Step.VERIFY:
        return False
    if here.e2b is not None:
        sandboxes = [one for one in here.e2b.live if one.metadata["forgehand-key"].endswith("-checks")]
        return any(list(one.folder.rglob("check-*.log")) for one in sandboxes)
    base = Base(here.world.root / "data" / "environments")
    names = [one for one in base.environment_ids() if one.endswith("-checks")]
    return any(list(base.folders(one).out.glob("check-*.log")) for one in names)


async def test_without_room_for_another_environment_the_agents_own_has_to_do_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.sessions.checks.clean_room.ROOM_SECONDS", 0.5)
    async with place("e2b", tmp_path, FORGEHAND_E2B_SANDBOXES="1") as here:
        here.configure("checks: ['cat out.txt']\n")
        here.world.model.default(Script([writes("right"), Say("Done.")]))
        async with here.world.bot():
            here.world.say("/claude fix this")
            assert await here.world.outcome() == "pull_request", here.world.replies()[0].body
        [pull] = here.world.pulls()
        [check] = await here.checks()
        assert (check.where, check.exit_code) == ("agent", 0)
        for body in (here.world.replies()[0].body, pull.body or ""):
            assert "Run in the agent's own environment (a fresh one was not to be had" in body
        assert not verification.all_passed((await here.turn()).verified)
        await here.nothing_left()


async def test_secrets_are_in_no_output_that_is_kept(world: World) -> None:
    here = Place(world, None)
    secret = "ghp_" + "A1b2C3d4E5" * 4
    here.configure(f"checks: ['echo begin; printf \"%s\" {secret[:20]}; echo {secret[20:]}; exit 1']\n")
    world.model.default(Script([writes("right"), Say("Done.")], after=Say("It cannot be mended.")))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    turn = await here.turn()
    files = outputs.of_session(world.root / "data", turn.key.session)
    told = await forgehand(world.environment, "sessions", "logs", turn.session_id, "--checks")
    assert told.out == "".join(one.read_text() for one in files) and "begin" in told.out
    rows = await forgehand(world.environment, "sessions", "logs", turn.session_id, "--checks", "--json")
    assert [json.loads(line)["text"] for line in rows.out.splitlines()] == [one.read_text() for one in files]
    assert secret not in json.dumps(turn.verified) + told.out + world.replies()[0].body


async def test_a_check_has_its_own_time_and_all_have_theirs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.sessions.checks.checking.COMMAND_SECONDS", 1.0)
    monkeypatch.setattr("bot.sessions.checks.checking.WHOLE_SECONDS", 2.5)
    monkeypatch.setattr("bot.sessions.checks.mending.wrapping_up.SHARE", 0.0)
    here = Place(world, None)
    here.configure("checks: [sleep 30, sleep 31, sleep 32, echo four]\n")
    world.model.default(Script([writes("right"), Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    checks = await here.checks()
    assert checks[0].timed_out and checks[1].timed_out
    assert checks[-1].exit_code is None
    assert "(its time was up)" in world.replies()[0].body and "no time was left" in world.replies()[0].body
    assert await here.notes() == [], "there is not enough left of the turn for another try"


async def test_a_command_that_ends_our_own_script_has_failed(world: World) -> None:
    here = Place(world, None)
    here.configure("checks: [\"pkill -KILL -f '[r]unner.check'; sleep 5\", echo two]\n")
    world.model.default(Script([writes("right"), Say("Done.")], after=Say("It cannot be mended.")))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    assert [one.passed for one in await here.checks()] == [False, True]


async def test_a_check_that_ruins_the_checkout_is_told_and_nothing_is_said_of_the_base(world: World) -> None:
    here = Place(world, None)
    here.configure("checks: ['rm -rf .git; false']\n")
    world.model.default(Script([writes("right"), Say("Done.")], after=Say("It cannot be mended.")))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    [check] = await here.checks()
    assert (check.exit_code, check.base_exit_code) == (1, None)


async def test_a_fresh_environment_that_vanishes_is_replaced(tmp_path: Path) -> None:
    async with place("e2b", tmp_path) as here:
        here.configure("checks: ['sleep 3; cat out.txt']\n")
        here.world.model.default(Script([writes("right"), Say("Done.")]))
        async with here.world.bot():
            here.world.say("/claude fix this")
            await until(lambda: _checked(here), 30)
            assert here.e2b is not None
            [running] = [one for one in here.e2b.live if one.metadata["forgehand-key"].endswith("-checks")]
            await here.e2b.kill(running.id)
            assert await here.world.outcome() == "pull_request", here.world.replies()[0].body
        [check] = await here.checks()
        assert (check.where, check.exit_code) == ("fresh", 0)
        await here.nothing_left()


async def test_output_past_the_cap_is_cut_in_the_middle(world: World) -> None:
    here = Place(world, None)
    here.configure('checks: ["echo first; yes middle | head -c 8000000; echo last"]\n')
    world.model.default(Script([writes("right"), Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    [file] = outputs.of_session(world.root / "data", (await here.turn()).key.session)
    text = file.read_text()
    assert "\nfirst\n" in text and "last\n[exit 0" in text and "bytes left out" in text
    assert len(text) < 6_000_000
    assert file.stat().st_mode & 0o077 == 0
