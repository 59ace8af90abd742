"""The shape of a registry's dialect, and the words in which the gateway's route speaks with it.

A dialect is bound to the address that an owner stored. The route does this with a request:

    dialect = DIALECTS[kind](address)
    target = dialect.target(request, signer)          # or RegistryRefusal: nothing was fetched
    … fetch target.url; add the credential only if target.with_credential …
    if target.rewritten: body = dialect.rewrite(body, page)

Only `target.url` is fetched, and we wrote every character of it: no byte of the request travels as it came.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from bot.errors import BotError
from bot.registries.addresses import canonical, plain_prefix, plain_query, within
from bot.registries.signing import SIGNED, LinkSigner

MOST_OF_AN_INDEX = 32 << 20
"""Bytes of an index document that is rewritten; a larger one is refused."""
READING = ("GET", "HEAD")
SHOWN_BY = "~"
"""Begins a path's first segment that holds the token, for clients that can send no header."""


class RegistryRefusal(BotError):
    """The gateway does not fetch this; the words are for the client inside."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Use(StrEnum):
    INDEX = "index"
    """Says what there is. It changes: ask again, with its ETag."""
    PACKAGE = "package"
    """A file that people install. It streams."""
    ADVICE = "advice"
    """The answer to a POST that only reads. Its body is JSON, at most `MOST_OF_A_QUESTION` bytes."""


MOST_OF_A_QUESTION = 1 << 20


@dataclass(frozen=True)
class RegistryRequest:
    """A request below the registry's route, as the client sent it: nothing is decoded yet."""

    method: str
    path: str
    """The part behind the registry's route and its slash."""
    query: str = ""


@dataclass(frozen=True)
class PackageName:
    """A file of a package, for the log."""

    name: str
    version: str


@dataclass(frozen=True)
class RegistryTarget:
    url: str
    use: Use
    with_credential: bool = True
    """False outside the registry's prefix."""
    subject: str | None = None
    """The project that the request is about, if the path says it; scopes are judged by it."""
    package: PackageName | None = None
    immutable: bool = False
    """The bytes behind this address never change: the cache may answer without asking."""
    rewritten: bool = False
    """The body holds addresses: read it whole, at most `MOST_OF_AN_INDEX`, and give it to `rewrite`."""


@dataclass(frozen=True)
class IndexPage:
    """An index document on its way inside."""

    url: str
    """Its address, after redirects: relative addresses in it start there."""
    content_type: str
    inside: str
    """The registry's route as this client names it, with scheme, host and final slash."""
    signer: LinkSigner


@dataclass(frozen=True)
class RegistryDoor:
    """An opened registry, as clients inside see it. `base` and `token` may be marks that are replaced later."""

    name: str
    """As in the repository's config: lower-case letters, digits and hyphens."""
    base: str
    """The route's address inside, with a final slash; every client adds to it only at its end."""
    token: str
    dialect: RegistryDialect
    scopes: tuple[str, ...] = ()
    """Only this registry answers for them; without any it takes the public registry's place."""


@dataclass(frozen=True)
class ClientSetup:
    """Configures clients inside."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Texts by path below the folder of the configuration; they hold the token."""
    variables: Mapping[str, str] = field(default_factory=dict)


class RegistryDialect(ABC):
    """One kind of registry at one address."""

    name: ClassVar[str]
    label: ClassVar[str]
    files: ClassVar[tuple[str, ...]] = ()
    """Ends of the names of packages. An index may name no other file below the prefix, where the credential goes."""
    takes_scopes: ClassVar[bool] = True
    scope_words: ClassVar[str] = ""
    """Says what a scope looks like."""
    scope_form: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """A scope in another form would cover nothing, so others could answer for its packages."""

    def __init__(self, address: str) -> None:
        self.address = plain_prefix(address)
        self.prefix, self.index = self.parts(self.address)

    def parts(self, address: str) -> tuple[str, str]:
        """Return the prefix below which the credential goes, and where the index is below it."""
        return address, ""

    def target(self, request: RegistryRequest, signer: LinkSigner) -> RegistryTarget:
        """Say what to fetch for a request, or refuse it."""
        path, query = canonical(request.path), plain_query(request.query)
        if path is None or query is None:
            raise RegistryRefusal(400, "The path must be written plainly: no dot segments, no double encoding.")
        if request.method in READING and path.startswith(SIGNED):
            return self.signed_target(path, query, signer)
        found = self.admits(request.method, path, query)
        if found is None:
            raise RegistryRefusal(403, f"This is not a request that reads from {self.label}; only those pass.")
        return found

    def signed_target(self, path: str, query: str, signer: LinkSigner) -> RegistryTarget:
        """Read an address that one of this registry's indexes named."""
        url = signer.address(path, query)
        if url is None:
            raise RegistryRefusal(403, "No index of this registry has named this address.")
        return self.file_target(url)

    def file_target(self, url: str) -> RegistryTarget:
        """Fetch a file at an address that the host itself made from an index."""
        package = self.package(canonical(url.partition("?")[0].partition("://")[2]) or "")
        return RegistryTarget(
            url, Use.PACKAGE, within(self.prefix, url), package.name if package else None, package, immutable=True
        )

    @abstractmethod
    def admits(self, method: str, path: str, query: str) -> RegistryTarget | None:
        """Judge a path below the prefix, canonical and decoded; None refuses."""

    def package(self, path: str) -> PackageName | None:
        """Read name and version from the path of a package's file."""
        return None

    def led(self, path: str, door: RegistryDoor, doors: Sequence[RegistryDoor]) -> tuple[RegistryDoor, str]:
        """Return the registry and the path that a client means by a path below a door's route."""
        return door, path

    def rewrite(self, body: bytes, page: IndexPage) -> bytes:
        """Make the addresses in an index lead to our route; raise RegistryRefusal if the document is hostile."""
        return body

    def claims(self, scopes: Sequence[str], subject: str) -> bool:
        """Say whether a scope covers a project."""
        return False

    @classmethod
    def setup(cls, doors: Sequence[RegistryDoor], folder: str) -> ClientSetup:
        """Configure the clients for all opened registries of this kind; the files will lie in `folder`."""
        return ClientSetup()


def token_in(path: str) -> tuple[str, str]:
    """Take the token out of a path that begins with one; return both."""
    first, _, rest = path.partition("/")
    return (first.removeprefix(SHOWN_BY), rest) if first.startswith(SHOWN_BY) else ("", path)


def out_of_scope(subject: str | None, door: RegistryDoor, doors: Sequence[RegistryDoor]) -> bool:
    """Say whether another registry answers for a project: then this one is silent (404), as if it had none.

    So nobody can publish a package under a private name elsewhere and have it installed."""
    if subject is None or not door.dialect.takes_scopes:
        return False
    if door.scopes:
        return not door.dialect.claims(door.scopes, subject)
    others = (one for one in doors if one.dialect.name == door.dialect.name and one.name != door.name)
    return any(one.dialect.claims(one.scopes, subject) for one in others)
