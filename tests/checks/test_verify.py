"""The declared checks: run on the commit that is published, where no agent was; what fails goes back to it, once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bot.proposal import verification
from bot.sessions import declared_checks
from bot.simulation.anthropic import Call, ModelRequest, Say, Script, Wait
from bot.simulation.github.gitstore import refs
from bot.store.base import Store
from bot.store.files import KeptFiles
from bot.words import endings
from tests.world import World
from tests.world.checks import CHECK, HEARD_FAILURES, Asked, Checked, corrects, does, kept_outputs, once, writes
from tests.world.command_line import forgehand
from tests.world.environments import until
from tests.world.places import everywhere
from tests.world.postgres import PostgresServer
from tests.world.pulls import live, pull_of

RIGHT = {"out.txt": "right\n"}
RESCUED = "refs/forgehand/rescue/"


@everywhere
async def test_checks_run_on_the_published_commit_in_an_environment_of_their_own(kind: str, tmp_path: Path) -> None:
    async with Checked.running(kind, tmp_path) as here:
        async with here.world.bot():
            one = await here.begin(
                "published",
                "setup: ['echo set-up > made.txt']\n"
                "checks: ['cat made.txt out.txt; env; git rev-parse HEAD; git status --porcelain out.txt']\n",
                Script([writes("right"), Say("Done.")]),
            )
            faked = await here.begin("faked", FAKED, Script([does(FAKES), Say("All checks pass."), Say("They pass.")]))
            assert await one.outcome() == "pull_request", one.body
            assert await faked.outcome() == "pull_request", faked.body
            assert (await one.shown()).conclusion == "success"
        [check] = await one.checks()
        turn = await one.turn()
        assert (check.where, check.exit_code, check.sha) == ("fresh", 0, turn.commit_sha)
        assert verification.all_passed(turn.verified, turn.commit_sha)
        assert here.world.repo.branch_sha(one.pull.head) == turn.commit_sha
        printed = (here.world.root / "data" / declared_checks.output_name(turn)).read_text()
        assert "set-up\nright\n" in printed and f"\n{turn.commit_sha}\n" in printed
        assert "ANTHROPIC_API_KEY" not in printed
        for body in (one.body, one.pull.body or ""):
            assert f"on a clean checkout of {(turn.commit_sha or '')[:12]} in a fresh sandbox" in body, body
            assert "✓ `cat made.txt out.txt" in body
        assert "### Done, as the agent says" in (one.pull.body or "")
        await nothing_an_agent_leaves_passes_a_check(faked)
        await here.wait_until_gone()
        if here.e2b is not None:
            billed = await here.billed()
            of_this = {name for name in billed if name.startswith(turn.session_id)}
            assert of_this == {f"{turn.session_id}-1", f"{turn.session_id}-1-checks"}
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
FAKED = (
    "checks:\n  - 'test \"$(cat out.txt)\" = right'\n  - test -e __pycache__/verdict\n"
    "  - test -e ignored.txt\n  - judge\n  - python3 -c 'raise SystemExit(3)'\n"
)


async def nothing_an_agent_leaves_passes_a_check(faked: Asked) -> None:
    """Ignored files, shims on the PATH, shell start-up files, hooks, filters: none of it is in the commit."""
    checks = await faked.checks()
    assert [one.exit_code for one in checks] == [1, 1, 1, 127, 3]
    assert not verification.all_passed((await faked.turn()).verified)
    assert "✗ `judge` exit 127" in faked.body


@everywhere
async def test_failing_checks_are_mended_once_and_never_twice(kind: str, tmp_path: Path) -> None:
    async with Checked.running(kind, tmp_path) as here:
        async with here.world.bot():
            begun = {
                second: await here.begin(second, CHECK, corrects("wrong", second, "echo more > more.txt"), **RIGHT)
                for second in ("right", "worse")
            }
            for second, one in begun.items():
                assert await one.outcome() == "pull_request", one.body
                shown = await one.shown()
                assert shown.conclusion == ("success" if second == "right" else "failure")
                assert ("not all checks pass" in shown.output["title"]) is (second == "worse")
                assert f"{'✓' if second == 'right' else '✗'} `test " in shown.output["summary"]
        for second, one in begun.items():
            [check] = await one.checks()
            assert (check.exit_code, check.base_exit_code) == ((0, None) if second == "right" else (1, 0))
            told = one.told()
            assert told and "ended with exit code 1" in told[0] and "does not fail without your work" in told[0]
            assert sum(HEARD_FAILURES in words for words in one.requests[-1].spoken) == 1
            assert "Some failed at first" in one.body
            assert ("✓" if second == "right" else "✗") in one.body
            assert (": not all checks pass" in one.body) is (second == "worse"), one.body
            assert ("✅ Opened" in one.body) is (second == "right")
            assert await one.notes() == [endings.checks_go_back(1)]
            assert here.world.repo.file(one.pull.head, "more.txt") == b"more\n"
            session = (await one.turn()).session_id
            assert len([name for name in here.there() if name.startswith(session)]) == 1, "one served both times"
        await here.wait_until_gone()


async def test_work_that_is_taken_back_is_no_change_and_a_stop_while_it_is_mended_is_heard(world: World) -> None:
    here = Checked(world)

    def answer(request: ModelRequest) -> Call | Say:
        if HEARD_FAILURES in str(request.messages):
            return Say("I look at it.", hold="mending")
        return Say("Done.") if request.tool_calls else writes("wrong")

    async with world.bot():
        back = await here.begin("back", CHECK, corrects("wrong", "right"), **RIGHT)
        held = await here.begin("held", CHECK, Script([], after=answer))
        assert await back.outcome() == "no_change", back.body
        assert await back.notes() == [endings.checks_go_back(1)]
        assert not list((world.root / "data" / "kept").glob("*")) and not refs(world.repo.path, RESCUED)
        await world.model.reached("mending", timeout=60)
        world.say("/claude stop", on=held.issue)
        assert await held.outcome(20) == "stopped", held.body
        await world.github.changed(lambda: "is saved until" in held.body, 20)
    assert not world.pulls() and refs(world.repo.path, RESCUED)


async def test_a_turn_without_a_change_runs_no_check(world: World) -> None:
    here = Checked(world)
    async with world.bot():
        asked = [
            await here.begin(words[:4], "checks: ['false']\n", Script([Say("It is a shop.")]), words)
            for words in ("ask what is it?", "look and change nothing")
        ]
        for one in asked:
            await one.outcome()
    for one in asked:
        assert (await one.turn()).verified is None
    assert not (world.root / "data" / declared_checks.OUTPUTS).exists()


@everywhere
async def test_a_restart_repeats_the_checks_a_stop_cuts_them_short_and_nothing_is_left(
    kind: str, tmp_path: Path
) -> None:
    # Whoever is first waits for ever; a second try finds an environment in which nothing was begun.
    config = "checks: ['test ! -e begun || exit 9; touch begun; sleep $(cat nap.txt)']\n"
    script = Script([does("echo 300 > nap.txt; echo right > out.txt"), Say("Done.")])
    async with Checked.running(kind, tmp_path) as here:
        async with here.world.bot():
            one = await here.begin("restarted", config, script, **{"nap.txt": "300"})
            await until(one.is_checked, 30)
        async with here.world.bot():
            await until(one.is_checked, 30)
            assert len([each for each in here.there() if each.endswith("-checks")]) <= 1
            here.world.say("/claude stop", on=one.issue)
            assert await one.outcome(25) == "stopped", one.body
            await here.wait_until_gone()
        [saved] = refs(here.world.repo.path, "refs/forgehand/").values()
        assert here.world.repo.file(saved, "out.txt") == b"right\n"
        assert len(here.world.replies(one.issue)) == 1


@pytest.mark.postgres
async def test_output_is_stored_once_also_when_a_stop_cuts_the_checks_short(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    config = "checks: [echo first, sleep 300]\n"
    async with Checked.running("local", tmp_path, FORGEHAND_DATABASE_URL=postgres.fresh().reveal()) as here:

        async def stored() -> str | None:
            elsewhere = tmp_path / "elsewhere"

            async def work(store: Store) -> list[Path]:
                return await declared_checks.outputs_of(
                    KeptFiles.of(store, elsewhere, None), (await one.turn()).session_id
                )

            return "".join(path.read_text() for path in await here.read(work)) or None

        async with here.world.bot():
            one = await here.begin("cut", config, once())
            await until(one.is_checked, 30)
            session = (await one.turn()).session_id

            async def is_printed() -> bool:
                return any("first\n" in path.read_text() for path in kept_outputs(here.world, session))

            await until(is_printed, 30)
            assert await stored() is None
            here.world.say("/claude stop", on=one.issue)
            assert await one.outcome(25) == "stopped", one.body
        assert "first\n" in (await stored() or "")


async def test_without_room_for_another_environment_the_agents_own_has_to_do_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.sessions.declared_checks.ROOM_SECONDS", 0.5)
    async with Checked.running("e2b", tmp_path, FORGEHAND_E2B_SANDBOXES="1") as here:
        async with here.world.bot():
            one = await here.begin(
                "alone", "checks: ['cat out.txt']\n", Script([writes("right"), Wait("go"), Say("Done.")])
            )
            await here.world.model.reached("go", 30)
            merged = pull_of(here.world)
            here.configure("checks: [echo one, echo two]\n")
            here.world.say("/claude resolve", on=merged)
            assert await here.world.outcome(on=merged) == "pushed", live(here.world, merged)
            for command in ("one", "two"):  # git alone has merged: there is no agent's
                assert f"`echo {command}` was not run: {verification.NO_ROOM}" in live(here.world, merged)
            here.world.model.release("go")
            assert await one.outcome() == "pull_request", one.body
            assert (await one.shown()).conclusion == "neutral", "it passed, but where the agent was"
        [check] = await one.checks()
        assert (check.where, check.exit_code) == ("agent", 0)
        for body in (one.body, one.pull.body or ""):
            assert "Run in the agent's own sandbox (no fresh one was available" in body
        assert not verification.all_passed((await one.turn()).verified)
        await here.wait_until_gone()


async def test_a_fresh_environment_that_vanishes_is_replaced_and_without_any_the_work_is_published(
    tmp_path: Path,
) -> None:
    async with Checked.running("e2b", tmp_path) as here:
        async with here.world.bot():
            one = await here.begin("replaced", "checks: ['sleep 3; cat out.txt']\n", once())
            await until(one.is_checked, 30)
            await here.lose(f"{(await one.turn()).session_id}-1-checks")
            lost = await here.begin("lost", "checks: ['sleep 300; cat out.txt', echo two]\n", once())
            await until(lost.is_checked, 30)
            name = f"{(await lost.turn()).session_id}-1"
            await here.lose(name)
            await here.lose(f"{name}-checks")
            await until(lost.is_checked, 30)
            await here.lose(f"{name}-checks")
            assert await lost.outcome() == "pull_request", lost.body
            assert await one.outcome() == "pull_request", one.body
            assert (await lost.shown()).conclusion == "neutral"
        [check] = await one.checks()
        assert (check.where, check.exit_code) == ("fresh", 0)
        assert [check.exit_code for check in await lost.checks()] == [None, None]
        for body in (lost.body, lost.pull.body or ""):
            assert verification.NOT_RUN in body and f"`echo two` was not run: {verification.NO_PLACE}" in body
        assert here.world.repo.file(lost.pull.head, "out.txt") == b"right\n"
        await here.wait_until_gone()


SECRET = "ghp_" + "A1b2C3d4E5" * 4


async def test_what_checks_print_break_and_leave_is_told_and_nothing_else(world: World) -> None:
    here = Checked(world)
    async with world.bot():
        secret = await here.begin(
            "secret", f"checks: ['echo begin; printf \"%s\" {SECRET[:20]}; echo {SECRET[20:]}; exit 1']\n", once()
        )
        killer = await here.begin(
            "killer", "checks: [\"pkill -KILL -f '[r]unner.check'; sleep 5\", echo two]\n", once()
        )
        ruin = await here.begin("ruin", "checks: ['rm -rf .git; false']\n", once())
        flood = await here.begin("flood", 'checks: ["echo first; yes middle | head -c 8000000; echo last"]\n', once())
        below = await here.begin("below", BELOW, once())
        for one in (secret, killer, ruin, flood, below):
            assert await one.outcome() == "pull_request", one.body
        assert (await below.shown()).conclusion == "neutral"
    await no_secret_is_kept(world, secret)
    assert [one.passed for one in await killer.checks()] == [False, True], "it ended our own script, and has failed"
    [check] = await ruin.checks()
    assert (check.exit_code, check.base_exit_code) == (1, 1), "the base is tried where nothing was ruined"
    await what_is_past_the_cap_is_cut_in_the_middle(world, flood)
    await what_fails_on_the_base_too_is_said_and_not_given_to_the_agent(below)


async def no_secret_is_kept(world: World, secret: Asked) -> None:
    turn = await secret.turn()
    files = kept_outputs(world, turn.key.session)
    told = await forgehand(world.environment, "sessions", "logs", turn.session_id, "--checks")
    assert told.out == "".join(one.read_text() for one in files) and "begin" in told.out
    rows = await forgehand(world.environment, "sessions", "logs", turn.session_id, "--checks", "--json")
    assert [json.loads(line)["text"] for line in rows.out.splitlines()] == [one.read_text() for one in files]
    assert SECRET not in json.dumps(turn.verified) + told.out + secret.body


async def what_is_past_the_cap_is_cut_in_the_middle(world: World, flood: Asked) -> None:
    [file] = kept_outputs(world, (await flood.turn()).key.session)
    text = file.read_text()
    assert "\nfirst\n" in text and "last\n[exit 0" in text and "bytes left out" in text
    assert len(text) < 6_000_000
    assert file.stat().st_mode & 0o077 == 0


BELOW = "checks: ['test -e never.txt', 'test -e $HOME/left || { touch $HOME/left; false; }', 'test -e out.txt']\n"
"""The second passes wherever it has run before: it is tried on the base where the work never was."""


async def what_fails_on_the_base_too_is_said_and_not_given_to_the_agent(below: Asked) -> None:
    assert [(one.exit_code, one.base_exit_code) for one in await below.checks()] == [(1, 1), (1, 1), (0, None)]
    assert "✗ `test -e never.txt` exit 1 (fails on the base too)" in re.sub(r", [\d.]+ s", "", below.body)
    assert await below.notes() == []


async def test_on_the_base_a_check_has_what_those_before_it_make(world: World) -> None:
    here = Checked(world)
    built = "checks: ['cp out.txt built.txt', 'test \"$(cat built.txt)\" = right', 'echo more >> out.txt; false']\n"
    async with world.bot():
        one = await here.begin("built", built, corrects("wrong", "right"), **RIGHT)
        assert await one.outcome() == "no_change", one.body
        assert await one.notes() == [endings.checks_go_back(1)], "it passes on the base"
        other = await here.begin("other", built, once("worse"), **RIGHT)
        assert await other.outcome() == "pull_request", other.body
    checks = await other.checks()
    assert [(one.exit_code, one.base_exit_code) for one in checks] == [(0, None), (1, 0), (1, 1)]
    assert [list(one.changed) for one in checks] == [[], [], ["out.txt"]]
    assert "it changed** `out.txt`, so later checks did not run on" in other.body


async def test_a_check_has_its_own_time_and_all_have_theirs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.sessions.declared_checks.COMMAND_SECONDS", 1.0)
    monkeypatch.setattr("bot.sessions.declared_checks.WHOLE_SECONDS", 2.5)
    monkeypatch.setattr("bot.sessions.money.spending_limits.WRAP_UP_SHARE", 0.0)
    here = Checked(world)
    async with world.bot():
        one = await here.begin("slow", "checks: [sleep 30, sleep 31, sleep 32, echo four]\n", once())
        assert await one.outcome() == "pull_request", one.body
    checks = await one.checks()
    assert checks[0].timed_out and checks[1].timed_out
    assert checks[-1].exit_code is None
    assert "(its time was up)" in one.body and "no time was left" in one.body
    assert await one.notes() == [], "there is not enough left of the turn for another try"
