"""The stand-in's accounts, Apps and installations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.simulation.github.state import Repository


@dataclass(eq=False)
class Account:
    """A user, an organisation or an App's bot."""

    id: int
    login: str
    type: str = "User"
    created_at: float = 0.0
    members: dict[int, str] = field(default_factory=dict)
    """The members of an organisation: account id -> `admin` or `member`."""


@dataclass(eq=False)
class App:
    """A registered GitHub App, with its hook and the log of that hook's deliveries."""

    id: int
    slug: str
    owner: Account
    bot: Account
    client_id: str
    client_secret: str = field(repr=False)
    private_key_pem: str = field(repr=False)
    webhook_secret: str = field(repr=False)
    permissions: dict[str, str]
    events: list[str]
    created_at: float
    public_keys: list[Any] = field(default_factory=list, repr=False)
    """Every key that is still valid; `private_key_pem` belongs to the newest."""
    webhook_url: str | None = None
    callback_urls: list[str] = field(default_factory=list)
    hook_active: bool = True
    hook_id: int = 0
    deliveries: list[Delivery] = field(default_factory=list)


@dataclass(eq=False)
class Delivery:
    """One attempt to deliver a webhook, as the App's delivery log shows it."""

    id: int
    guid: str
    event: str
    action: str | None
    delivered_at: float
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    installation_id: int | None = None
    repository_id: int | None = None
    redelivery: bool = False
    status: str = "pending"
    status_code: int = 0
    duration: float = 0.0
    response_headers: dict[str, str] = field(default_factory=dict, repr=False)
    response_body: str = ""


@dataclass(eq=False)
class Installation:
    """An App on an account, with its repositories and permissions."""

    id: int
    app: App
    account: Account
    repos: list[Repository]
    permissions: dict[str, str]
    created_at: float
    selection: str = "selected"
    suspended_at: float | None = None
    deleted: bool = False


@dataclass(eq=False)
class Token:
    value: str = field(repr=False)
    installation: Installation
    repository_ids: frozenset[int] | None
    permissions: dict[str, str]
    expires_at: float
    revoked: bool = False


@dataclass(eq=False)
class SignIn:
    """A person's consent to an App, known by a code that is good once and then by a token."""

    account: Account
    app: App
    redirect_uri: str
    challenge: str
    ends_at: float
