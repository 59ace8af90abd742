"""Guards the set-up page: the terminal's token opens it once, and after that a cookie lets the same browser in."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from bot.settings import Secret
from bot.web.pages import origin

COOKIE = "forgehand_setup"
VISIT_SECONDS = 4 * 3600.0
STATE_SECONDS = 3600.0
"""GitHub's code is valid for as long."""
MOST_VISITS = 200


class Door:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._token: Secret | None = Secret(secrets.token_urlsafe(24))
        self._visits: dict[str, float] = {}
        """The visits that were let in, with the time when each ends."""
        self._states: dict[str, float] = {}

    @property
    def token(self) -> Secret:
        """Return the token; only the terminal may show it."""
        assert self._token is not None, "it was used"
        return self._token

    def is_open_to(self, request: Request) -> bool:
        return self._clock() < self._visits.get(request.cookies.get(COOKIE, ""), 0.0)

    def visit(self, request: Request) -> str:
        """Return the browser's mark: its cookie, or a new one, which opens nothing yet."""
        given = request.cookies.get(COOKIE, "")
        return given if 20 < len(given) < 100 else secrets.token_urlsafe(32)

    def csrf(self, visit: str) -> str:
        return hmac.digest(self._key, visit.encode(), "sha256").hex()

    def is_ours(self, request: Request, given: str) -> bool:
        """Return True for our form, sent from this site by the browser that we gave it to."""
        return origin.is_same(request) and hmac.compare_digest(
            self.csrf(request.cookies.get(COOKIE, "")).encode(), given.encode()
        )

    def open(self, given: str) -> str | None:
        """Use up the token and return the browser's new mark; None if the token is wrong."""
        token = self._token.reveal() if self._token else secrets.token_urlsafe(24)
        if not hmac.compare_digest(token.encode(), given.strip().encode()) or self._token is None:
            return None
        self._token = None
        visit = secrets.token_urlsafe(32)
        self._visits[visit] = self._clock() + VISIT_SECONDS
        return visit

    def new_state(self) -> str:
        if len(self._states) >= MOST_VISITS:
            self._states.pop(next(iter(self._states)))
        state = secrets.token_urlsafe(24)
        self._states[state] = self._clock() + STATE_SECONDS
        return state

    def came_back(self, state: str) -> bool:
        """Accept a state once. Only the state identifies the browser: no cookie comes with a link from another site."""
        return self._clock() < self._states.pop(state, 0.0)

    def mark(self, request: Request, response: Response, visit: str) -> None:
        response.set_cookie(
            COOKIE,
            visit,
            max_age=int(VISIT_SECONDS),
            path="/setup",
            secure=origin.is_https(request),
            httponly=True,
            samesite="strict",
        )
