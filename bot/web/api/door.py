"""Every request of the API passes here: whose token it has, how many came, how long it is, and how errors leave."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bot.errors import BotError, Hidden, TransientError
from bot.models import InstallationId, Permission, Repo
from bot.store import api_tokens
from bot.store.api_tokens import ApiToken
from bot.store.base import Store
from bot.web.api.answers import ApiRefusal
from bot.web.bodies import BodyLimits, BodyReader, BodyRefused, Disconnected
from bot.web.pages.access import VisitorAccess
from bot.web.pages.share_access import RateLimit
from bot.web.pages.visitors import Visitor

log = logging.getLogger(__name__)

T = TypeVar("T")
Act = Callable[[Request, ApiToken], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]
PER_MINUTE = 120
MOST_LIMITS = 10_000
LIMITS = BodyLimits(most_bytes=128 * 1024, seconds=10.0, all_bytes=8 << 20)
UNKNOWN = (
    "Send `Authorization: Bearer TOKEN` with a token that works. An owner of the account makes one on its settings "
    "page, and may revoke it."
)
NOT_FOUND = "This does not exist, or the token may not see it."
_SECRET = re.compile(r"fhat_[A-Za-z0-9_-]{43}")


class ApiDoor:
    def __init__(self, store: Store, access: VisitorAccess) -> None:
        self.store = store
        self._access = access
        self._limits: dict[str, RateLimit] = {}
        self._bodies = BodyReader(LIMITS)

    def open(self, act: Act) -> Endpoint:
        """Let in who has a token, and write every error in the one shape."""

        async def answer(request: Request) -> Response:
            try:
                return await act(request, await self._admitted(request))
            except ApiRefusal as refusal:
                return refusal.answer()
            except BodyRefused as refusal:
                return ApiRefusal(refusal.status, refusal.sentence).answer()
            except Hidden:
                return ApiRefusal(404, NOT_FOUND).answer()
            except TransientError as error:
                log.warning("the API waits", extra={"error": str(error)})
                return ApiRefusal(503, "GitHub or the store does not answer. Try again in a moment.").answer()
            except BotError as error:
                return ApiRefusal(422, str(error)).answer()

        return answer

    async def _admitted(self, request: Request) -> ApiToken:
        given = request.headers.getlist("authorization")
        kind, _, secret = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        right = kind.casefold() == "bearer" and _SECRET.fullmatch(secret)
        token = await api_tokens.by_secret(self.store, secret) if right else None
        if token is None:
            raise ApiRefusal(401, UNKNOWN)
        if len(self._limits) >= MOST_LIMITS:
            self._limits.clear()
        if not self._limits.setdefault(token.id, RateLimit(PER_MINUTE)).take():
            raise ApiRefusal(429, f"This token may ask {PER_MINUTE} times a minute. Try again in a moment.")
        return token

    async def body(self, request: Request, of: type[T]) -> tuple[T, bytes]:
        """Decode the body; a sentence says what is wrong in it."""
        length = request.headers.get("content-length", "")
        declared = int(length) if length.isascii() and length.isdecimal() and len(length) < 18 else None
        try:
            body = bytes(await self._bodies.read(request.receive, declared))
            return msgspec.json.decode(body, type=of), body
        except Disconnected:
            raise ApiRefusal(400, "The body ended too early.") from None
        except msgspec.ValidationError as error:
            raise ApiRefusal(422, f"{error}. /api/v1/openapi.json describes the body.") from None
        except (ValueError, RecursionError):
            raise ApiRefusal(400, "The body is not JSON in UTF-8.") from None

    async def require_writer(self, token: ApiToken, repo: Repo, *, fresh: bool = False) -> None:
        """Raise Hidden unless the person who made the token may still write there; GitHub's answer holds a minute."""
        maker = Visitor(token.made_by_id, token.made_by, 0.0, "", "")
        place = repo, InstallationId(token.installation_id)
        permission: Permission = await self._access.permission(maker, place, fresh=fresh)
        if not permission.may_write:
            raise Hidden("its maker may not write there")

    def doubts(self, token: ApiToken) -> int:
        """Return a number that changes whenever something about the maker is in doubt."""
        return self._access.doubts(token.made_by_id)
