"""How a command reaches the sandboxes beside a service that runs, or while none does, and what it tells of them.

They are found where the service finds them: by the data directory on this host, by its name in E2B's account. Nothing
is locked for it; what a session loses with its sandbox is the session's to notice.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot import settings
from bot.errors import StoreError, UserError
from bot.models import SessionId, TurnKey, TurnState

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.sessions import Turn
    from sandbox.choice import Choice
    from sandbox.primitives import EnvironmentPrimitives, Overview


@dataclass(frozen=True)
class Row:
    """One sandbox, as it is listed."""

    id: str
    kind: str
    state: str
    session: str | None
    turn: int | None
    repo: str | None
    since: float
    age_seconds: float
    needed: bool
    """A turn under way works in it."""

    @property
    def json(self) -> dict[str, Any]:
        return asdict(self)


class Access:
    """The provider, and the store where there is one yet."""

    def __init__(self, choice: Choice, store: Store | None, now: float) -> None:
        self.choice = choice
        self.store = store
        self._now = now

    async def rows(self) -> list[Row]:
        return [await self._row(one) for one in await self.choice.provider.overview({})]

    async def row(self, sandbox_id: str) -> Row:
        for row in await self.rows():
            if row.id == sandbox_id:
                return row
        raise UserError(
            f"There is no sandbox {sandbox_id[:80]!r}. `forgehand sandbox list` shows those that there are."
        )

    async def environments(self) -> Mapping[str, EnvironmentPrimitives]:
        """By id; none of them is woken."""
        return {one.id: one for one in await self.choice.provider.find({})}

    async def _row(self, one: Overview) -> Row:
        session, turn = one.labels.get("session"), one.labels.get("turn", "")
        number = await self._user(one.id) or (int(turn) if turn.isdigit() else None)
        needed, repo = await self._use(session, number)
        age = round(max(0.0, self._now - one.since), 1)
        return Row(one.id, one.kind, one.state.value, session, number, repo, one.since, age, needed)

    async def _user(self, sandbox_id: str) -> int | None:
        """The turn that uses it, or used it last: it may have been kept for a later one."""
        from bot.store import environments

        row = (await environments.all_of_them(self.store)).get(sandbox_id) if self.store else None
        return row.turn if row else None

    async def _use(self, session: str | None, turn: int | None) -> tuple[bool, str | None]:
        from bot.store import sessions

        if self.store is None or session is None or turn is None:
            return False, None
        try:
            found = await sessions.turn(self.store, TurnKey(SessionId(session), turn))
            repo = (await sessions.session(self.store, SessionId(session))).thread.repo.full_name
        except StoreError:
            return False, None
        return found.state is not TurnState.DONE, repo


async def turns_in(store: Store | None, sandbox_id: str) -> list[Turn]:
    """Those that have worked in it; also when it is gone."""
    from bot.store import sessions

    session, _, number = sandbox_id.rpartition("-")
    if store is None or not number.isdigit():
        return []
    return [one for one in await sessions.turns_of(store, SessionId(session)) if one.n == int(number)]


@asynccontextmanager
async def readable(folder: Path) -> AsyncIterator[Store | None]:
    """None where nothing was ever stored."""
    from bot.store.base import Store

    if not (folder / "state.db").exists():
        yield None
        return
    store = await Store.open_reader(folder / "state.db")
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def opened(config: Path | None) -> AsyncIterator[Access]:
    from bot.store import directory
    from sandbox.choice import choose

    values = settings.from_environment(config)
    folder = settings.data_dir(values)
    async with AsyncExitStack() as stack:
        directory.prepare(folder, known=("state.db", "lock", "environments"))
        store = await stack.enter_async_context(readable(folder))
        choice = await choose(folder / "environments", e2b=settings.read_e2b(values))
        stack.push_async_callback(choice.provider.close)
        yield Access(choice, store, time.time())
