"""Hands out a turn's work that is on the host, as a patch or a bundle, if nothing in it looks like a secret."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from bot.errors import Hidden, NotAllowed
from bot.handlers.desk import Desk
from bot.kinds.shape import OnFork
from bot.sessions import turn_patch
from bot.sessions.publish import rescue
from bot.store import sessions
from bot.store.files import KeptFiles
from bot.store.sessions import Turn
from bot.web.pages import visited
from bot.web.pages.frame import COMMON
from bot.web.pages.gate import Gate, number
from bot.web.pages.visitors import Visitor

NOT_HERE = (
    "This work may hold a secret, or Forgehand could not search all of it for one, so this page does not hand it out. "
    "The operator of this Forgehand can: forgehand sessions pull {session}"
)


class KeptWorkPages:
    def __init__(self, gate: Gate, desk: Desk) -> None:
        self._gate = gate
        self._files: KeptFiles = desk.files

    def routes(self) -> list[BaseRoute]:
        at = "/sessions/{id}"
        return [
            Route(f"{at}/patch/{{n}}", self._gate.page(self._patch)),
            Route(f"{at}/bundle/{{n}}", self._gate.page(self._bundle)),
        ]

    async def _patch(self, request: Request, visitor: Visitor) -> Response:
        """Hand out the patch that was made for a fork, which `git am` takes, or else the turn's own."""
        turn = await self._turn(request, visitor)
        if (name := turn.part(OnFork).patch) is not None:
            return await self._file(rescue.kept_name(name))
        patch = await turn_patch.read(self._files, turn.key)
        if patch is None or not patch.facts.is_home:
            raise Hidden("no patch")
        if not patch.facts.is_clean:
            raise NotAllowed(NOT_HERE.format(session=turn.session_id))
        name = f"forgehand-{turn.session_id}-{turn.n}.patch"
        given = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(patch.text, media_type="application/octet-stream", headers={**COMMON, **given})

    async def _bundle(self, request: Request, visitor: Visitor) -> Response:
        turn = await self._turn(request, visitor)
        if turn.kept is None:
            raise Hidden("no bundle")
        patch = await turn_patch.read(self._files, turn.key)
        if patch is None or not (patch.facts.is_home and patch.facts.is_clean):
            raise NotAllowed(NOT_HERE.format(session=turn.session_id))
        return await self._file(rescue.kept_name(turn.kept))

    async def _turn(self, request: Request, visitor: Visitor) -> Turn:
        session = await visited.session_of(self._gate, request, visitor)
        turns, n = await sessions.turns_of(self._gate.store, session.id), number(request, "n")
        found = next((one for one in turns if one.n == n), None)
        if found is None:
            raise Hidden("no such turn")
        if turn_patch.is_withheld(turns, n):
            raise NotAllowed(NOT_HERE.format(session=session.id))
        return found

    async def _file(self, name: str) -> Response:
        file = await self._files.fetch(name)
        if file is None:
            raise Hidden("no such file")
        return FileResponse(file, media_type="application/octet-stream", filename=file.name, headers={**COMMON})
