"""How a command reaches the sandboxes beside a service that runs, or while none does, and what it tells of them.

They are found where the service finds them: by the data directory on this host, by its name in E2B's account. Nothing
is locked for it; what a session loses with its sandbox is the session's to notice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bot import settings
from bot.errors import StoreError, UserError
from bot.models import SessionId, TurnKey, TurnState
from bot.settings import Address
from bot.store import data_directory

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.environments import EnvironmentRow
    from bot.store.sessions import Turn
    from sandbox.choice import EnvironmentChoice
    from sandbox.primitives import EnvironmentOverview, EnvironmentPrimitives

BY_HAND = {"app": "forgehand-by-hand"}
"""Not the service's label: its sweep ends whatever no turn needs."""
MADE_FOR = {"forgehand": "session", "forgehand-warming": "snapshot", BY_HAND["app"]: "hand"}


@dataclass(frozen=True)
class Row:
    """One sandbox, as it is listed."""

    id: str
    kind: str
    state: str
    """running, paused, or kept: on this host nothing runs of what is kept."""
    made_for: str
    session: str | None
    turn: int | None
    repo: str | None
    since: float
    age_seconds: float
    needed: bool
    """A turn under way works in it."""
    kept_until: float | None
    """For the next turn of its session; None where it is not kept."""

    @property
    def json(self) -> dict[str, Any]:
        return asdict(self)


class SandboxAccess:
    """The provider, and the store where there is one yet."""

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
        raise UserError(
            f"There is no sandbox {sandbox_id[:80]!r}. `forgehand sandbox list` shows those that there are."
        )

    async def end(self, sandbox_id: str) -> None:
        """Without waking it; that it is gone by now is as good."""
        await self.choice.provider.end(sandbox_id)

    async def environment(self, sandbox_id: str) -> EnvironmentPrimitives | None:
        """Not woken either."""
        found = await self.choice.provider.find({})
        return next((one for one in found if one.id == sandbox_id), None)

    async def _row(self, one: EnvironmentOverview) -> Row:
        """Who uses it, or used it last, is on record; labels tell of the turn for which it was made."""
        known, session, turn = await self._known(one.id), one.labels.get("session"), one.labels.get("turn", "")
        number = known.turn if known else int(turn) if turn.isdecimal() else None
        needed, repo = await self._use(known, session)
        kept_until = known.kept_until if known and known.state == "kept" else None
        age = round(max(0.0, self._now - one.since), 1)
        # Of a box on this host that is kept there is a folder, and nothing that could run or pause.
        state = "kept" if kept_until is not None and one.kind != "e2b" else one.state.value
        made_for = MADE_FOR.get(one.labels.get("app", ""), "somebody")
        return Row(one.id, one.kind, state, made_for, session, number, repo, one.since, age, needed, kept_until)

    async def _known(self, sandbox_id: str) -> EnvironmentRow | None:
        from bot.store import environments

        return (await environments.all_of_them(self.store)).get(sandbox_id) if self.store else None

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


async def turns_in(store: Store | None, sandbox_id: str) -> list[Turn]:
    """Those that have worked in it; also when it is gone."""
    from bot.store import environments, sessions

    if store is None:
        return []
    return [await sessions.turn(store, key) for key in await environments.turns_in(store, sandbox_id)]


@asynccontextmanager
async def readable(where: Address) -> AsyncIterator[Store | None]:
    """None where nothing was ever stored."""
    from bot.store.base import Store, exists

    if not await asyncio.to_thread(exists, where):
        yield None
        return
    async with Store.reading(where) as store:
        yield store


@asynccontextmanager
async def opened(config: Path | None, *, makes: bool = False) -> AsyncIterator[SandboxAccess]:
    """Only who `makes` one begins a data directory: a look into an empty home leaves it empty."""
    from sandbox.choice import choose

    values = settings.from_environment(config)
    folder = settings.data_dir(values)
    async with AsyncExitStack() as stack:
        if not makes and not folder.exists():
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="forgehand-")))
        data_directory.prepare(folder, known=("state.db", "lock", "environments"))
        store = await stack.enter_async_context(readable(settings.read_database(values)))
        choice = await choose(folder / "environments", e2b=settings.read_e2b(values))
        stack.push_async_callback(choice.provider.close)
        yield SandboxAccess(choice, store, time.time())
