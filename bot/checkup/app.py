"""Checks at GitHub: the App, its permissions and events, our clock, and whether webhooks arrive."""

from __future__ import annotations

import time

import httpx

from bot.checkup import manifest
from bot.checkup import signatures as signed
from bot.checkup.lines import CheckupFinding, bad, good, warning
from bot.errors import BotError, NotFound, Unrecognised
from bot.github.client import GitHubApp
from bot.github.types import InstallationView, LoggedDelivery, Registration
from bot.settings import Settings
from bot.web import webhooks

SKEW_SECONDS = 30.0
PING_SECONDS = 10.0
NOWHERE = "https://forgehand.invalid/webhook"
"""A webhook address for polling: GitHub keeps a log of deliveries only for an App with an address."""
ZEN = b'{"zen":"It is well.","hook_id":0}'


async def examine(settings: Settings, github: GitHubApp) -> list[CheckupFinding]:
    try:
        app = await github.registration()
    except (Unrecognised, NotFound) as error:
        fix = "FORGEHAND_APP_ID and FORGEHAND_PRIVATE_KEY must belong to the same App: its page shows the ID and "
        return [bad("app", str(error), f"{fix}can create a new key (`Generate a private key`).")]
    except BotError as error:
        return [bad("app", str(error), f"Can this machine reach {settings.github.api_url}?")]
    found = [good("app", f"GitHub knows the App {app.slug}."), *_granted(settings, app), await _clock(github)]
    found += [await _installed(settings, github, app), await _hook(settings, github, app)]
    if not settings.poll_seconds:
        last = (await github.deliveries()).items[:1]
        found += [await _ping(settings), *(_delivered(one) for one in last)]
    return [*found, _pages(settings, app), await signed.examine(github)]


def _pages(settings: Settings, app: Registration) -> CheckupFinding:
    if settings.pages_url:
        return good("pages", f"People can sign in at {settings.pages_url}, and comments link there.")
    if not settings.public_url:
        return good("pages", "Only this machine reaches them, so comments link to no page (no FORGEHAND_PUBLIC_URL).")
    fix = (
        f"Set FORGEHAND_CLIENT_ID and FORGEHAND_CLIENT_SECRET, from {_page(settings, app)}, with the callback URL "
        f"{settings.public_url}/oauth/callback."
    )
    return warning("pages", "Nobody can sign in, so comments leave out the link to watch a session live.", fix)


def _granted(settings: Settings, app: Registration) -> list[CheckupFinding]:
    asked = manifest.read()
    permissions = asked.missing_permissions(app.permissions)
    events = asked.missing_events(app.events)
    named = ", ".join(f"{name}: {level}" for name, level in permissions.items())
    click = _page(settings, app, "/permissions")
    return [
        bad("permissions", f"Missing: {named}.", f"Set them at {click}, then accept the change where it is installed.")
        if permissions
        else good("permissions", "All permissions in app.yml are granted."),
        bad("events", f"Not subscribed: {', '.join(events)}.", f"Tick them under `Subscribe to events` at {click}.")
        if events
        else good("events", "All events in app.yml are subscribed."),
    ]


def _page(settings: Settings, app: Registration, part: str = "") -> str:
    where = f"{settings.github.url}/settings/apps/{app.slug}{part}"
    return f"{where} (of an organisation's App: its settings → Developer settings → GitHub Apps)"


async def _clock(github: GitHubApp) -> CheckupFinding:
    skew = await github.clock_skew()
    if abs(skew) < SKEW_SECONDS:
        return good("clock", "It agrees with GitHub's.")
    late = "behind" if skew > 0 else "ahead of"
    return warning("clock", f"This machine is {abs(skew):.0f} s {late} GitHub.", "Turn on time synchronisation.")


async def _installed(settings: Settings, github: GitHubApp, app: Registration) -> CheckupFinding:
    all_of_them = await github.installations()
    served = _named([one for one in all_of_them if not one.is_suspended])
    asleep = [one for one in all_of_them if one.is_suspended]
    if served:
        return good("installed", f"On {served}.{f' Suspended on {_named(asleep)}.' if asleep else ''}")
    install = f"Install it at {app.url}/installations/new."
    if not asleep:
        return bad("installed", "The App is not installed anywhere.", install)
    words = f"The App is suspended on {_named(asleep)}, and not installed anywhere else."
    account = asleep[0].account
    of = f"/organizations/{account.login}" if account.type == "Organization" else ""
    page = f"{settings.github.url}{of}/settings/installations/{asleep[0].id}"
    return bad("installed", words, f"Click `Unsuspend` at {page}. Or: {install}")


def _named(installations: list[InstallationView]) -> str:
    return ", ".join(one.account.login for one in installations[:5])


async def _hook(settings: Settings, github: GitHubApp, app: Registration) -> CheckupFinding:
    hook, page = await github.hook(), _page(settings, app)
    if not hook.url:
        fix = f"Tick `Active` under Webhook, with the URL {_meant(settings)}, at {page}."
        return bad("webhook", "The App has none, so GitHub sends us nothing and keeps no log of deliveries.", fix)
    if settings.poll_seconds:
        return good("webhook", "No webhook needs to arrive: Forgehand reads GitHub's log of deliveries.")
    if hook.url == NOWHERE:
        fix = f"Use `forgehand serve --poll`, or set the webhook's URL to {_meant(settings)} at {page}."
        return bad("webhook", f"GitHub sends to {hook.url}, which leads nowhere.", fix)
    if hook.content_type != "json":
        return bad("webhook", f"Its content type is {hook.content_type}.", "Set it to application/json.")
    wanted = f"{settings.public_url}/webhook" if settings.public_url else None
    if wanted and hook.url != wanted:
        return bad("webhook", f"GitHub sends to {hook.url}.", f"Set the webhook's URL to {wanted}.")
    return good("webhook", f"GitHub sends to {hook.url}.")


def _meant(settings: Settings) -> str:
    if settings.public_url:
        return f"{settings.public_url}/webhook"
    return NOWHERE if settings.poll_seconds else "https://your-host/webhook"


def _delivered(last: LoggedDelivery) -> CheckupFinding:
    if last.is_accepted:
        return good("deliveries", f"The last one ({last.event}) was accepted.")
    if last.status_code == 401:
        fix = "Set FORGEHAND_WEBHOOK_SECRET to the App's webhook secret (or set a new one there and here)."
        return bad("deliveries", "The last one was refused because of its signature.", fix)
    fix = "Is the service running, and can GitHub reach the address? Without one, use `forgehand serve --poll`."
    return bad("deliveries", f"The last one ({last.event}) failed with {last.status_code}.", fix)


async def _ping(settings: Settings) -> CheckupFinding:
    """Send a ping to GitHub's address, signed as GitHub would sign it."""
    base = settings.public_url or f"http://{settings.host}:{settings.port}"
    headers = {
        "content-type": "application/json",
        "x-github-event": "ping",
        "x-github-delivery": f"doctor-{time.time_ns()}",
        "x-hub-signature-256": webhooks.signature_header(settings.github.webhook_secrets[0], ZEN),
    }
    try:
        async with httpx.AsyncClient(timeout=PING_SECONDS, trust_env=False) as client:
            answer = await client.post(f"{base}/webhook", content=ZEN, headers=headers)
    except httpx.HTTPError as error:
        fix = "Start `forgehand serve`; FORGEHAND_PUBLIC_URL must be the address at which GitHub reaches it."
        return bad("ping", f"{base}/webhook cannot be reached ({type(error).__name__}).", fix)
    try:
        body = answer.json()
    except ValueError:
        body = None
    if answer.status_code == 202 and isinstance(body, dict) and "status" in body:
        return good("ping", f"{base}/webhook accepts our signature.")
    if answer.status_code == 401:
        return bad("ping", f"{base} uses a different webhook secret.", "Restart it with the current settings.")
    return bad("ping", f"{base}/webhook answers {answer.status_code}.", "Is Forgehand the program that listens there?")
