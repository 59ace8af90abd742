"""Acts of operators of Apps and owners of accounts: register, install, suspend, rotate keys, redeliver."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from bot.simulation.github import keys, payloads
from bot.simulation.github.accounts import Account, App, Delivery, Installation
from bot.simulation.github.payloads import Json
from bot.simulation.github.registry import EVENTS, PERMISSIONS, register
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Comment
from bot.simulation.github.webhooks import Signed, sign, signed
from bot.simulation.github.world import World


class Apps(World):
    """Apps and their installations."""

    def create_app(
        self,
        slug: str = "forgehand",
        *,
        webhook_url: str | None = None,
        webhook_secret: str | None = None,
        owner: str = "octo",
        permissions: Mapping[str, str] = PERMISSIONS,
        events: Sequence[str] = EVENTS,
    ) -> App:
        secret = secrets.token_hex(20) if webhook_secret is None else webhook_secret
        hook = (webhook_url, secret)
        return register(self.state, slug, owner=owner, webhook=hook, permissions=permissions, events=events)

    def offer_manifest(self, manifest: Json, *, owner: str = "octo") -> str:
        """Confirm GitHub's page for a person, and return the redirect's one-time code."""
        code = secrets.token_hex(20)
        self.state.manifests[code] = (manifest, owner)
        return code

    def revoke_tokens(self, installation: Installation) -> None:
        """End every token of the installation."""
        for token in self.state.tokens.values():
            token.revoked = token.revoked or token.installation is installation

    def rotate_key(self, app: App, *, keep_old: bool = True) -> str:
        """Give the App a new key, and return its PEM."""
        key = keys.key_pair(len(self.state.apps) + sum(len(each.public_keys) for each in self.state.apps.values()))
        app.public_keys = [*(app.public_keys if keep_old else []), key.public_key()]
        app.private_key_pem = keys.pem(key)
        return app.private_key_pem

    def install(
        self,
        app: App,
        *,
        repos: Sequence[Repository],
        permissions: Mapping[str, str] | None = None,
        selection: str = "selected",
    ) -> Installation:
        """Install the App on the account that owns the repositories."""
        account = repos[0].owner
        granted = dict(app.permissions if permissions is None else permissions)
        now = self.state.clock()
        installation = Installation(self.state.new_id(), app, account, list(repos), granted, now, selection)
        self.state.installations[installation.id] = installation
        self.actions.events.installation(installation, "created", account)
        return installation

    def uninstall(self, installation: Installation) -> None:
        self.actions.events.installation(installation, "deleted", installation.account)
        installation.deleted = True
        self.state.touch()

    def suspend(self, installation: Installation) -> None:
        installation.suspended_at = self.state.clock()
        self.actions.events.installation(installation, "suspend", installation.account)

    def unsuspend(self, installation: Installation) -> None:
        installation.suspended_at = None
        self.actions.events.installation(installation, "unsuspend", installation.account)

    def add_repos(self, installation: Installation, *repos: Repository) -> None:
        installation.repos += [repo for repo in repos if repo not in installation.repos]
        self.actions.events.installed_repos(installation, list(repos), [], installation.account)

    def remove_repos(self, installation: Installation, *repos: Repository) -> None:
        installation.repos = [repo for repo in installation.repos if repo not in repos]
        self.actions.events.installed_repos(installation, [], list(repos), installation.account)

    def revoke_authorization(self, app: App, user: Account) -> None:
        """Withdraw a person's consent to an App, which GitHub tells every App, subscribed or not."""
        tokens = self.state.user_tokens
        for token in [name for name, agreed in tokens.items() if agreed.app is app and agreed.account is user]:
            del tokens[token]
        payload: Json = {"action": "revoked", "sender": payloads.user(self.state, user)}
        self.actions.events.webhooks.emit_to(app, "github_app_authorization", payload)
        self.state.touch()

    def redeliver(self, guid: str) -> Delivery:
        """Send a webhook again, with its GUID."""
        for app in self.state.apps.values():
            for delivery in app.deliveries:
                if delivery.guid == guid:
                    return self.actions.events.webhooks.redeliver(app, delivery)
        raise LookupError(f"no delivery {guid}")

    def sign(self, app: App, body: bytes) -> dict[str, str]:
        """Return the signature headers for a body."""
        return sign(app.webhook_secret, body)

    def webhook(self, app: App, event: str, payload: Json, guid: str | None = None) -> Signed:
        """Return a signed webhook that a test posts itself; nothing is sent or logged."""
        return signed(app, event, payload, guid)

    def comment_webhook(self, comment: Comment, action: str = "created", guid: str | None = None) -> Signed:
        """Return the webhook about a comment, ready to post."""
        installation = self._installation(comment.issue.repo)
        events = self.actions.events
        payload = events.comment(comment, action)
        whole = payload | events.common(comment.issue.repo, installation, comment.author)
        return signed(installation.app, "issue_comment", whole, guid)

    def _installation(self, repo: Repository) -> Installation:
        found = self.state.installations_of(repo)
        if not found:
            raise LookupError(f"no App is installed on {repo.full_name}")
        return found[0]
