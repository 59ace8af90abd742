"""The whole check-up. Each part runs separately, so that a broken one does not hide the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bot import vault as vaults
from bot.checkup import app, host
from bot.checkup.lines import CheckupFinding, bad, good, warning
from bot.errors import BotError
from bot.github.client import GitHubApp
from bot.keyring import KeyRing
from bot.settings import Settings
from bot.store.accounts import OPERATOR
from bot.store.base import Store, place
from bot.vault import Vault
from bot.web import credentials, provider_trial

SECONDS = 90.0


async def examine(settings: Settings) -> list[CheckupFinding]:
    """Check this machine, the model and GitHub, in the order in which people would fix them."""
    parts = [_part("machine", host.examine, settings), _part("key", _key, settings), _part("github", _github, settings)]
    return [line for part in await asyncio.gather(*parts) for line in part]


async def _part(
    name: str, part: Callable[[Settings], Awaitable[list[CheckupFinding]]], settings: Settings
) -> list[CheckupFinding]:
    try:
        async with asyncio.timeout(SECONDS):
            return await part(settings)
    except TimeoutError:
        return [bad(name, f"No answer within {SECONDS:.0f} s.", "Check the network, then try again.")]
    except BotError as error:
        return [bad(name, str(error), "Fix the problem it names, then run this again.")]


async def _github(settings: Settings) -> list[CheckupFinding]:
    github = GitHubApp(settings.github)
    try:
        return await app.examine(settings, github)
    finally:
        await github.close()


async def _key(settings: Settings) -> list[CheckupFinding]:
    where, ring = settings.database, KeyRing(settings.secret_keys)
    if settings.model.provider.at is not None:
        trial = await provider_trial.try_out(settings.model)
        fix = "Follow the message. docs/operator.md explains the settings of providers."
        return [good("model key", trial.words) if trial.works else bad("model key", trial.words, fix)]
    if await asyncio.to_thread(place(where).exists):
        await asyncio.to_thread(vaults.verify, where, ring)
        async with Store.reading(where) as store:
            found = await credentials.find(Vault(store, ring), settings.model, OPERATOR)
    else:
        found = credentials.operators(settings.model)
    if found is None:
        return [bad("model key", "There is none.", credentials.NONE)]
    trial = await credentials.try_out(found, settings.model.upstream, settings.model.model)
    if trial.works and found.name == vaults.OAUTH_TOKEN:
        return [warning("model key", trial.words, vaults.TERMS)]
    if trial.works:
        return [good("model key", trial.words)]
    words = trial.words.replace(f" {found.another}", "")  # say the next step once
    to_blame = "" if words != trial.words else "Follow the message. If the key is the problem: "
    return [bad("model key", words, f"{to_blame}{found.another}")]
