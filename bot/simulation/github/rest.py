"""The REST API's common rules: user agent, credentials, rate limits, JSON, pages, errors."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.simulation.github import auth
from bot.simulation.github.accounts import Account, App, Token
from bot.simulation.github.actions import Actions
from bot.simulation.github.auth import Credential, Refusal, TokenRules
from bot.simulation.github.limits import Limits
from bot.simulation.github.payloads import Json
from bot.simulation.github.state import BODY_LIMIT, Repository, State
from bot.simulation.github.threads import Issue

T = TypeVar("T")
BASE = "/api/v3"
VERSIONS = ("2022-11-28", "2026-03-10")
NO_USER_AGENT = (
    "Request forbidden by administrative rules. Please make sure your request has a User-Agent header "
    "(https://docs.github.com/en/rest/overview/resources-in-the-rest-api#user-agent-required).\n"
)


@dataclass(frozen=True)
class Desk:
    state: State
    actions: Actions
    limits: Limits
    tokens: TokenRules


@dataclass(frozen=True)
class Ask:
    """A request with a checked credential."""

    desk: Desk
    request: Request
    credential: Credential
    body: Json

    @property
    def state(self) -> State:
        return self.desk.state

    def param(self, name: str) -> str:
        return str(self.request.path_params[name])

    def number(self, name: str) -> int:
        text = self.param(name)
        if not text.isdecimal():
            raise Refusal(404, "Not Found")
        return int(text)

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def accepts(self, form: str) -> bool:
        """Decide whether the request asks for a media type such as `diff`, `raw` or `full`."""
        accept = self.request.headers.get("accept", "")
        return any(part in accept for part in (f"github.{form}", f"github.v3.{form}"))

    def app(self) -> App:
        if self.credential.app is None:
            raise Refusal(401, "A JSON web token could not be decoded")
        return self.credential.app

    def token(self) -> Token:
        if self.credential.token is None:
            raise Refusal(401, "Requires authentication")
        return self.credential.token

    @property
    def actor(self) -> Account:
        return self.token().installation.app.bot

    def repo(self, *needs: str) -> Repository:
        """Return the repository of the path, if the credential has one of the needs there."""
        repo = self._find_repo()
        auth.require(self.credential, repo, *needs)
        return repo

    def _find_repo(self) -> Repository:
        params = self.request.path_params
        if "repo_id" in params:
            found = self.state.repos.get(self.number("repo_id"))
            if found is None or found.deleted:
                raise Refusal(404, "Not Found")
            return found
        name = f"{params['owner']}/{params['repo']}"
        repo = self.state.repo(name)
        if repo:
            return repo
        moved = self.state.moved.get(name.lower())
        if moved is None or moved.deleted:
            raise Refusal(404, "Not Found")
        auth.require(self.credential, moved, "metadata:read")
        tail = self.request.url.path.removeprefix(f"{BASE}/repos/{name}")
        target = f"{self.state.api_url}/repositories/{moved.id}{tail}"
        raise Refusal(301, "Moved Permanently", headers={"Location": target})

    def issue(self, *needs: str) -> Issue:
        repo = self.repo(*needs)
        number = self.number("number")
        if number in repo.gone:
            raise _gone(self.state, repo.gone[number])
        if number not in repo.issues:
            raise Refusal(404, "Not Found")
        return repo.issues[number]

    def text(self, resource: str, name: str, *, limit: int = BODY_LIMIT, required: bool = True) -> str | None:
        """Return a string of the body; 422 if it is missing, empty, of another type or too long."""
        value = self.body.get(name)
        if value is None and not required:
            return None
        if not isinstance(value, str) or (required and not value.strip()):
            raise invalid(resource, name, "missing_field")
        if len(value) > limit:
            raise invalid(resource, name, "custom", f"{name} is too long (maximum is {limit} characters)")
        return value


def _gone(state: State, successor: Issue | None) -> Refusal:
    if successor is None:
        return Refusal(410, "This issue was deleted")
    target = f"{state.api_url}/repositories/{successor.repo.id}/issues/{successor.number}"
    return Refusal(301, "Moved Permanently", headers={"Location": target})


Handler = Callable[[Ask], Awaitable[Response]]
Table = Sequence[tuple[str, str, Handler]]


def of_repositories(*rows: tuple[str, str, Handler]) -> Table:
    """Build the paths below a repository, by its name and by its number."""
    prefixes = ("/repos/{owner}/{repo}", "/repositories/{repo_id}")
    return tuple((method, prefix + path, handler) for prefix in prefixes for method, path, handler in rows)


def invalid(resource: str, field: str | None, code: str, message: str | None = None) -> Refusal:
    error: Json = {"resource": resource, "code": code}
    error |= {"field": field} if field else {}
    error |= {"message": message} if message else {}
    return Refusal(422, "Validation Failed", errors=[error])


def answer(body: object, status: int = 200) -> Response:
    return JSONResponse(body, status)


def nothing() -> Response:
    return Response(status_code=204)


def page_of(ask: Ask) -> tuple[int, int]:
    """Return (page, per_page) within GitHub's bounds."""

    def number(name: str, default: int) -> int:
        text = ask.query(name)
        return max(1, int(text)) if text.isdecimal() else default

    return number("page", 1), min(100, number("per_page", 30))


def paged(
    ask: Ask,
    items: Sequence[T],
    render: Callable[[T], Any],
    wrap: str | None = None,
    beside: Mapping[str, Any] | None = None,
) -> Response:
    """Answer with one page of the items and its Link header; `wrap` names the list in an object with its total and the
    fields `beside` it."""
    page, size = page_of(ask)
    last = max(1, -(-len(items) // size))
    shown = [render(item) for item in items[(page - 1) * size : page * size]]
    body: object = {**(beside or {}), "total_count": len(items), wrap: shown} if wrap else shown
    answered = answer(body)
    ends = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
    wanted = [
        name for name in ends if (name in ("next", "last") and page < last) or (name in ("prev", "first") and page > 1)
    ]
    if wanted:
        answered.headers["Link"] = ", ".join(f'<{_at(ask, page=ends[name])}>; rel="{name}"' for name in wanted)
    return answered


def _at(ask: Ask, **changed: object) -> str:
    query = dict(ask.request.query_params) | {name: str(value) for name, value in changed.items()}
    return f"{ask.state.url}{ask.request.url.path}?{urlencode(query)}"


def link(ask: Ask, rel: str, **changed: object) -> str:
    return f'<{_at(ask, **changed)}>; rel="{rel}"'


def routes(desk: Desk, tables: Sequence[Table]) -> list[Route]:
    """Make one route per path. An unknown method is 404, as at GitHub, and so is any other path."""
    by_path: dict[str, dict[str, Handler]] = {}
    for table in tables:
        for method, path, handler in table:
            by_path.setdefault(path, {})[method] = handler
    by_path["/{anything:path}"] = {}
    return [_route(desk, path, handlers) for path, handlers in by_path.items()]


def _route(desk: Desk, path: str, handlers: dict[str, Handler]) -> Route:
    async def endpoint(request: Request) -> Response:
        handler = handlers.get("GET" if request.method == "HEAD" else request.method, _missing)
        return await respond(desk, request, handler)

    return Route(BASE + path, endpoint, methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])


async def _missing(_: Ask) -> Response:
    raise Refusal(404, "Not Found")


async def respond(desk: Desk, request: Request, handler: Handler) -> Response:
    if not request.headers.get("user-agent"):
        return Response(NO_USER_AGENT, 403, media_type="text/html")
    credential, extra = Credential(), {}
    try:
        credential = auth.authenticate(desk.state, request.headers.get("authorization"))
        request.scope["forgehand.credential"] = credential.kind
        # asking for the rate limit is free
        extra = desk.limits.take(credential, cost=0 if handler.__name__ == "get_rate_limit" else 1)
        answered = await handler(Ask(desk, request, credential, await _body(request)))
        answered = _unchanged(desk, request, credential, answered)
    except Refusal as refusal:
        answered = JSONResponse(refusal.body, refusal.status, refusal.headers)
    for name, value in (extra | _standard(desk, request)).items():
        answered.headers.setdefault(name, value)
    return answered


async def _body(request: Request) -> Json:
    raw = await request.body()
    if not raw or request.method in ("GET", "HEAD"):
        return {}
    try:
        found = json.loads(raw)
    except ValueError:
        raise Refusal(400, "Problems parsing JSON") from None
    if not isinstance(found, dict):
        raise Refusal(422, "Invalid request.\n\nBody should be a JSON object")
    return found


def _unchanged(desk: Desk, request: Request, credential: Credential, answered: Response) -> Response:
    if request.method != "GET" or answered.status_code != 200:
        return answered
    tag = f'W/"{hashlib.sha256(bytes(answered.body)).hexdigest()}"'
    answered.headers["ETag"] = tag
    if request.headers.get("if-none-match") == tag:
        desk.limits.give_back(credential)
        return Response(status_code=304, headers={"ETag": tag})
    return answered


def _standard(desk: Desk, request: Request) -> dict[str, str]:
    version = request.headers.get("x-github-api-version", VERSIONS[0])
    if version not in VERSIONS:
        version = VERSIONS[0]
    return {
        "Date": formatdate(desk.state.clock(), usegmt=True),
        "X-GitHub-Request-Id": secrets.token_hex(8).upper(),
        "X-GitHub-Media-Type": "github.v3; format=json",
        "X-GitHub-Api-Version-Selected": version,
    }
