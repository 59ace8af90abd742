"""Registers Apps: by hand in a test, or by the manifest flow of `/setup`."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from bot.simulation.github import keys
from bot.simulation.github.accounts import App
from bot.simulation.github.state import State

PERMISSIONS = {
    "actions": "read",
    "checks": "write",
    "contents": "write",
    "issues": "write",
    "members": "read",
    "metadata": "read",
    "pull_requests": "write",
    "statuses": "read",
}
EVENTS = (
    "check_run",
    "issue_comment",
    "issues",
    "member",
    "organization",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "push",
    "status",
)


def register(
    state: State,
    slug: str,
    *,
    owner: str,
    webhook: tuple[str | None, str],
    permissions: Mapping[str, str] = PERMISSIONS,
    events: Sequence[str] = EVENTS,
) -> App:
    """Register an App with its own key; `webhook` is its address and secret."""
    key = keys.key_pair(len(state.apps))
    app = App(
        id=state.new_id(),
        slug=slug,
        owner=state.user(owner),
        bot=state.user(f"{slug}[bot]", "Bot"),
        client_id=f"Iv23li{secrets.token_hex(7)}",
        client_secret=secrets.token_hex(20),
        private_key_pem=keys.pem(key),
        webhook_secret=webhook[1],
        permissions=dict(permissions),
        events=list(events),
        created_at=state.clock(),
        public_keys=[key.public_key()],
        webhook_url=webhook[0],
        hook_id=state.new_id(),
    )
    state.apps[app.id] = app
    state.touch()
    return app


def from_manifest(state: State, manifest: Mapping[str, Any], owner: str) -> App:
    """Register the App of a manifest, with a new secret and the permissions that it asks for."""
    slug = str(manifest["name"]).lower().replace(" ", "-")
    hook = manifest.get("hook_attributes", {})
    app = register(
        state,
        slug,
        owner=owner,
        webhook=(hook.get("url"), secrets.token_hex(20)),
        permissions={"metadata": "read", **manifest.get("default_permissions", {})},
        events=manifest.get("default_events", []),
    )
    app.callback_urls = [str(one) for one in manifest.get("callback_urls", [])]
    app.hook_active = bool(hook.get("active", True))
    return app
