"""Sends one request to GitHub's API: its deadline, when it is repeated, and which of our errors an answer means."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from bot.errors import GitHubRefused, GitHubUnavailable, NotFound
from bot.loops import beside
from bot.settings import Secret

if TYPE_CHECKING:
    from githubkit import GitHub, UnauthAuthStrategy

    from bot.github.client import SharedTransport

T = TypeVar("T")

GRAPHQL = "/graphql"
"""The path of GraphQL, which is beside the REST API's base address, not below it."""
PLAIN = "application/vnd.github+json"
API_VERSION = "2022-11-28"
CONNECT_SECONDS = 10.0
READ_SECONDS = 20.0
DEADLINE_SECONDS = 60.0
REPEAT_AFTER_SECONDS = (0.5, 2.0)
LIMIT_WAIT_SECONDS = 75.0
MAX_REDIRECTS = 3
LARGE = 1 << 18
"""A longer answer is decoded beside the event loop."""
_REDIRECTS = (301, 302, 307, 308)
_UNSENT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "ProxyError")


@dataclass(frozen=True)
class ApiCall:
    """A request. A POST is `repeatable` if twice has the same effect as once."""

    method: str
    path: str
    params: Mapping[str, str | int] | None = None
    body: Mapping[str, Any] | None = None
    accept: str = PLAIN
    repeatable: bool = False
    once: bool = False
    """Never repeated, because each request would add something, whatever the method."""
    elsewhere: bool = False
    """The answer may be an address on another host, which we return instead of following it."""

    @property
    def may_repeat(self) -> bool:
        return self.repeatable or (self.method != "POST" and not self.once)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class ApiAnswer:
    call: ApiCall
    status: int
    headers: Mapping[str, str]
    content: bytes

    def decode(self, shape: type[T]) -> T:
        """Decode the body; anything else than `shape` (a proxy's page, half a document) means GitHub is unavailable."""
        try:
            return msgspec.json.decode(self.content, type=shape)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            problem = type(error).__name__
        raise GitHubUnavailable(f"{self.call}: the answer cannot be read ({problem}).")

    async def decoded(self, shape: type[T]) -> T:
        """Decode a long body beside the event loop: lists of people's texts may have 40 MB."""
        return await beside(partial(self.decode, shape), size=len(self.content), most=LARGE)

    def last_page(self) -> int:
        """Return the number of a list's last page."""
        found = re.search(r'[?&]page=(\d{1,9})\b[^>]*>;\s*rel="last"', self.headers.get("link", ""))
        return int(found[1]) if found else 1

    def next_cursor(self) -> str | None:
        found = re.search(r'[?&]cursor=([\w%.:=-]+)[^>]*>;\s*rel="next"', self.headers.get("link", ""))
        return found[1] if found else None


@dataclass(frozen=True)
class _Fault:
    """No usable answer; `sent` tells whether GitHub may have acted, `passing` whether another try may help."""

    words: str
    sent: bool
    passing: bool = True


class Api:
    """The API under one base address. Each call brings its authorization, which goes to that host alone."""

    def __init__(self, base_url: str, repeat_after: Sequence[float] = REPEAT_AFTER_SECONDS) -> None:
        self._base = base_url.rstrip("/") + "/"
        self.repeat_after = tuple(repeat_after)
        self._transport: SharedTransport | None = None
        self._github: GitHub[UnauthAuthStrategy] | None = None

    async def send(self, call: ApiCall, authorization: Secret | None) -> ApiAnswer:
        """Return an answer below 500 that is no rate limit; otherwise raise GitHubUnavailable after all safe tries."""
        result = await self._follow(call, authorization)
        for pause in self.repeat_after:
            if isinstance(result, ApiAnswer) or not (result.passing and (call.may_repeat or not result.sent)):
                break
            await asyncio.sleep(pause)
            result = await self._follow(call, authorization)
        if isinstance(result, _Fault):
            raise GitHubUnavailable(f"{call}: {result.words}.")
        if (wait := _limit_wait(result)) is not None:
            raise GitHubUnavailable(f"{call}: GitHub's rate limit was reached.", wait)
        return result

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.shut()
        self._transport = self._github = None

    async def _follow(self, call: ApiCall, authorization: Secret | None) -> ApiAnswer | _Fault:
        """Follow redirects (a renamed repository) on the API's own host only."""
        url = self._base + call.path.lstrip("/")
        if call.path == GRAPHQL and self._base.endswith("/api/v3/"):  # as GitHub Enterprise Server has it
            url = f"{self._base.removesuffix('/v3/')}{GRAPHQL}"
        for _ in range(MAX_REDIRECTS + 1):
            result = await self._exchange(call, url, authorization)
            if isinstance(result, _Fault) or result.status not in _REDIRECTS:
                return result
            url = urljoin(url, result.headers.get("location", ""))
            if not self._is_ours(url) and call.elsewhere:
                return result
            if not self._is_ours(url):
                return _Fault("it redirects to another host, which we do not follow", sent=True, passing=False)
        return _Fault("it redirects in circles", sent=True, passing=False)

    def _is_ours(self, url: str) -> bool:
        try:
            ours, theirs = urlsplit(self._base), urlsplit(url)
            return (ours.scheme, ours.hostname, ours.port) == (theirs.scheme, theirs.hostname, theirs.port)
        except ValueError:
            return False

    async def _exchange(self, call: ApiCall, url: str, authorization: Secret | None) -> ApiAnswer | _Fault:
        # We return faults and raise elsewhere: an exception raised here would carry githubkit's as its context, and
        # with it the request and its Authorization header.
        from githubkit.exception import GitHubException, RequestFailed

        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                response = (
                    await self._client().arequest(
                        call.method,
                        url,
                        params=dict(call.params) if call.params else None,
                        json=dict(call.body) if call.body is not None else None,
                        headers=_headers(call, authorization),
                    )
                ).raw_response
        except TimeoutError:
            return _Fault("no answer in time", sent=True)
        except RequestFailed as failed:
            response = failed.response.raw_response
        except GitHubException as error:
            cause = type(getattr(error, "exc", error)).__name__
            if cause in _UNSENT:
                return _Fault(f"GitHub could not be reached ({cause})", sent=False)
            return _Fault(f"GitHub did not answer ({cause})", sent=True)
        if response.status_code >= 500:
            return _Fault(f"GitHub answered {response.status_code}", sent=True)
        return ApiAnswer(call, response.status_code, response.headers, response.content)

    def _client(self) -> GitHub[UnauthAuthStrategy]:
        if self._github is None:
            import httpx
            from githubkit import GitHub, UnauthAuthStrategy
            from githubkit.cache import MemCacheStrategy

            from bot.github.client import SharedTransport, environment_proxy, ssl_context

            self._transport = SharedTransport(environment_proxy(self._base))
            self._github = GitHub(
                UnauthAuthStrategy(),  # tokens are ours: githubkit's cache neither locks nor heals
                base_url=self._base,
                user_agent="forgehand",
                follow_redirects=False,
                timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
                ssl_verify=ssl_context(),
                async_transport=self._transport,
                cache_strategy=MemCacheStrategy(),  # the default one is shared by the whole process
                http_cache=False,
                auto_retry=False,  # it re-sends a POST after a 502, which makes two comments
            )
        return self._github


def _headers(call: ApiCall, authorization: Secret | None) -> dict[str, str]:
    headers = {"Accept": call.accept, "X-GitHub-Api-Version": API_VERSION}
    if authorization is not None:
        headers["Authorization"] = authorization.reveal()
    return headers


def _limit_wait(answer: ApiAnswer) -> float | None:
    """Return the seconds to wait if the answer is a rate limit, else None."""
    if answer.status not in (403, 429):
        return None
    headers = answer.headers
    if "retry-after" in headers:
        return max(1.0, float(headers["retry-after"]))
    if headers.get("x-ratelimit-remaining") == "0" and "x-ratelimit-reset" in headers:
        return max(1.0, float(headers["x-ratelimit-reset"]) - server_time(headers, 0.0))
    words = message(answer).lower()
    if answer.status == 429 or "secondary rate limit" in words or "abuse detection" in words:
        return LIMIT_WAIT_SECONDS
    return None


def server_time(headers: Mapping[str, str], default: float) -> float:
    """Read GitHub's clock from the Date header."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return default


class _Refusal(msgspec.Struct):
    message: str = ""
    errors: list[Any] = msgspec.field(default_factory=list)


def message(answer: ApiAnswer) -> str:
    """Return GitHub's reason for a refusal as one bounded line."""
    try:
        refusal = msgspec.json.decode(answer.content, type=_Refusal)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "no reason was given"
    errors = [error.get("message", "") if isinstance(error, dict) else error for error in refusal.errors[:5]]
    words = [refusal.message, *errors]
    line = "; ".join(word for word in words if isinstance(word, str) and word)
    return re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", line)[:500] or "no reason was given"


def require(answer: ApiAnswer) -> ApiAnswer:
    """Return the answer if it is a success, else raise the error that it means."""
    if 200 <= answer.status < 300 or (answer.call.elsewhere and answer.status in _REDIRECTS):
        return answer
    if answer.status == 404:
        raise NotFound(f"{answer.call}: {message(answer)}")
    if 400 <= answer.status < 500:
        raise GitHubRefused(answer.status, f"{answer.call}: {message(answer)}")
    raise GitHubUnavailable(f"{answer.call}: GitHub answered {answer.status}.")
