"""GitHub's API for the App and for each installation, over a transport that keeps connections open."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
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

if TYPE_CHECKING:
    from bot.github.large_files import LargeFiles

Way = Callable[[], Coroutine[Any, Any, ApiAnswer]]

MAX_ANSWER_BYTES = 40 << 20  # 100 comments of 65,536 characters, each escaped as JSON, are 39 MB
DEFAULT_WAIT = 75  # GitHub asks for at least a minute when it names no time
ASKED_FOR_THE_BOT = 3
PATIENCE_SECONDS = 0.3
"""The time for one installation before we also ask the next: all commands wait until we know the bot's account."""


class GitHubApp:
    """One per process. `on_secret` hears of every token before its first use, `on_retired` after its end."""

    def __init__(
        self,
        settings: GitHubSettings,
        *,
        clock: Clock = time.time,
        on_secret: Callable[[str], None] = lambda _: None,
        on_retired: Callable[[str], None] = lambda _: None,
        may_act: Callable[[], bool] = lambda: True,
        repeat_after: Sequence[float] = REPEAT_AFTER_SECONDS,
    ) -> None:
        """`may_act`: whether nobody else may be doing our work; until then nothing is asked for an installation."""
        self._clock, self._on_secret, self._on_retired, self._may_act = clock, on_secret, on_retired, may_act
        self._api, self.web_url = Api(settings.api_url, repeat_after), settings.url
        self._noreply_host = f"users.noreply.{urlsplit(settings.url).hostname}"
        self.attachments = Attachments(settings.url)
        self.job_logs = JobLogs(settings.api_url)
        self._large_files: LargeFiles | None = None
        self._signer = Signer(settings.app_id, settings.private_key, clock)
        self._installations: dict[InstallationId, InstallationClient] = {}
        self._identity: AppIdentity | None = None
        self._asking = asyncio.Lock()

    @property
    def large_files(self) -> LargeFiles:
        if self._large_files is None:
            from bot.github.large_files import LargeFiles

            self._large_files = LargeFiles(self.web_url)
        return self._large_files

    async def identity(self) -> AppIdentity:
        """Return who we are; only the first call asks GitHub."""
        async with self._asking:
            if self._identity is None:
                app = await self._app()
                self._identity = app.identity(await self._account(f"{app.slug}[bot]"), self._noreply_host)
            return self._identity

    async def _app(self) -> wire.AppJson:
        return require(await self.call(ApiCall("GET", "/app"))).decode(wire.AppJson)

    async def registration(self) -> Registration:
        """Ask for the App's permissions and events."""
        return (await self._app()).registration()

    async def account_id(self, login: str) -> int | None:
        """Return the number of the account that has this login now."""
        try:
            return (await self._account(login)).id
        except NotFound:
            return None

    async def _account(self, login: str) -> wire.UserJson:
        """Ask with an installation's token or without any; GitHub refuses the App's JWT."""
        call = ApiCall("GET", f"/users/{quote(login, safe='')}")
        listed = require(await self.call(ApiCall("GET", "/app/installations", {"per_page": PAGE})))
        active = [one.id for one in listed.decode(list[wire.InstallationJson]) if one.suspended_at is None]
        places = [self.installation(InstallationId(one)) for one in active[:ASKED_FOR_THE_BOT]]
        ways: list[Way] = [partial(place.call, call, TokenPurpose.METADATA, None) for place in places]
        ways.append(partial(self._as_nobody, call))
        return (await _first_answer(ways, PATIENCE_SECONDS)).decode(wire.UserJson)

    async def _as_nobody(self, call: ApiCall) -> ApiAnswer:
        return require(await self._api.send(call, None))

    async def clock_skew(self) -> float:
        """Return the seconds by which GitHub's clock is ahead of ours."""
        answer = await self.call(ApiCall("GET", "/app"))
        return server_time(answer.headers, self._clock()) - self._clock()

    async def hook(self) -> Hook:
        """Return the App's webhook, with an empty address if there is none."""
        try:
            return require(await self.call(ApiCall("GET", "/app/hook/config"))).decode(wire.HookJson).hook()
        except NotFound:
            return Hook("", "")

    async def installations(self) -> list[InstallationView]:
        found: list[InstallationView] = []
        for page in range(1, MAX_PAGES + 1):
            call = ApiCall("GET", "/app/installations", {"per_page": PAGE, "page": page})
            listed = require(await self.call(call)).decode(list[wire.InstallationJson])
            found += [one.view() for one in listed]
            if len(listed) < PAGE:
                break
        return found

    async def installed(self, installation_id: InstallationId) -> InstallationView:
        """Raise NotFound if it is gone."""
        answer = require(await self.call(ApiCall("GET", f"/app/installations/{installation_id}")))
        return answer.decode(wire.InstallationJson).view()

    async def installed_on(self, full_name: str) -> InstallationView | None:
        """Return the active installation that covers a repository, if we can see the repository."""
        owner, _, name = full_name.partition("/")
        call = ApiCall("GET", f"/repos/{segment(owner)}/{segment(name)}/installation")
        try:
            found = require(await self.call(call)).decode(wire.InstallationJson).view()
        except NotFound:
            return None
        return None if found.is_suspended else found

    def installation(self, installation_id: InstallationId) -> InstallationClient:
        if installation_id not in self._installations:
            hears = {"on_secret": self._on_secret, "on_retired": self._on_retired}
            tokens = Tokens(installation_id, self.call, clock=self._clock, may_act=self._may_act, **hears)
            self._installations[installation_id] = InstallationClient(installation_id, self._api, tokens)
        return self._installations[installation_id]

    async def call(self, call: ApiCall) -> ApiAnswer:
        """Call as the App itself; after a refusal because of our clock, try once more by GitHub's."""
        answer = await self._api.send(call, self._signer.authorization())
        if answer.status == 401 and self._signer.learn(answer):
            answer = await self._api.send(call, self._signer.authorization())
        return _recognised(answer)

    async def deliveries(self, cursor: str | None = None, *, status: str | None = None) -> DeliveryPage:
        """Return a page of the App's delivery log, newest first."""
        narrowed = {key: value for key, value in (("cursor", cursor), ("status", status)) if value is not None}
        params: dict[str, str | int] = {"per_page": 100, **narrowed}
        answer = require(await self.call(ApiCall("GET", "/app/hook/deliveries", params)))
        items = tuple(one.delivery() for one in await answer.decoded(list[wire.DeliveryJson]))
        return DeliveryPage(items, answer.next_cursor())

    async def delivery_payload(self, delivery_id: int) -> bytes:
        """Return the JSON that was, or should have been, delivered; we trust the connection instead of a signature."""
        answer = require(await self.call(ApiCall("GET", f"/app/hook/deliveries/{delivery_id}")))
        return bytes((await answer.decoded(wire.DeliveryDetail)).request.payload)

    async def close(self) -> None:
        await self.attachments.close()
        await self.job_logs.close()
        if self._large_files is not None:
            await self._large_files.close()
        await self._api.close()


class InstallationClient(Reads):
    """One account's installation: its tokens, and calls with them."""

    def __init__(self, installation_id: InstallationId, api: Api, tokens: Tokens) -> None:
        self.id, self._api, self._tokens = installation_id, api, tokens

    async def token(self, purpose: TokenPurpose, repo: RepoId | None, *, fresh: bool = False) -> Secret:
        """Return a token for the repository and the purpose only; a `fresh` one has its full life from now."""
        return await self._tokens.get(purpose, repo, fresh=fresh)

    async def call(self, call: ApiCall, purpose: TokenPurpose, repo: RepoId | None) -> ApiAnswer:
        """Call, and raise the error that the answer means; replace a dead token once."""
        answer, token = await self._send(call, purpose, repo)
        if answer.status == 401:  # GitHub did nothing, so every method may be repeated
            self._tokens.discard(purpose, repo, token)
            # Keep the new token even if it fails too: GitHub may need a few seconds to know it.
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
    """Try the next way after a failure or after `patience`, so that a silent one does not make everybody wait. Return
    the first answer, or raise the last error. There is at least one way."""
    running: set[asyncio.Task[ApiAnswer]] = set()
    left = list(ways)
    error: BaseException | None = None
    try:
        while left or running:
            if left:
                running.add(asyncio.create_task(left.pop(0)()))
            limit = patience if left else None
            done, running = await asyncio.wait(running, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                if (error := one.exception()) is None:
                    return one.result()
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    assert error is not None
    raise error


@lru_cache(maxsize=1)
def ssl_context() -> ssl.SSLContext:
    """Make one per process, because each costs 20 ms and 800 KB."""
    return ssl.create_default_context()


def environment_proxy(url: str) -> str | None:
    """Return the operator's HTTP(S)_PROXY for an address, which httpx ignores because of our transport."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    found = getproxies()
    return found.get(parts.scheme) or found.get("all")


class SharedTransport(httpx.AsyncBaseTransport):
    """Outlives the clients that githubkit makes for every request, so that connections stay open."""

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
        """Leave the pool open when a client closes."""

    async def aclose(self) -> None:
        """Leave the pool open when a client closes."""

    async def shut(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx.AsyncByteStream):
    """Stops a body that is longer than any answer of GitHub."""

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
    """Correct headers that githubkit reads as numbers without a check; a proxy in between may send anything."""
    wait = headers.get("retry-after")
    if wait is not None and not _is_number(wait):
        try:
            seconds = max(0, round(parsedate_to_datetime(wait).timestamp() - time.time()))
        except (ValueError, OverflowError):
            seconds = DEFAULT_WAIT
        headers["retry-after"] = str(seconds)
    reset = headers.get("x-ratelimit-reset")
    if reset is not None and not _is_number(reset):
        del headers["x-ratelimit-reset"]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10
