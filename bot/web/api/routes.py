"""The API's addresses: what each one checks before it passes a request on to the intake, or shows a session."""

from __future__ import annotations

import asyncio
import re

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from bot.errors import Hidden, StoreError
from bot.events import api
from bot.events.api import ApiAsked
from bot.handlers.desk import Desk
from bot.models import SessionId, TurnState
from bot.outbound.redact import Redactor
from bot.store import api_tokens, approvals, sessions, spend
from bot.store.api_tokens import ApiToken
from bot.store.approvals import ApprovalState
from bot.store.sessions import Session
from bot.web.api import openapi, requests
from bot.web.api.answers import ApiRefusal, written
from bot.web.api.door import NOT_FOUND, ApiDoor
from bot.web.api.shapes import ApprovalAsked, ApprovalWords, SessionAnswer, SessionStart, SessionWords
from bot.web.api.telling import Telling, turn_answer
from bot.web.pages.stream import EventStream, StreamLimit
from bot.web.pages.watch import Watching

PREFIX = "/api/v1"
MOST_STREAMS, MOST_STREAMS_EACH = 500, 20
MOST_SHOWN = 20_000
_ID = re.compile(r"[a-z0-9]{8}")
METHODS = "This address does not take that method; /api/v1/openapi.json lists all."
BROKEN = "Something broke on our side. The operator finds it in the log."


class ApiRoutes:
    def __init__(self, door: ApiDoor, desk: Desk, watching: Watching, redactor: Redactor) -> None:
        self._door = door
        self._desk = desk
        self._watching = watching
        self._redactor = redactor
        self._limit = StreamLimit(MOST_STREAMS, MOST_STREAMS_EACH)

    def routes(self) -> list[BaseRoute]:
        at, opened = "/sessions/{id}", self._door.open
        paths: list[BaseRoute] = [
            Route("/openapi.json", self._described),
            Route("/sessions", opened(self._start), methods=["POST"]),
            Route(at, opened(self._show)),
            Route(f"{at}/events", opened(self._events)),
            Route(f"{at}/stop", opened(self._stop), methods=["POST"]),
            Route(f"{at}/messages", opened(self._say), methods=["POST"]),
            Route(f"{at}/approvals", opened(self._reply), methods=["POST"]),
        ]
        handlers = {HTTPException: _unrouted, Exception: _broken}
        mount = Mount(PREFIX, Starlette(routes=paths, exception_handlers=handlers))  # type: ignore[arg-type]
        mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)  # also with a line break
        return [mount]

    async def _described(self, request: Request) -> Response:
        return Response(openapi.document(), media_type="application/json")

    async def _start(self, request: Request, token: ApiToken) -> Response:
        wish, body = await self._door.body(request, SessionStart)
        repo = token.repo_named(wish.repository)
        if repo is None:
            raise Hidden("not in its scope")
        _require_kind(token, wish.kind)
        asked = ApiAsked(
            token=token.id,
            action=api.START,
            installation=token.installation_id,
            repo_id=repo.id,
            repository=repo.name,
            number=wish.number,
            at=self._desk.clock(),
            kind=wish.kind,
            words=wish.prompt.strip(),
            model=wish.model,
            base=wish.base,
            budget_usd=wish.budget_usd,
        )
        return await requests.ask(request, body, token, asked, self._desk)

    async def _stop(self, request: Request, token: ApiToken) -> Response:
        session = await self._session(request, token)
        return await requests.ask(request, b"", token, self._about(session, token, api.STOP), self._desk)

    async def _say(self, request: Request, token: ApiToken) -> Response:
        session = await self._session(request, token)
        wish, body = await self._door.body(request, SessionWords)
        _require_kind(token, wish.kind)
        asked = self._about(session, token, api.SAY, kind=wish.kind, words=wish.text.strip())
        return await requests.ask(request, body, token, asked, self._desk)

    async def _reply(self, request: Request, token: ApiToken) -> Response:
        session = await self._session(request, token)
        wish, body = await self._door.body(request, ApprovalWords)
        if not token.may_answer:
            raise ApiRefusal(403, "This token may not answer approvals. An owner allows that when they make a token.")
        asked = self._about(
            session,
            token,
            api.ANSWER,
            words=wish.text.strip(),
            approval=wish.approval,
            says_yes=wish.answer == "approve",
            scope=wish.scope,
        )
        return await requests.ask(request, body, token, asked, self._desk)

    def _about(self, session: Session, token: ApiToken, action: str, **more: object) -> ApiAsked:
        return ApiAsked(
            token=token.id,
            action=action,
            installation=token.installation_id,
            repo_id=session.repo_id,
            repository=session.repo.full_name,
            number=session.number,
            at=self._desk.clock(),
            **more,  # type: ignore[arg-type]
        )

    async def _session(self, request: Request, token: ApiToken) -> Session:
        """Find a session that the token has started a turn of; raise Hidden for all others."""
        name = str(request.path_params["id"])
        try:
            found = await sessions.session(self._desk.store, SessionId(name)) if _ID.fullmatch(name) else None
        except StoreError:
            found = None
        if found is None or found.installation_id != token.installation_id or not token.reaches(found.repo_id):
            raise Hidden("no such session")
        if not await api_tokens.knows(self._desk.store, token, found.id):
            raise Hidden("not one of its sessions")
        await self._door.require_writer(token, found.repo)
        return found

    async def _show(self, request: Request, token: ApiToken) -> Response:
        session, store = await self._session(request, token), self._desk.store
        turns = await sessions.turns_of(store, session.id)
        account = await spend.account(store, session.id)
        asked = await approvals.of_session(store, session.id)
        settings, thread = self._desk.settings, session.thread
        shown = await asyncio.to_thread(lambda: [turn_answer(one, self._redactor) for one in turns])
        kind, pages = "pull" if thread.is_pull else "issues", settings.pages_url
        return written(
            SessionAnswer(
                id=session.id,
                repository=thread.repo.full_name,
                number=thread.number,
                thread_url=f"{settings.github.url}/{thread.repo.full_name}/{kind}/{thread.number}",
                page_url=f"{pages}/sessions/{session.id}" if pages else None,
                branch=session.branch,
                pull_number=session.pull_number,
                pull_url=session.pull_url,
                state=TurnState(turns[-1].state).value,
                outcome=turns[-1].outcome.value if turns[-1].outcome else None,
                spent_usd=account.spent_usd,
                turns=shown,
                approvals=[
                    ApprovalAsked(
                        one.id,
                        one.kind.value,
                        one.turn,
                        one.asked_at,
                        self._redactor.redact(str(one.matter.get("shown") or one.matter.get("plan") or ""))[
                            :MOST_SHOWN
                        ],
                    )
                    for one in asked
                    if one.state is ApprovalState.OPEN
                ],
            )
        )

    async def _events(self, request: Request, token: ApiToken) -> Response:
        session = await self._session(request, token)
        if self._limit.refusal(token.made_by_id) is not None:
            raise ApiRefusal(503, "Too many streams are open. Close one, or try again in a moment.")
        watched = self._watching.of(session.id)
        await watched.refresh()
        given = request.headers.get("last-event-id", "")
        after = int(given) if given.isascii() and given.isdecimal() and len(given) < 18 else 0
        told = Telling(watched, self._redactor).allowed(self._door, token, session, after)
        return EventStream(self._limit.counted(token.made_by_id, told))


def _require_kind(token: ApiToken, kind: str) -> None:
    if kind not in token.kinds:
        allowed = ", ".join(token.kinds)
        raise ApiRefusal(403, f"This token may not start turns of the kind {kind}, only: {allowed}.")


async def _unrouted(request: Request, error: HTTPException) -> Response:
    status = 405 if error.status_code == 405 else 404
    answer = ApiRefusal(status, METHODS if status == 405 else NOT_FOUND).answer()
    answer.headers.update(error.headers or {})
    return answer


async def _broken(request: Request, error: Exception) -> Response:
    return ApiRefusal(500, BROKEN).answer()
