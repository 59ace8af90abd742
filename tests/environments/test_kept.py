"""An environment is kept for the next turn of its thread, by itself and at rest, and for no longer than it may be."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bot import settings
from bot.sessions.environments import meter
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github.threads import Comment
from bot.store import environments
from bot.store.base import Store
from sandbox.choice import choose, instance_of
from sandbox.local import folders
from sandbox.primitives import EnvironmentSpec
from tests.e2b_stand_in import Fault
from tests.faults.test_endurance import issues
from tests.world.places import Place, everywhere

SETUP = "setup:\n  - mkdir -p __pycache__ && echo was-set-up >> __pycache__/made\n"
BUILD = Call("Bash", {"command": "mkdir -p __pycache__; echo built >> __pycache__/made; echo '# 1' >> shop.py"})
STRAY = "zzzzzzzz-1"
LOOK = Call("Bash", {"command": "cat __pycache__/made; git status --porcelain; echo '# 2' >> shop.py"})
DAEMON = Call("Bash", {"command": "setsid -f sleep 3600 >/dev/null 2>&1 </dev/null; echo '# 1' >> shop.py"})


class Life(Place):
    """A place whose environments are waited for."""

    def at_rest(self) -> bool:
        """All that there is costs nothing."""
        if self.e2b is not None:
            return all(one.paused for one in self.e2b.live)
        base = self.base
        return not any(folders.members(base.folders(one).home) for one in base.environment_ids())

    async def until(self, there: int, *, running: bool = False) -> None:
        """So many are left, at rest (or not)."""
        async with asyncio.timeout(20):
            while len(self.there()) != there or self.at_rest() is running:
                await asyncio.sleep(0.05)

    async def stray(self) -> None:
        """One more that nobody needs, and to which a sweep comes last."""
        root, e2b = self.world.environments, settings.read(self.world.environment).e2b
        choice = await choose(root, e2b=e2b and replace(e2b, instance=instance_of(root)))
        try:
            await choice.provider.create(STRAY, EnvironmentSpec(meter.LABEL, public_repository=True))
        finally:
            await choice.provider.close()

    async def swept(self) -> None:
        async with asyncio.timeout(20):
            while STRAY in self.there():
                await asyncio.sleep(0.05)

    async def rows(self, count: int) -> None:
        """So many are on record; those that wait for room are, too."""
        store = await Store.open_reader(self.world.database)
        try:
            async with asyncio.timeout(20):
                while len(await environments.all_of_them(store)) != count:
                    await asyncio.sleep(0.05)
        finally:
            await store.close()

    async def turn(self, n: int, *steps: object, words: str = "go on") -> str:
        self.world.model.default(Script([*steps, Say(f"Done {n}.")]))  # type: ignore[list-item]
        self.world.say(f"/claude {words}")
        return await self.world.outcome(n)

    def heard(self) -> str:
        """What the model was told by tools, in the last request."""
        return str(self.world.model.requests[-1].tool_results)


class Ahead:
    """A clock that can be pushed."""

    seconds = 0.0

    def __call__(self) -> float:
        return time.time() + self.seconds


@everywhere
async def test_the_next_turn_finds_what_was_built_and_remembers(kind: str, tmp_path: Path) -> None:
    async with Life.running(kind, tmp_path) as one, one.world.bot():
        one.configure(SETUP)
        assert await one.turn(1, BUILD) == "pull_request"
        await one.until(1)
        assert await one.turn(2, LOOK) == "pushed", one.world.replies()[-1].body
        assert "built" in one.heard()
        assert one.heard().count("was-set-up") == 1, "the same commands are not run again"
        assert "shop.py" not in one.heard(), "the checkout is the commit"
        assert "Done 1." in str(one.world.model.requests[-1].messages)
        await one.until(1)
        assert one.e2b is None or len(one.e2b.sandboxes) == 1
        [pull] = one.world.pulls()
        shop = (one.world.repo.file(pull.head, "shop.py") or b"").decode()
        assert (shop.count("# 1"), shop.count("# 2")) == (1, 1)


@everywhere
async def test_nothing_runs_on_in_a_kept_one_and_it_ends_in_time(kind: str, tmp_path: Path) -> None:
    clock = Ahead()
    async with Life.running(kind, tmp_path) as one:
        async with one.world.bot(clock):
            assert await one.turn(1, DAEMON) == "pull_request"
            await one.until(1)
        kept = one.there()
        await one.stray()
        calls = len(one.e2b.calls) if one.e2b else 0
        clock.seconds = 29 * 60
        async with one.world.bot(clock):
            await one.swept()
            assert one.there() == kept
        clock.seconds = 31 * 60
        async with one.world.bot(clock):
            await one.until(0)
        assert not one.e2b or not [
            call for call in one.e2b.calls[calls:] if call.path.endswith(("/resume", "/connect"))
        ]


@everywhere
async def test_what_must_not_be_kept_is_ended_at_once(kind: str, tmp_path: Path) -> None:
    """After a stop, after words of somebody without write access, and where the operator wants none kept."""
    async with Life.running(kind, tmp_path) as one, one.world.bot():
        one.world.model.default(Script([BUILD, Wait("on"), Say("unreachable")]))
        one.world.say("/claude fix this")
        await one.world.model.reached("on", timeout=60)
        one.world.say("/claude stop")
        assert await one.world.outcome() == "stopped"
        assert one.there() == []
        one.world.model.release("on")
        one.world.github.user("mallory")
        stranger: Comment = one.world.say("Look into this.", by="mallory")
        assert stranger
        assert await one.turn(2, LOOK) in ("pushed", "pull_request")
        assert one.there() == []


@everywhere
async def test_who_takes_the_app_away_takes_the_kept_one_away(kind: str, tmp_path: Path) -> None:
    async with Life.running(kind, tmp_path) as one, one.world.bot():
        assert await one.turn(1, BUILD) == "pull_request"
        await one.until(1)
        one.world.github.uninstall(one.world.installation)
        await one.until(0)


async def test_a_kept_one_that_was_spoilt_or_lost_is_replaced(tmp_path: Path) -> None:
    async with Life.running("local", tmp_path) as one, one.world.bot():
        spoil = Call("Bash", {"command": "rm -rf /run/forgehand/out/checkout; echo no > /run/forgehand/out/checkout"})
        assert await one.turn(1, BUILD, spoil) == "pull_request"
        await one.until(1)
        first = one.there()
        assert await one.turn(2, LOOK) == "pushed", one.world.replies()[-1].body
        assert "built" not in one.heard()
        await one.until(1)
        assert one.there() != first


LAY = (
    "mkdir -p ~/.local/bin ~/.config/pip ~/.cache/pip ~/.npm $TMPDIR/laid; echo kept > ~/.cache/pip/one; "
    "for name in ~/.bashrc ~/.npmrc ~/.local/bin/make ~/.config/pip/pip.conf $TMPDIR/laid/x; do echo x > $name; done; "
    "chmod 000 ~/.config; echo '# 1' >> shop.py"
)
FIND = (
    "cat ~/.cache/pip/one; find ~ $TMPDIR -mindepth 1 | grep -v -e '/.claude' -e '/.cache' -e '/.npm$'; "
    "echo '# 2' >> shop.py"
)
SETS_UP_HOME = "setup:\n  - mkdir -p ~/.tools && echo once >> ~/.tools/made\n"


@pytest.mark.review("e2b-1")
@everywhere
async def test_what_the_agent_has_laid_in_its_home_is_gone_for_the_next_turn(kind: str, tmp_path: Path) -> None:
    """Whatever a shell, a package client or a setup command would obey; caches stay."""
    async with Life.running(kind, tmp_path) as one, one.world.bot():
        one.configure(SETS_UP_HOME)
        assert await one.turn(1, Call("Bash", {"command": LAY})) == "pull_request"
        await one.until(1)
        first = one.there()
        assert await one.turn(2, Call("Bash", {"command": FIND})) == "pushed", one.world.replies()[-1].body
        heard = one.heard()
        assert "kept" in heard
        for name in (".bashrc", ".npmrc", ".local/bin/make", "pip.conf", "laid"):
            assert name not in heard, heard
        assert ".tools/made" in heard, "what setup has made there stays"
        assert one.there() == first


@pytest.mark.review("e2b-1")
@everywhere
async def test_a_home_whose_own_files_the_agent_has_changed_is_used_no_more(kind: str, tmp_path: Path) -> None:
    async with Life.running(kind, tmp_path) as one, one.world.bot():
        one.configure(SETS_UP_HOME)
        change = "touch -r ~/.tools/made /tmp/when; echo planted >> ~/.tools/made; touch -r /tmp/when ~/.tools/made; "
        assert await one.turn(1, Call("Bash", {"command": change + "echo '# 1' >> shop.py"})) == "pull_request"
        await one.until(1)
        look = Call("Bash", {"command": "cat ~/.tools/made; echo '# 2' >> shop.py"})
        assert await one.turn(2, look) == "pushed", one.world.replies()[-1].body
        assert "planted" not in one.heard()
        assert "once" in one.heard()


@everywhere
async def test_with_no_time_to_keep_it_every_turn_has_its_own(kind: str, tmp_path: Path) -> None:
    async with Life.running(kind, tmp_path, FORGEHAND_KEEP_MINUTES="0") as one, one.world.bot():
        assert await one.turn(1, BUILD) == "pull_request"
        assert one.there() == []


async def test_one_that_does_not_come_to_rest_is_ended(tmp_path: Path) -> None:
    async with Life.running("e2b", tmp_path) as one, one.world.bot():
        assert one.e2b is not None
        one.e2b.faults.add(Fault("POST /sandboxes/*/pause", "fail", times=None))
        assert await one.turn(1, BUILD) == "pull_request"
        await one.until(0)
        assert await one.turn(2, LOOK) == "pushed"
        assert "built" not in one.heard()


async def test_the_sweep_does_not_wait_for_who_waits_for_room(tmp_path: Path) -> None:
    async with Life.running("e2b", tmp_path, FORGEHAND_E2B_SANDBOXES="1") as one, one.world.bot():
        world = one.world
        over = issues(world, 2)
        for issue in over:
            world.say("/claude work", on=issue)
            assert await world.outcome(on=issue) == "pull_request"
        await one.until(2)
        world.model.default(Script([Wait("on"), Say("Done.")]))
        world.say("/claude hold the place")
        await world.model.reached("on", timeout=60)
        [waiting] = issues(world, 1)
        world.say("/claude wait for it", on=waiting)
        await one.rows(4)
        for left, issue in ((2, over[0]), (1, over[1])):
            world.say("/claude stop", on=issue)
            await one.until(left, running=True)
        world.model.release("on")
        assert await world.outcome(on=waiting) == "no_change"


async def test_what_the_operator_has_changed_holds_for_the_next_turn(tmp_path: Path) -> None:
    """A host that is open no more is not open in what was kept, either."""
    async with Life.running("e2b", tmp_path) as one:
        assert one.e2b is not None
        async with one.world.bot(FORGEHAND_EGRESS="files.example.invalid"):
            assert await one.turn(1, BUILD) == "pull_request"
            await one.until(1)
        first = one.there()
        async with one.world.bot():
            assert await one.turn(2, LOOK) == "pushed", one.world.replies()[-1].body
            await one.until(1)
        assert one.there() != first
        assert "built" not in one.heard()
