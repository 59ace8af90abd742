"""The Changes page of a session: the files that a turn or the session has changed, kept up to date while it works."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.errors import Hidden
from bot.handlers.desk import Desk
from bot.loops import beside
from bot.models import SessionId, TurnState
from bot.outbound import patches
from bot.outbound.redact import Redactor
from bot.sessions import turn_patch
from bot.sessions.turn_patch import TurnPatch
from bot.store import sessions
from bot.store.sessions import Turn
from bot.web.pages import hunks, redacting, visited
from bot.web.pages.edits import EditCall, SessionEdits
from bot.web.pages.gate import GONE, Gate, Stay, number_in
from bot.web.pages.hunks import ShownFile
from bot.web.pages.stream import EventStream, StreamLimit, event, is_set_within
from bot.web.pages.visitors import Visitor
from sandbox.agents.base import Agent

LOOK_SECONDS = 2.0
HEARTBEAT_LOOKS = 8
MOST_STREAMS = 300
MOST_STREAMS_EACH = 10
MOST_DRAWN = 30
"""Pictures kept for the next viewer."""
MOST_LISTED = 1_000
"""Names of changed files without a diff."""
SMALL_PICTURE = 5_000
WHOLE_SESSION = 0
"""Stands for the session in the place of a turn's number."""


@dataclass(frozen=True)
class ShownChanges:
    """The content of the page for one turn, or for the session."""

    turn: Turn
    """The last turn of those shown."""
    whole_session: bool = False
    patch: TurnPatch | None = None
    of: Turn | None = None
    """The turn that left the patch."""
    files: list[ShownFile] = field(default_factory=list)
    since: list[ShownFile] = field(default_factory=list)
    """Reports of the agent's editing tools since the patch was made, or without any patch."""
    others: list[dict[str, object]] = field(default_factory=list)
    """Changed files whose diff is not shown."""

    @property
    def live(self) -> bool:
        return self.turn.state is not TurnState.DONE

    @property
    def tree(self) -> list[tuple[str, list[ShownFile]]]:
        return hunks.by_folder([*self.files, *self.since])

    @property
    def added(self) -> int:
        return sum(one.added for one in (*self.files, *self.since))

    @property
    def removed(self) -> int:
        return sum(one.removed for one in (*self.files, *self.since))


class ChangesPictures:
    """Draws the changes of a session once for all who look at the same state."""

    def __init__(self, gate: Gate, desk: Desk, agent: Agent) -> None:
        self._gate = gate
        self._desk = desk
        self._agent = agent
        self._edits: dict[SessionId, SessionEdits] = {}
        self._drawn: dict[tuple[object, ...], tuple[object, Markup]] = {}
        self._locks: weakref.WeakValueDictionary[SessionId, asyncio.Lock] = weakref.WeakValueDictionary()

    async def turns(self, session: SessionId) -> list[Turn]:
        """List the turns that may have changed files."""
        return [one for one in await sessions.turns_of(self._gate.store, session) if not one.traits.reads]

    async def draw(self, session: SessionId, n: int, *, at: str, public: Redactor | None = None) -> tuple[Markup, bool]:
        """Draw turn `n`, or the session, and say whether it may still change.

        `at` is the address of the session's page; `public` redacts what strangers see."""
        async with self._locks.setdefault(session, asyncio.Lock()):
            edits = await self._edits_of(session)
            turns = await self.turns(session)
            chosen = [one for one in turns if n in (WHOLE_SESSION, one.n)]
            if not chosen:
                latest = (await sessions.turns_of(self._gate.store, session))[-1:]
                live = any(one.state is not TurnState.DONE for one in latest)
                return self._gate.pages.fragment("changes_none.html", live=live), live
            calls = edits.of_turns(one.n for one in chosen)
            state = [(one.state, one.tree_sha, one.checkpoint_at, one.kept, one.commit_sha) for one in chosen]
            version = (state, edits.version, public.version if public is not None else 0)
            key = (session, n, at)
            if (known := self._drawn.pop(key, None)) is None or known[0] != version:
                known = version, await self._draw(chosen, n, calls, at, public)
            self._drawn[key] = known
            for old in list(self._drawn)[:-MOST_DRAWN]:
                del self._drawn[old]
            return known[1], chosen[-1].state is not TurnState.DONE

    async def _edits_of(self, session: SessionId) -> SessionEdits:
        edits = self._edits.pop(session, None) or SessionEdits(session, self._gate.store, self._agent.decoder)
        self._edits[session] = edits  # the latest is at the end
        for old in list(self._edits)[:-MOST_DRAWN]:
            del self._edits[old]
        await edits.refresh()
        return edits

    async def _draw(
        self, turns: Sequence[Turn], n: int, calls: list[EditCall], at: str, public: Redactor | None
    ) -> Markup:
        if turn_patch.is_withheld(await self.turns(turns[-1].session_id), turns[-1].n):
            return self._gate.pages.fragment("changes_withheld.html", shown=ShownChanges(turns[-1]))
        patch, of = await self._newest(turns, whole_session=n == WHOLE_SESSION)
        empty = ShownChanges(turns[-1], n == WHOLE_SESSION, patch, of)
        size = (len(patch.text) if patch else 0) + sum(one.size for one in calls)
        return await beside(partial(self._show, empty, calls, at, public), size=size, most=SMALL_PICTURE)

    async def _newest(self, turns: Sequence[Turn], *, whole_session: bool) -> tuple[TurnPatch | None, Turn | None]:
        """Find the last patch; a turn without one leaves the session as the turn before it."""
        for one in reversed(turns):
            if whole_session and (found := await turn_patch.read(self._desk.files, one.key, whole_session=True)):
                return found, one
            if (found := await turn_patch.read(self._desk.files, one.key)) is not None:
                return found, one
        return None, None

    def _show(self, empty: ShownChanges, calls: list[EditCall], at: str, public: Redactor | None) -> Markup:
        redact = public.redact if public is not None else str
        if public is not None:
            calls = [redacting.call(public, one) for one in calls]
            patch = empty.patch and replace(empty.patch, text=patches.redacted(public, empty.patch.text))
            empty = replace(empty, patch=patch)
        shown = _filled(empty, calls, redact)
        return self._gate.pages.fragment("changes_body.html", shown=shown, at=at, public=public is not None)


def _filled(empty: ShownChanges, calls: list[EditCall], redact: Callable[[str], str]) -> ShownChanges:
    patch, turn = empty.patch, empty.turn
    files = hunks.shown(patch.text, calls) if patch else []
    is_home = patch is not None and patch.facts.is_home and empty.of == turn
    after = patch.facts.at if patch else 0.0
    since = [] if is_home else hunks.edited(one for one in calls if one.at > after)
    for place, file in enumerate(since, len(files) + 1):
        file.number = place
    known = {file.path for file in (*files, *since)}
    listed = () if empty.whole_session or empty.live else turn.files_changed or ()
    others = [{**one, "path": redact(hunks.visible(str(one["path"])))} for one in listed]
    others = [one for one in others if one["path"] not in known][:MOST_LISTED]
    return replace(empty, files=files, since=since, others=others)


class ChangesPages:
    def __init__(self, gate: Gate, desk: Desk, pictures: ChangesPictures) -> None:
        self._gate = gate
        self._desk = desk
        self._pictures = pictures
        self._limit = StreamLimit(MOST_STREAMS, MOST_STREAMS_EACH)
        self._closed = asyncio.Event()

    def routes(self) -> list[BaseRoute]:
        at = "/sessions/{id}/changes"
        return [Route(at, self._gate.page(self._page)), Route(f"{at}/events", self._gate.plain(self._stream))]

    def close(self) -> None:
        self._closed.set()

    async def _page(self, request: Request, visitor: Visitor) -> Response:
        session = await visited.session_of(self._gate, request, visitor)
        turns = await self._pictures.turns(session.id)
        n = chosen_turn(request, turns)
        at = f"/sessions/{session.id}"
        body, live = await self._pictures.draw(session.id, n, at=at)
        permission = await self._gate.access.permission(visitor, visited.place_of(session))
        return self._gate.pages.render(
            "changes.html",
            title=f"Changes for {session.thread.repo.full_name}#{session.thread.number}",
            visitor=visitor,
            session=session,
            turns=turns,
            n=n,
            at=at,
            body=body,
            live=live,
            may_write=permission.may_write,
            public=False,
        )

    async def _stream(self, request: Request, visitor: Visitor) -> Response:
        session = await visited.session_of(self._gate, request, visitor)
        if refusal := self._limit.refusal(visitor.id):
            return refusal
        n = chosen_turn(request, await self._pictures.turns(session.id))
        stay = visited.stay(self._gate, visitor, session)
        return EventStream(self._limit.counted(visitor.id, self._changes(session.id, n, stay)))

    async def _changes(self, session: SessionId, n: int, stay: Stay) -> AsyncGenerator[bytes, None]:
        """Send the picture when it has changed, and end with the turn."""
        yield b"retry: 2000\n\n"
        before, quiet, live = None, 0, True
        while live and not self._closed.is_set():
            if not await stay.may_go_on():
                yield event("gone", GONE)
                return
            html, live = await self._pictures.draw(session, n, at=f"/sessions/{session}")
            quiet += 1
            if html is not before:
                before, quiet = html, 0
                yield event("changes", html)
            elif quiet % HEARTBEAT_LOOKS == 0:
                yield b": still here\n\n"
            await is_set_within(LOOK_SECONDS, self._closed)
        if not live:
            yield event("ended", "")


def chosen_turn(request: Request, turns: Sequence[Turn]) -> int:
    """Read the turn from the address: a number, `all`, or the last turn if none is named."""
    given = request.query_params.get("turn", "")
    if given == "all":
        return WHOLE_SESSION
    if not given:
        return turns[-1].n if turns else 1
    n = number_in(given)
    if not any(one.n == n for one in turns):
        raise Hidden("no such turn")
    return n
