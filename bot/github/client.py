"""GitHub's API for the App and for one installation, over a transport that keeps our time limits."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from bot.errors import NotFound, Unrecognised
from bot.github import wire
from bot.github.api import REPEAT_AFTER_SECONDS, Api, ApiAnswer, ApiCall, message, require, server_time
from bot.github.downloads import Attachments, JobLogs
from bot.github.reads import MAX_PAGES, PAGE, Reads, segment
from bot.github.tokens import Clock, Signer, Tokens
from bot.github.types import AppIdentity, DeliveryPage, Hook, InstallationView, Registration, TokenPurpose
from bot.models import InstallationId, RepoId
from bot.settings import GitHubSettings, Secret

Way = Callable[[], Coroutine[Any, Any, ApiAnswer]]

ASKED_FOR_THE_BOT = 3
PATIENCE_SECONDS = 0.3
"""With one installation: everybody's commands wait until the bot's account is known."""


def _ignore(_: str) -> None:
    return


class GitHubApp:
    """One per process. `on_secret` hears of every token before its first use, `on_retired` once it is dead."""

    def __init__(
        self,
        settings: GitHubSettings,
        *,
        clock: Clock = time.time,
        on_secret: Callable[[str], None] = _ignore,
        on_retired: Callable[[str], None] = _ignore,
        repeat_after: Sequence[float] = REPEAT_AFTER_SECONDS,
    ) -> None:
        self._clock = clock
        self._on_secret = on_secret
        self._on_retired = on_retired
        self._api = Api(settings.api_url, repeat_after)
        self._noreply_host = f"users.noreply.{urlsplit(settings.url).hostname}"
        self.attachments = Attachments(settings.url)
        self.job_logs = JobLogs(settings.api_url)
        self._signer = Signer(settings.app_id, settings.private_key, clock)
        self._installations: dict[InstallationId, InstallationClient] = {}
        self._identity: AppIdentity | None = None
        self._asking = asyncio.Lock()

    async def identity(self) -> AppIdentity:
        """Asked once."""
        async with self._asking:
            if self._identity is None:
                app = await self._app()
                self._identity = app.identity(await self._bot(app.slug), self._noreply_host)
            return self._identity

    async def _app(self) -> wire.AppJson:
        return require(await self.call(ApiCall("GET", "/app"))).decode(wire.AppJson)

    async def registration(self) -> Registration:
        """Asks what the App may do and hears of."""
        return (await self._app()).registration()

    async def _bot(self, slug: str) -> wire.UserJson:
        """The bot's account is public, but asking for it takes an installation's token or nobody's: not the App's."""
        call = ApiCall("GET", f"/users/{quote(slug, safe='')}%5Bbot%5D")
        listed = require(await self.call(ApiCall("GET", "/app/installations", {"per_page": PAGE})))
        active = [one.id for one in listed.decode(list[wire.InstallationJson]) if one.suspended_at is None]
        places = [self.installation(InstallationId(one)) for one in active[:ASKED_FOR_THE_BOT]]
        ways: list[Way] = [partial(place.call, call, TokenPurpose.METADATA, None) for place in places]
        ways.append(partial(self._as_nobody, call))
        return (await _first_answer(ways, PATIENCE_SECONDS)).decode(wire.UserJson)

    async def _as_nobody(self, call: ApiCall) -> ApiAnswer:
        return require(await self._api.send(call, None))

    async def clock_skew(self) -> float:
        """Seconds by which GitHub's clock is ahead of ours."""
        answer = await self.call(ApiCall("GET", "/app"))
        return server_time(answer.headers, self._clock()) - self._clock()

    async def hook(self) -> Hook:
        """Where GitHub sends the App's webhooks; its address is empty where there is none."""
        try:
            return require(await self.call(ApiCall("GET", "/app/hook/config"))).decode(wire.HookJson).hook()
        except NotFound:
            return Hook("", "")

    async def installations(self) -> list[InstallationView]:
        """Lists all of them, in pages of a bounded number."""
        found: list[InstallationView] = []
        for page in range(1, MAX_PAGES + 1):
            call = ApiCall("GET", "/app/installations", {"per_page": PAGE, "page": page})
            listed = require(await self.call(call)).decode(list[wire.InstallationJson])
            found += [one.view() for one in listed]
            if len(listed) < PAGE:
                break
        return found

    async def installed(self, installation_id: InstallationId) -> InstallationView:
        """NotFound when it is no more."""
        answer = require(await self.call(ApiCall("GET", f"/app/installations/{installation_id}")))
        return answer.decode(wire.InstallationJson).view()

    async def installed_on(self, full_name: str) -> InstallationView | None:
        """The installation that covers a repository; None where there is none, or nothing of the repository is seen."""
        owner, _, name = full_name.partition("/")
        call = ApiCall("GET", f"/repos/{segment(owner)}/{segment(name)}/installation")
        try:
            found = require(await self.call(call)).decode(wire.InstallationJson).view()
        except NotFound:
            return None
        return None if found.is_suspended else found

    def installation(self, installation_id: InstallationId) -> InstallationClient:
        if installation_id not in self._installations:
            tokens = Tokens(
                installation_id, self.call, clock=self._clock, on_secret=self._on_secret, on_retired=self._on_retired
            )
            self._installations[installation_id] = InstallationClient(installation_id, self._api, tokens)
        return self._installations[installation_id]

    async def call(self, call: ApiCall) -> ApiAnswer:
        """Calls as the App itself; a refusal because our clock is wrong is healed once, by GitHub's clock."""
        answer = await self._api.send(call, self._signer.authorization())
        if answer.status == 401 and self._signer.learn(answer):
            answer = await self._api.send(call, self._signer.authorization())
        return _recognised(answer)

    async def deliveries(self, cursor: str | None = None, *, status: str | None = None) -> DeliveryPage:
        """A page of the App's delivery log, newest first."""
        params: dict[str, str | int] = {"per_page": 100}
        if cursor is not None:
            params["cursor"] = cursor
        if status is not None:
            params["status"] = status
        answer = require(await self.call(ApiCall("GET", "/app/hook/deliveries", params)))
        items = tuple(one.delivery() for one in await answer.decoded(list[wire.DeliveryJson]))
        return DeliveryPage(items, answer.next_cursor())

    async def delivery_payload(self, delivery_id: int) -> bytes:
        """The JSON that was, or should have been, delivered; trusted for the connection that it came over."""
        answer = require(await self.call(ApiCall("GET", f"/app/hook/deliveries/{delivery_id}")))
        return bytes((await answer.decoded(wire.DeliveryDetail)).request.payload)

    async def close(self) -> None:
        await self.attachments.close()
        await self.job_logs.close()
        await self._api.close()


class InstallationClient(Reads):
    """One account's installation: its tokens, and calls made with them."""

    def __init__(self, installation_id: InstallationId, api: Api, tokens: Tokens) -> None:
        self.id = installation_id
        self._api = api
        self._tokens = tokens

    async def token(self, purpose: TokenPurpose, repo: RepoId | None, *, fresh: bool = False) -> Secret:
        """Scoped to the repository and to what the purpose needs; `fresh` lives its full time from now."""
        return await self._tokens.get(purpose, repo, fresh=fresh)

    async def call(self, call: ApiCall, purpose: TokenPurpose, repo: RepoId | None) -> ApiAnswer:
        """A success, or the error that the answer means; a dead token is replaced once."""
        answer, token = await self._send(call, purpose, repo)
        if answer.status == 401:  # it was not acted upon: sending again is safe for every method
            self._tokens.discard(purpose, repo, token)
            # The new token is kept, whatever comes of it: it may have to become a few seconds old before it is known.
            answer, _ = await self._send(call, purpose, repo)
        for pause in self._api.repeat_after:
            if answer.status != 401:
                break
            await asyncio.sleep(pause)
            answer, _ = await self._send(call, purpose, repo)
        return require(_recognised(answer))

    async def _send(self, call: ApiCall, purpose: TokenPurpose, repo: RepoId | None) -> tuple[ApiAnswer, Secret]:
        token = await self._tokens.get(purpose, repo)
        return await self._api.send(call, Secret(f"token {token.reveal()}")), token


def _recognised(answer: ApiAnswer) -> ApiAnswer:
    if answer.status == 401:
        raise Unrecognised(f"{answer.call}: {message(answer)}")
    return answer


async def _first_answer(ways: Sequence[Way], patience: float) -> ApiAnswer:
    """Asks in the next way when one has failed, or none has answered for so long, so that a silent one keeps nobody
    waiting. The first answer counts, and without any the last error. There is at least one way."""
    running: set[asyncio.Task[ApiAnswer]] = set()
    left = list(ways)
    error: BaseException | None = None
    try:
        while left or running:
            if left:
                running.add(asyncio.create_task(left.pop(0)()))
            wait = asyncio.wait(running, timeout=patience if left else None, return_when=asyncio.FIRST_COMPLETED)
            done, running = await wait
            for one in done:
                if (error := one.exception()) is None:
                    return one.result()
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    assert error is not None
    raise error


MAX_ANSWER_BYTES = 40 << 20  # 100 comments of 65,536 characters, each escaped as JSON, are 39 MB
DEFAULT_WAIT = 75  # GitHub asks for at least a minute when it names no time


@lru_cache(maxsize=1)
def ssl_context() -> ssl.SSLContext:
    """Building one costs 20 ms and 800 KB, so it is built once a process."""
    return ssl.create_default_context()


def environment_proxy(url: str) -> str | None:
    """The operator's HTTP(S)_PROXY for an address: httpx looks at it only without a transport of our own."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    found = getproxies()
    return found.get(parts.scheme) or found.get("all")


class SharedTransport(httpx.AsyncBaseTransport):
    """Outlives the clients that githubkit makes for every request, so that connections are kept alive."""

    def __init__(self, proxy: str | None = None) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=ssl_context(), proxy=proxy)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        _tame(response.headers)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Bounded(response.stream)
        return response

    async def __aenter__(self) -> SharedTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        """A client that closes leaves the pool open."""

    async def aclose(self) -> None:
        """A client that closes leaves the pool open."""

    async def shut(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx.AsyncByteStream):
    """Ends a body that no answer of GitHub's can have."""

    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self._inner:
            seen += len(chunk)
            if seen > MAX_ANSWER_BYTES:
                raise httpx.ReadError("the answer is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _tame(headers: httpx.Headers) -> None:
    """githubkit turns these into numbers without a check; a proxy in between may send anything."""
    wait = headers.get("retry-after")
    if wait is not None and not _is_number(wait):
        headers["retry-after"] = str(_seconds_until(wait))
    reset = headers.get("x-ratelimit-reset")
    if reset is not None and not _is_number(reset):
        del headers["x-ratelimit-reset"]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10


def _seconds_until(date: str) -> int:
    try:
        return max(0, round(parsedate_to_datetime(date).timestamp() - time.time()))
    except (ValueError, OverflowError):
        return DEFAULT_WAIT
