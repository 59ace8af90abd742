"""A command's way to the sandboxes, whether the service runs or not.

It finds them as the service does: by the data directory on this host, and by its name in E2B's account. It locks
nothing; a session notices by itself that its sandbox is gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bot import settings
from bot.errors import StoreError, UserError
from bot.models import SessionId, TurnKey, TurnState
from bot.settings import Address
from bot.store import data_directory

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.environments import EnvironmentRow
    from sandbox.choice import EnvironmentChoice
    from sandbox.primitives import EnvironmentOverview

BY_HAND = {"app": "forgehand-by-hand"}
"""Not the service's label: its clean-up ends every sandbox that no turn needs."""
MADE_FOR = {"forgehand": "session", "forgehand-warming": "snapshot", BY_HAND["app"]: "hand"}


@dataclass(frozen=True)
class Row:
    id: str
    kind: str
    state: str
    """running, paused, or kept; in a kept one on this host nothing runs."""
    made_for: str
    session: str | None
    turn: int | None
    repo: str | None
    since: float
    age_seconds: float
    needed: bool
    kept_until: float | None
    """Its end if it waits for the next turn of its session."""


class SandboxAccess:
    """The provider, and the store if there is one yet."""

    def __init__(self, choice: EnvironmentChoice, store: Store | None, now: float) -> None:
        self.choice = choice
        self.store = store
        self._now = now

    async def rows(self) -> list[Row]:
        return [await self._row(one) for one in await self.choice.provider.overview({})]

    async def row(self, sandbox_id: str) -> Row:
        for row in await self.rows():
            if row.id == sandbox_id:
                return row
        raise UserError(f"There is no sandbox {sandbox_id[:80]!r}; `forgehand sandbox list` shows all of them.")

    async def _row(self, one: EnvironmentOverview) -> Row:
        """Read from the store who uses it, or used it last; its labels name the turn for which it was made."""
        from bot.store import environments

        known = (await environments.all_of_them(self.store)).get(one.id) if self.store else None
        session, turn = one.labels.get("session"), one.labels.get("turn", "")
        number = known.turn if known else int(turn) if turn.isdecimal() else None
        needed, repo = await self._use(known, session)
        kept_until = known.kept_until if known and known.state == "kept" else None
        age = round(max(0.0, self._now - one.since), 1)
        # a kept box on this host is only a folder: nothing can run or pause
        state = "kept" if kept_until is not None and one.kind != "e2b" else one.state.value
        made_for = MADE_FOR.get(one.labels.get("app", ""), "somebody")
        return Row(one.id, one.kind, state, made_for, session, number, repo, one.since, age, needed, kept_until)

    async def _use(self, known: EnvironmentRow | None, session: str | None) -> tuple[bool, str | None]:
        from bot.store import sessions

        if self.store is None or session is None:
            return False, None
        try:
            repo = (await sessions.session(self.store, SessionId(session))).thread.repo.full_name
            used = known is not None and known.state == "used"
            turn = await sessions.turn(self.store, TurnKey(known.session_id, known.turn)) if known and used else None
        except StoreError:
            return False, None
        return turn is not None and turn.state is not TurnState.DONE, repo


@asynccontextmanager
async def readable(where: Address) -> AsyncIterator[Store | None]:
    """Open the store; None if nothing was ever stored."""
    from bot.store.base import Store, place

    async with Store.reading(where) if await asyncio.to_thread(place(where).exists) else nullcontext() as store:
        yield store


@asynccontextmanager
async def opened(config: Path | None, *, makes: bool = False) -> AsyncIterator[SandboxAccess]:
    """Open the way to the sandboxes; without `makes`, an empty data directory stays empty."""
    from bot.store import cloud
    from sandbox.choice import choose, instance_of

    values = settings.from_environment(config)
    folder = settings.data_dir(values)
    async with AsyncExitStack() as stack:
        if not makes and not folder.exists():
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="forgehand-")))
        data_directory.prepare(folder, known=("state.db", "lock", "environments"))
        store = await stack.enter_async_context(readable(settings.read_database(values)))
        e2b = settings.read_e2b(values)
        if e2b is not None:
            known = None if store is None else await cloud.known_instance(store)
            e2b = replace(e2b, instance=known or instance_of(folder / "environments"))
        choice = await choose(folder / "environments", e2b=e2b)
        stack.push_async_callback(choice.provider.close)
        yield SandboxAccess(choice, store, time.time())
