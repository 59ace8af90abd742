"""Finds the session that an address names, for people who may read its repository."""

from __future__ import annotations

import re

from starlette.requests import Request

from bot.errors import Hidden, StoreError
from bot.models import SessionId
from bot.store import sessions
from bot.store.sessions import Session
from bot.web.pages.access import Place
from bot.web.pages.gate import Gate, Stay
from bot.web.pages.visitors import Visitor

_ID = re.compile(r"[a-z0-9]{8}")


async def session_of(gate: Gate, request: Request, visitor: Visitor) -> Session:
    """Raise Hidden for people who cannot read its repository."""
    name = request.path_params["id"]
    try:
        found = await sessions.session(gate.store, SessionId(name)) if _ID.fullmatch(name) else None
    except StoreError:
        found = None
    if found is None or not await gate.access.may_read(visitor, place_of(found)):
        raise Hidden("no such session")
    return found


def stay(gate: Gate, visitor: Visitor, session: Session) -> Stay:
    return Stay(gate, visitor, place_of(session))


def place_of(session: Session) -> Place:
    return session.thread.repo, session.installation_id
