"""Tools for tests of declared checks: threads in one world, each with its own config, agent and checks."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bot.models import SessionId, Step
from bot.proposal import verification
from bot.sessions import declared_checks
from bot.simulation.anthropic import Call, ModelRequest, Say, Script
from bot.simulation.github.state import CheckRun
from bot.simulation.github.threads import Issue, Pull
from bot.store import conversation, environments, sessions
from bot.store.base import Store
from bot.store.records import Turn
from bot.store.rows import many
from tests.world import World
from tests.world.environments import until
from tests.world.places import Place

T = TypeVar("T")
CHECK = "checks: ['test \"$(cat out.txt)\" = right']\n"
HEARD_FAILURES = "the checks that this repository declares"


def does(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "Work"})


def writes(word: str, also: str = "true") -> Call:
    return does(f"echo {word} > out.txt; {also}")


def corrects(first: str, second: str, also: str = "true") -> Script:
    """Write another word after it hears which checks failed."""

    def answer(request: ModelRequest) -> Call | Say:
        told = HEARD_FAILURES in str(request.messages)
        call = writes(second, also) if told else writes(first)
        done = any(one["input"].get("command") == call.input["command"] for one in request.tool_calls)
        return Say("Wrote it.") if done else call

    return Script([], after=answer)


def once(word: str = "right") -> Script:
    """Write a word once, and change nothing afterwards."""
    return Script([writes(word), Say("Done.")], after=Say("It cannot be mended."))


def kept_outputs(world: World, session: SessionId) -> list[Path]:
    """List the files with the output of a session's checks."""
    return sorted((world.root / "data" / declared_checks.OUTPUTS).glob(f"{session}-*.log"))


@dataclass
class Checked(Place):
    """A place, and the checks in its store."""

    async def begin(self, name: str, config: str, script: Script, words: str = "fix this", **files: str) -> Asked:
        """Begin a turn on a new thread with this config."""
        self.configure(config, **files)
        self.world.model.script(name, script)
        issue = self.world.github.open_issue(self.world.repo, title=name, body="Mend it.", by="alice")
        self.world.say(f"/claude {words} [[scenario:{name}]]", on=issue)
        asked = Asked(self, issue, name)
        await until(asked.has_its_config)
        return asked

    async def read(self, work: Callable[[Store], Awaitable[T]]) -> T:
        store = await Store.open_reader(self.world.database)
        try:
            return await work(store)
        finally:
            await store.close()

    async def lose(self, name: str) -> None:
        assert self.e2b is not None
        [running] = [one for one in self.e2b.live if one.metadata["forgehand-key"] == name]
        await self.e2b.kill(running.id)

    async def wait_until_gone(self) -> None:
        """Wait until no environment for checks is left, nor any row of one."""

        async def gone() -> bool:
            rows = await self.read(environments.all_of_them)
            return not [one for one in [*self.there(), *rows] if one.endswith("-checks")]

        await until(gone, 20)

    async def billed(self) -> dict[str, bool]:
        """Return the paid machines, and whether their end is known."""
        sql = "SELECT environment_id AS id, ended_at FROM machine_runs"
        rows = await self.read(lambda store: store.read(lambda db: many(db, sql)))
        return {row["id"]: row["ended_at"] is not None for row in rows}


@dataclass
class Asked:
    """One thread, and its session."""

    here: Checked
    issue: Issue
    name: str

    async def outcome(self, seconds: float = 60.0) -> str:
        return await self.here.world.outcome(on=self.issue, timeout=seconds)

    @property
    def body(self) -> str:
        [live] = self.here.world.replies(self.issue)
        return live.body

    @property
    def pull(self) -> Pull:
        [found] = [one for one in self.here.world.pulls() if f"/{self.issue.number}-" in one.head]
        return found

    @property
    def requests(self) -> list[ModelRequest]:
        """Return its agent's requests to the model."""
        marker = f"[[scenario:{self.name}]]"
        return [one for one in self.here.world.model.requests if any(marker in words for words in one.spoken)]

    def told(self) -> list[str]:
        """Return the failures that its agent heard, once for each request with them."""
        return [words for one in self.requests for words in one.spoken if HEARD_FAILURES in words]

    async def last(self) -> Turn | None:
        async def work(store: Store) -> Turn | None:
            found = [one for one in await sessions.listing(store) if one.number == self.issue.number]
            return (await sessions.turns_of(store, found[0].id))[-1] if found else None

        return await self.here.read(work)

    async def turn(self) -> Turn:
        found = await self.last()
        assert found is not None
        return found

    async def checks(self) -> list[verification.CheckedCommand]:
        return verification.load((await self.turn()).verified or ())

    async def notes(self) -> list[str]:
        key = (await self.turn()).key
        rows = await self.here.read(lambda store: conversation.events_of_turn(store, key, 0, 10_000))
        return [json.loads(row.line)["note"] for row in rows if row.kind == "note"]

    async def shown(self) -> CheckRun:
        """Return the check run at the pushed commit once it has a conclusion."""
        sha = (await self.turn()).commit_sha

        def found() -> CheckRun | None:
            done = [one for one in self.here.world.repo.checks.values() if one.head_sha == sha and one.conclusion]
            return done[0] if done else None

        check = await self.here.world.github.changed(found, 20)
        assert check is not None
        return check

    async def has_its_config(self) -> bool:
        turn = await self.last()
        return turn is not None and turn.step is not Step.PREPARE

    async def is_checked(self) -> bool:
        """Decide whether its environment for checks exists and a check runs."""
        turn = await self.last()
        if turn is None or turn.step is not Step.VERIFY:
            return False
        name = f"{turn.session_id}-{turn.n}-checks"
        if self.here.e2b is not None:
            folders = [one.folder for one in self.here.e2b.live if one.metadata["forgehand-key"] == name]
        else:
            folders = [self.here.base.folders(name).out] if name in self.here.there() else []
        return any(list(one.rglob("check-*.log")) for one in folders)
