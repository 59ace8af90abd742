"""GitHub's pages on which a person makes an App from a manifest and installs it: a form, a button, a redirect."""

from __future__ import annotations

import json
import secrets
from html import escape
from typing import Any, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.simulation.github.accounts import App, Installation
from bot.simulation.github.auth import Refusal
from bot.simulation.github.state import Repository, State
from bot.simulation.github.webhooks import NEEDS

SIGNED_IN = "octo"
"""The person at the browser."""
NAME_LIMIT = 34
SENT_ANYWAY = ("installation", "installation_repositories")


class Site(Protocol):
    """The parts of the stand-in that these pages use."""

    state: State

    def install(self, app: App, *, repos: list[Repository]) -> Installation: ...


def routes(site: Site) -> list[BaseRoute]:
    pages = _Pages(site)
    return [
        Route("/settings/apps/new", pages.confirm, methods=["POST"]),
        Route("/organizations/{org}/settings/apps/new", pages.confirm, methods=["POST"]),
        Route("/settings/apps/create", pages.create, methods=["POST"]),
        Route("/apps/{slug}/installations/new", pages.install, methods=["GET", "POST"]),
        Route("/settings/installations/{number}", pages.installed),
    ]


class _Pages:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def confirm(self, request: Request) -> Response:
        """Show the manifest's permissions, and the button that only the person can press."""
        fields = await form(request)
        try:
            manifest = self._checked(fields.get("manifest", ""))
        except Refusal as refusal:
            return page("Invalid GitHub App configuration", f"<p>{escape(str(refusal.body['message']))}</p>", 422)
        owner = request.path_params.get("org", SIGNED_IN)
        hidden = {"manifest": json.dumps(manifest), "state": request.query_params.get("state", ""), "owner": owner}
        button = f"Create GitHub App for {escape(owner)}"
        return page(f"Create {manifest['name']}", asking("/settings/apps/create", hidden, button))

    async def create(self, request: Request) -> Response:
        fields = await form(request)
        manifest, code = json.loads(fields["manifest"]), secrets.token_hex(20)
        self._site.state.manifests[code] = (manifest, fields["owner"])
        query = urlencode({"code": code, "state": fields["state"]})
        return RedirectResponse(f"{manifest['redirect_url']}?{query}", 302)

    async def install(self, request: Request) -> Response:
        """Install the App on all repositories of the owner."""
        slug = request.path_params["slug"]
        app = next((one for one in self._site.state.apps.values() if one.slug == slug), None)
        if app is None:
            return page("Not found", "", 404)
        if request.method == "GET":
            return page(f"Install {slug}", asking(request.url.path, {}, "Install"))
        repos = [one for one in self._site.state.repos.values() if one.owner is app.owner and not one.deleted]
        made = self._site.install(app, repos=repos)
        return RedirectResponse(f"/settings/installations/{made.id}", 302)

    async def installed(self, request: Request) -> Response:
        return page("Okay, the App was installed", "")

    def _checked(self, text: str) -> dict[str, Any]:
        """Read a manifest, or refuse it as GitHub does."""
        try:
            manifest = json.loads(text)
        except ValueError:
            raise Refusal(422, "The manifest is not JSON.") from None
        hook = manifest.get("hook_attributes", {}).get("url", "")
        taken = str(manifest.get("name", "")).lower() in {one.slug for one in self._site.state.apps.values()}
        problems = {
            "Name can't be blank": not manifest.get("name"),
            f"Name is too long (maximum is {NAME_LIMIT} characters)": len(manifest.get("name", "")) > NAME_LIMIT,
            "Name is already taken": taken,
            "URL can't be blank": not manifest.get("url"),
            "Redirect URL can't be blank": not manifest.get("redirect_url"),
            "Hook url is not supported because it isn't reachable over the public Internet": _is_here(hook),
            "Default events are not supported by this permissions set": not _are_supported(manifest),
        }
        for problem, holds in problems.items():
            if holds:
                raise Refusal(422, problem)
        assert isinstance(manifest, dict)
        return manifest


def _are_supported(manifest: dict[str, Any]) -> bool:
    permissions = manifest.get("default_permissions", {})
    wanted = manifest.get("default_events", [])
    return all(one not in SENT_ANYWAY and NEEDS.get(one, "metadata") in {"metadata", *permissions} for one in wanted)


def _is_here(url: str) -> bool:
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1", None)


async def form(request: Request) -> dict[str, str]:
    found = parse_qs((await request.body()).decode(), keep_blank_values=True)
    return {name: values[0] for name, values in found.items()}


def asking(action: str, hidden: dict[str, str], button: str) -> str:
    fields = "".join(f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in hidden.items())
    return f'<form method="post" action="{action}">{fields}<button>{button}</button></form>'


def page(title: str, content: str, status: int = 200) -> Response:
    head = f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(title)}</title></head>"
    return HTMLResponse(f"{head}<body><h1>{escape(title)}</h1>{content}</body></html>", status)
