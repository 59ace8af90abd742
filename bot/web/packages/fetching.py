"""Gets what a request reads: from the cache, or from the registry with its credential; keeps it for the next one."""

from __future__ import annotations

import logging
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field

from bot.errors import BotError
from bot.outside import echoes, registries, services
from bot.outside.addresses import OutsideAddress
from bot.outside.client import REDIRECTS, OutsideAnswer, OutsideClient, OutsideRequest, OutsideTrouble
from bot.registries.addresses import canonical, within
from bot.registries.shape import MOST_OF_AN_INDEX, RegistryRefusal, RegistryTarget, Use
from bot.settings.inside import InsideHosts
from bot.store.package_cache import CachedAnswer, PackageCache
from bot.vault import Vault
from bot.web.gateway.clients import Take
from bot.web.packages.opened import OpenedRegistries, OpenedRegistry
from bot.web.packages.shares import PackageShares

log = logging.getLogger("bot.web.packages")

MOST_OF_A_PACKAGE = 2 << 30
FRESH_SECONDS = 300.0
"""For so long an index is answered from the cache without asking."""
PACKAGE_SECONDS = 86_400.0
"""A released package does not change; some registries let their owners replace one all the same."""
MOST_OF_AN_ACCOUNT = 48
MOST_OF_A_TOKEN = 24
"""Requests that are with registries at a time; all accounts share the client's connections."""
LEAST_CREDENTIAL = 8
"""A shorter one is a word, which stands in many packages."""
PLAIN = "application/octet-stream"


@dataclass(frozen=True)
class PackageQuestion:
    method: str
    opened: OpenedRegistries
    registry: OpenedRegistry
    target: RegistryTarget
    accept: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def may_be_known(self) -> bool:
        return self.target.use is not Use.ADVICE

    @property
    def is_kept(self) -> bool:
        return self.method == "GET" and self.may_be_known

    @property
    def form(self) -> str:
        """Return the form that is asked for. A released package has one, and the client inside does not choose it."""
        return "*/*" if self.target.immutable and self.target.use is Use.PACKAGE else self.accept

    @property
    def name(self) -> str:
        """Name it in the cache, for this stored registry only: another one may have another credential."""
        one = self.registry.service
        return "\n".join((f"{one.installation} {one.name} {one.stored_at}", one.address, self.target.url, self.form))


@dataclass
class PackageAnswer:
    status: int
    content_type: str
    chunks: AsyncIterator[bytes]
    url: str
    """The address that answered, after redirects."""
    size: int | None = None
    encoding: str = ""
    cached: bool = False

    async def whole(self, take: Take) -> bytes:
        """Read an index, uncompressed; `take` refuses if too many of them are held."""
        parts, size, limit = list[bytes](), 0, MOST_OF_AN_INDEX
        unzip = zlib.decompressobj(wbits=31) if self.encoding in ("gzip", "x-gzip") else None
        if self.encoding and unzip is None:
            raise RegistryRefusal(502, "The registry compresses its indexes in a way that was not asked for.")
        async for chunk in self.chunks:
            try:
                part = unzip.decompress(chunk, limit + 1 - size) if unzip else chunk
            except zlib.error:
                raise RegistryRefusal(502, "An index of the registry cannot be unpacked.") from None
            size += len(part)
            take(len(part))
            if size > limit or (unzip and unzip.unconsumed_tail):
                raise RegistryRefusal(502, f"An index of the registry is larger than {limit >> 20} MiB.")
            parts.append(part)
        return b"".join(parts)


class PackageFetcher:
    """Asks registries. Addresses that only an index names get no credential, and lead to no inside address."""

    def __init__(self, vault: Vault, inside: InsideHosts, cache: PackageCache) -> None:
        self._vault = vault
        self._cache = cache
        self._shares = PackageShares(of_account=MOST_OF_AN_ACCOUNT, of_token=MOST_OF_A_TOKEN)
        self._own = OutsideClient(inside)
        self._foreign = OutsideClient(InsideHosts())

    async def close(self) -> None:
        await self._own.close()
        await self._foreign.close()

    @asynccontextmanager
    async def answer(self, question: PackageQuestion) -> AsyncIterator[PackageAnswer]:
        account = str(question.opened.installation)
        async with AsyncExitStack() as stack:
            cached = await self._cache.find(account, question.name) if question.may_be_known else None
            if cached is not None:
                stack.callback(cached.close)
                is_index, age = question.target.use is Use.INDEX, self._cache.age(cached.head)
                fresh = FRESH_SECONDS if is_index else 0.0
                if 0 <= age < (PACKAGE_SECONDS if question.target.immutable else fresh):
                    yield _from_cache(question, cached)
                    return
            await stack.enter_async_context(self._shares.place(account, question.opened.sha256))
            try:
                answer = await stack.enter_async_context(self._asked(question, cached))
            except (OutsideTrouble, RegistryInTrouble):
                if cached is None:
                    raise
                log.warning(
                    "a registry did not answer; its last answer is used", extra={"kind": question.registry.service.kind}
                )
                yield _from_cache(question, cached)
                return
            if answer.status == 304 and cached is not None:
                await self._cache.confirm(account, question.name, cached.head)
                yield _from_cache(question, cached)
                return
            forbidden = await self._forbidden(question)
            yield await stack.enter_async_context(self._passed_on(account, question, answer, forbidden))

    @asynccontextmanager
    async def _asked(self, question: PackageQuestion, cached: CachedAnswer | None) -> AsyncIterator[OutsideAnswer]:
        service, target = question.registry.service, question.target
        client = self._own if target.with_credential else self._foreign
        address = self._own.address(target.url)
        if not target.with_credential and registries.is_named(service, address.host):
            client = self._own
        headers = [("accept", question.form), ("accept-encoding", "identity"), *question.headers.items()]
        if cached is not None and cached.head.etag:
            headers.append(("if-none-match", cached.head.etag))
        credential = await services.credential(self._vault, service) if target.with_credential else None
        wanted = OutsideRequest(question.method, address, headers, question.body, credential)

        def follows(there: OutsideAddress) -> bool:
            prefix = question.registry.door.dialect.prefix
            if there.origin == client.address(prefix).origin:
                rest = there.url.removeprefix(prefix).partition("?")[0]
                return within(prefix, there.url) and canonical(rest) is not None
            stays = not target.with_credential and there.origin == address.origin
            return stays or registries.is_named(service, there.host)

        async with client.ask(wanted, follows) as answer:
            _judge(question, answer)
            yield answer

    async def _forbidden(self, question: PackageQuestion) -> tuple[bytes, ...]:
        """List what no answer may hold: the credential, in each way of writing it."""
        found = await services.credential(self._vault, question.registry.service)
        texts = echoes.parts(found[1].reveal()) if found is not None and question.target.with_credential else ()
        return tuple(form for one in texts if len(one) >= LEAST_CREDENTIAL for form in echoes.writings(one))

    @asynccontextmanager
    async def _passed_on(
        self, account: str, question: PackageQuestion, answer: OutsideAnswer, forbidden: tuple[bytes, ...]
    ) -> AsyncIterator[PackageAnswer]:
        kind, encoding = answer.headers.get("content-type", PLAIN), answer.headers.get("content-encoding", "")
        size = answer.headers.get("content-length", "")
        found = PackageAnswer(
            answer.status,
            kind,
            _without(forbidden, answer.chunks(MOST_OF_A_PACKAGE), question.registry.service.name),
            answer.address.url,
            int(size) if size.isdecimal() and len(size) < 16 else None,
            encoding if encoding != "identity" else "",
        )
        # without either, an answer that broke off looks whole
        is_framed = found.size is not None or "transfer-encoding" in answer.headers
        # a page for people, such as a sign-in, is no package: the next request may get one
        is_page = question.target.immutable and kind.lower().startswith("text/html")
        is_whole = answer.status == 200 and not found.encoding and is_framed
        is_kept = question.is_kept and is_whole and not is_page
        async with self._cache.arriving() if is_kept else nullcontext() as arriving:
            if arriving is not None:
                given = found.chunks

                async def noted() -> AsyncIterator[bytes]:
                    async for chunk in given:
                        await arriving.write(chunk)
                        yield chunk
                    etag = answer.headers.get("etag", "")
                    await self._cache.keep(account, question.name, arriving, kind, etag, url=found.url)

                found.chunks = noted()
            yield found


def _from_cache(question: PackageQuestion, cached: CachedAnswer) -> PackageAnswer:
    head = cached.head
    url = head.url or question.target.url
    return PackageAnswer(200, head.content_type, cached.chunks(), url, head.size, cached=True)


async def _without(forbidden: tuple[bytes, ...], chunks: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
    """Break an answer off that holds the credential: a registry may write it into a client's configuration."""
    try:
        async for chunk in echoes.without_echo(chunks, forbidden):
            yield chunk
    except echoes.CredentialRepeated:
        raise RegistryRefusal(
            502, f"The registry {name} repeats its credential in this answer, so Forgehand does not pass it on."
        ) from None


def _judge(question: PackageQuestion, answer: OutsideAnswer) -> None:
    """Raise for answers that are none for the client inside, in words that say who can help."""
    name = question.registry.service.name
    if answer.status in (401, 403) and question.target.with_credential:
        raise RegistryCredentialRefused(name, answer.status)
    if answer.status in REDIRECTS:
        try:
            host = answer.address.joined(answer.headers.get("location", ""), InsideHosts()).host
        except BotError:
            host = "an address that cannot be asked"
        raise RegistryRefusal(
            502,
            f"The registry {name} redirects to {host}, which is not named with it. An owner of the account can name "
            "the host among the registry's further hosts.",
        )
    if answer.status >= 500:
        raise RegistryInTrouble(502, f"The registry {name} has trouble: it answered {answer.status}.")


class RegistryInTrouble(RegistryRefusal):
    """The registry answers, but cannot say anything."""


class RegistryCredentialRefused(RegistryRefusal):
    def __init__(self, name: str, status: int) -> None:
        super().__init__(
            403,
            f"The registry {name} answered {status}: the credential stored for it is missing, wrong or may not read "
            "this. An owner of the account can store another one.",
        )
