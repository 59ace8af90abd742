"""Kills replicas at work, again and again, and counts what that did to the turns."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from dataclasses import dataclass, field

from bot.service import GIVEN_UP
from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.github.threads import Issue
from tests.world.replicas import ReplicaProcess, ReplicaSet

AT_ONCE = 4
"""Turns under way while replicas die."""
WORK = Script(
    [
        Call("Bash", {"command": "echo '# more' >> shop.py && sleep 0.5", "description": "Add a line"}),
        Call("Bash", {"command": "sleep 1 && echo '# more' >> shop.py", "description": "Add another"}),
        Say("Added two lines."),
    ]
)
SETTINGS = {"FORGEHAND_MAX_SESSIONS": "8", "FORGEHAND_REPO_SESSIONS": "8", "FORGEHAND_DAY_BUDGET": "1000"}
WAYS = ("kill", "kill and start elsewhere later", "freeze", "stop")
LONGEST_SECONDS = 900.0
"""For one turn, over all that happens to it on a busy machine."""


@dataclass
class Tally:
    """What became of the turns, by the state of GitHub alone."""

    kills: int = 0
    ways: dict[str, int] = field(default_factory=dict)
    turns: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    takeovers: list[float] = field(default_factory=list)
    """Seconds from a kill until the others had given it up."""
    restarts: int = 0
    """Replicas that gave way by themselves, because the machine let them miss their beats."""

    @property
    def holds(self) -> bool:
        return not (self.lost or self.doubled or self.stuck)


class Killing:
    def __init__(self, found: ReplicaSet, seed: int) -> None:
        self._found = found
        self._world = found.world
        self._chance = random.Random(seed)
        self._over = False
        self.tally = Tally()

    async def run(self, kills: int) -> Tally:
        asking = [asyncio.create_task(self._ask()) for _ in range(AT_ONCE)]
        try:
            while self.tally.kills < kills:
                await asyncio.sleep(self._chance.uniform(0.2, 2.5))
                await self._restart_fallen()
                await self._kill_one()
                if self.tally.kills % 10 == 0:
                    print(self.tally, file=sys.stderr, flush=True)
        finally:
            self._over = True
            await asyncio.gather(*asking)
        return self.tally

    async def _restart_fallen(self) -> None:
        """Do what a supervisor does."""
        for one in self._found.all:
            if not one.lives:
                assert await one.ended() == GIVEN_UP, one.log()[-2000:]
                self.tally.restarts += 1
                await one.start()

    async def _kill_one(self) -> None:
        lives = [one for one in self._found.all if one.lives]
        victim, way = self._chance.choice(lives), self._chance.choice(WAYS)
        self.tally.kills += 1
        _count(self.tally.ways, way)
        if way == "stop":
            assert await victim.end(signal.SIGTERM) in (0, GIVEN_UP), victim.log()[-2000:]
        elif way == "freeze":
            await self._freeze(victim)
        else:
            await victim.end()
            if way != "kill":
                await self._given_up(victim)
        await victim.start()

    async def _freeze(self, victim: ReplicaProcess) -> None:
        victim.send(signal.SIGSTOP)
        await self._given_up(victim)
        victim.send(signal.SIGCONT)
        assert await victim.ended() == GIVEN_UP, victim.log()[-2000:]

    async def _given_up(self, victim: ReplicaProcess) -> None:
        began = time.monotonic()
        async with asyncio.timeout(60):
            while any(one.home.startswith(victim.home) for one in await self._found.rows()):
                await asyncio.sleep(0.05)
        self.tally.takeovers.append(time.monotonic() - began)

    async def _ask(self) -> None:
        """Ask for one turn after the other, each on an issue of its own."""
        while not self._over:
            issue = self._world.github.open_issue(self._world.repo, title="More lines", body="Add lines.", by="alice")
            self.tally.turns += 1
            self._world.say("/claude add two lines", on=issue)
            try:
                outcome = await self._world.outcome(on=issue, timeout=LONGEST_SECONDS)
            except TimeoutError:
                self.tally.stuck.append(f"#{issue.number}")
                continue
            _count(self.tally.outcomes, outcome)
            self._judge(issue, outcome)

    def _judge(self, issue: Issue, outcome: str) -> None:
        pulls = [one for one in self._world.pulls() if f"#{issue.number}" in (one.issue.body or "")]
        if outcome != "pull_request" or not pulls:
            self.tally.lost.append(f"#{issue.number} ended as {outcome} with {len(pulls)} pull requests")
        if len(pulls) > 1 or len(self._world.replies(issue)) != 1:
            said = len(self._world.replies(issue))
            self.tally.doubled.append(f"#{issue.number} has {len(pulls)} pull requests and {said} comments")


def _count(what: dict[str, int], name: str) -> None:
    what[name] = what.get(name, 0) + 1


async def killed(found: ReplicaSet, kills: int, seed: int) -> Tally:
    found.world.model.default(WORK)
    return await Killing(found, seed).run(kills)
