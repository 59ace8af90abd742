"""Opens the registries of a repository's config to its package clients, by a token that reads packages only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bot import account_settings, repo_config
from bot.errors import UserError
from bot.kinds.shape import OnFork
from bot.models import InstallationId, TurnKey
from bot.outside import registries
from bot.registries import DIALECTS
from bot.sessions.services import Services
from bot.settings import Secret
from bot.store import accounts, gateway, outside_services, sessions
from bot.store.outside_services import OutsideService, Purpose
from bot.store.sessions import Turn
from bot.words import on_registries
from sandbox.clients import FOLDER, GATEWAY, PackageClients

SPARE_SECONDS = 3600.0
"""The token ends by itself if nobody lives to revoke it."""
Reader = tuple[TurnKey, InstallationId]
"""The turn that reads, and the account whose registries it reads."""


async def require(services: Services, turn: Turn) -> None:
    """Raise UserError if the config names a registry that this account cannot open."""
    names = await _names(services, turn)
    if not names:
        return
    if not _has_gateway(services):
        raise UserError(on_registries.NO_GATEWAY)
    _, installation = await _reader(services, turn)
    found = await outside_services.usable(services.store, Purpose.REGISTRY, installation, names)
    if missing := [name for name in names if name not in found]:
        raise UserError(on_registries.missing(missing))


@asynccontextmanager
async def opened(services: Services, turn: Turn, seconds: float) -> AsyncIterator[PackageClients | None]:
    """Open them for commands that run now, where no agent is; the token ends with them."""
    reader, names = await _reader(services, turn), await _names(services, turn)
    async with opened_by_name(services, reader, names, seconds) as clients:
        yield clients


@asynccontextmanager
async def opened_by_name(
    services: Services, reader: Reader, names: Sequence[str], seconds: float
) -> AsyncIterator[PackageClients | None]:
    token, clients = await _made(services, reader, names, seconds)
    try:
        yield clients
    finally:
        if token is not None:
            await gateway.revoke_one(services.store, token)
            services.redactor.forget(token.reveal())


async def for_the_agent(services: Services, turn: Turn, seconds: float) -> PackageClients | None:
    """Open them for the agent's run; settling revokes the token with the turn's others."""
    reader, names = await _reader(services, turn), await _names(services, turn)
    return (await _made(services, reader, names, seconds))[1]


async def _reader(services: Services, turn: Turn) -> Reader:
    return turn.key, (await sessions.session(services.store, turn.key.session)).thread.installation


async def _names(services: Services, turn: Turn) -> tuple[str, ...]:
    """A fork's code could carry away what it reads, so the account decides about it."""
    names = repo_config.load(turn.config).registries
    if not names or turn.part(OnFork).fork is None:
        return names
    _, installation = await _reader(services, turn)
    choices = await accounts.settings_of(services.store, installation)
    return names if account_settings.may_read_on_forks(choices) else ()


async def _made(
    services: Services, reader: Reader, names: Sequence[str], seconds: float
) -> tuple[Secret | None, PackageClients | None]:
    """Leave out registries that were removed since `require` looked."""
    key, installation = reader
    if not names or not _has_gateway(services):
        return None, None
    found = await outside_services.usable(services.store, Purpose.REGISTRY, installation, names)
    if not found:
        return None, None
    expires_at = services.clock() + seconds + SPARE_SECONDS
    token = await gateway.mint_for_packages(services.store, key, installation, list(found), expires_at)
    services.redactor.register(token.reveal())
    return token, _clients(list(found.values()), token.reveal())


def _has_gateway(services: Services) -> bool:
    return services.settings.e2b is None or services.settings.e2b.unmetered is None


def _clients(services: Sequence[OutsideService], token: str) -> PackageClients:
    doors = [registries.door(one, f"http://{GATEWAY}{registries.PATH}{one.name}/", token) for one in services]
    files, variables = dict[str, str](), dict[str, str]()
    for kind, dialect in DIALECTS.items():
        if own := [one for one in doors if one.dialect.name == kind]:
            made = dialect.setup(own, FOLDER)
            files |= made.files
            variables |= made.variables
    return PackageClients(files, variables)
