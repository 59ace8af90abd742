"""Serves the set-up page instead of the service, with its webhook: it stores what GitHub sends in the meantime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bot import logs, settings, vault
from bot.errors import SettingsError
from bot.events import HANDLED_EVENTS
from bot.keyring import KeyRing
from bot.outbound import Redactor
from bot.registration import Registered
from bot.settings import Address, own_key
from bot.settings.database import passwords_of
from bot.setup.bench import SetupState
from bot.setup.desk import SetUpDesk
from bot.setup.door import Door
from bot.store import accounts
from bot.store.base import Store
from bot.store.data_directory import DataDirLock
from bot.vault import Vault
from bot.web.health import health_routes
from bot.web.pages import origin
from bot.web.server import Server, tcp_socket
from bot.web.webhooks import webhook_routes


@dataclass(frozen=True)
class SetUp:
    url: str
    token: str
    """Opens the page once."""
    finished: asyncio.Event
    made_key: str = ""
    """The file with the key that was made; empty if there was one."""


@asynccontextmanager
async def serving(values: Mapping[str, str]) -> AsyncIterator[SetUp]:
    """Serve until the block ends, with the data directory locked."""

    async def not_ready() -> str | None:
        return "Forgehand is being set up."

    folder, where, door = settings.data_dir(values), settings.read_database(values), Door()
    async with AsyncExitStack() as stack:
        if settings.has_secret_key(values):
            made = ""
            stack.enter_context(DataDirLock(folder))
        else:
            made = await _with_own_key(stack, folder, where)
        keys = settings.read_secret_keys(values)
        ring, redactor = KeyRing(keys), Redactor(one.reveal() for one in (door.token, *keys, *passwords_of(where)))
        logs.configure(redactor.redact)
        await asyncio.to_thread(vault.verify, where, ring)
        store = await Store.open(where)
        stack.push_async_callback(store.close)
        await stack.enter_async_context(store.alone())
        kept = Vault(store, ring, redactor.register)
        await kept.prepare()
        bench, hook = SetupState(values, store, kept), _Hook(store)
        if (known := await bench.app()) is not None:
            hook.take(known)
        desk = SetUpDesk(door, bench, hook.take)
        routes = [*desk.routes(), Route("/webhook", hook, methods=["POST"]), *health_routes({"set-up": not_ready})]
        page = origin.At(Starlette(routes=routes), bench.public_url, alone=False)
        server = await stack.enter_async_context(Server(page, tcp_socket(*settings.read_address(values))))
        # a browser cannot open the address that means every address of the machine, as in a container
        url = server.url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        yield SetUp(url, door.token.reveal(), desk.finished, made)


async def _with_own_key(stack: AsyncExitStack, folder: Path, where: Address) -> str:
    """Make a key, but only where nothing is encrypted yet and no other replica would need the same one."""
    is_shared = not isinstance(where, Path)
    sealed = [] if is_shared else await asyncio.to_thread(accounts.peek_credential, where)
    if is_shared or sealed:
        raise SettingsError(settings.NO_SECRET_KEY)
    stack.enter_context(DataDirLock(folder))
    return str(own_key.make(folder))


class _Hook:
    """The service's webhook, once we know GitHub's signing secret; it writes to the service's ledger."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._app: ASGIApp = PlainTextResponse("There is no App yet.\n", 503)

    def take(self, app: Registered) -> None:
        if app.webhook_secret.reveal():
            secrets = [app.webhook_secret]
            routes = webhook_routes(self._store, secrets, handled=HANDLED_EVENTS, on_stored=lambda: None)
            self._app = Starlette(routes=routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
