"""Signs webhooks, delivers them in the background, and keeps the Apps' delivery logs."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass, replace
from typing import Any

import httpx

from bot.simulation.github.accounts import App, Delivery, Installation
from bot.simulation.github.state import State

NEEDS = {"check_run": "checks", "status": "statuses"}
"""Events that an App gets only with a permission."""
ALWAYS_SENT = ("installation", "installation_repositories", "ping", "github_app_authorization")
ANSWER_LIMIT = 4096


@dataclass(frozen=True)
class Signed:
    """A webhook, ready to post."""

    guid: str
    headers: dict[str, str]
    body: bytes


def sign(secret: str, body: bytes) -> dict[str, str]:
    key = secret.encode()
    return {
        "X-Hub-Signature": "sha1=" + hmac.new(key, body, hashlib.sha1).hexdigest(),
        "X-Hub-Signature-256": "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest(),
    }


def signed(app: App, event: str, payload: dict[str, Any], guid: str | None = None) -> Signed:
    body = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()
    guid = guid or str(uuid.uuid4())
    headers = {
        "User-Agent": "GitHub-Hookshot/4d7c9b1",
        "Accept": "*/*",
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": guid,
        "X-GitHub-Hook-ID": str(app.hook_id),
        "X-GitHub-Hook-Installation-Target-ID": str(app.id),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
    }
    return Signed(guid, headers | sign(app.webhook_secret, body), body)


class Webhooks:
    """The sender of webhooks. An attempt fails after `timeout`, GitHub's 10 s."""

    def __init__(self, state: State, timeout: float = 10.0) -> None:
        self._state = state
        self._client = httpx.AsyncClient(
            # waiting for a free connection does not count, as it is not the receiver's fault
            timeout=httpx.Timeout(timeout, pool=None),
            verify=False,  # receivers are on this machine, without TLS: to read the system's certificates takes long
            trust_env=False,
            follow_redirects=False,
        )
        self._tasks: set[asyncio.Task[None]] = set()

    def emit(self, installation: Installation, event: str, payload: dict[str, Any]) -> Delivery | None:
        """Record and send a webhook, if the App listens for such events."""
        need = NEEDS.get(event)
        silent = installation.suspended_at is not None or event not in installation.app.events
        silent = silent or (need is not None and need not in installation.permissions)
        if silent and event not in ALWAYS_SENT:
            return None
        return self.emit_to(installation.app, event, payload, installation.id)

    def emit_to(
        self, app: App, event: str, payload: dict[str, Any], installation_id: int | None = None
    ) -> Delivery | None:
        """Send a webhook that belongs to no installation."""
        if not app.hook_active or app.webhook_url is None:
            return None
        ready = signed(app, event, payload)
        repository = payload.get("repository", {}).get("id")
        delivery = Delivery(
            id=self._state.new_id(),
            guid=ready.guid,
            event=event,
            action=payload.get("action"),
            delivered_at=self._state.clock(),
            headers=ready.headers,
            body=ready.body,
            installation_id=installation_id,
            repository_id=repository,
        )
        self._start(app, delivery)
        return delivery

    def redeliver(self, app: App, delivery: Delivery) -> Delivery:
        """Send the same GUID and body again, with a new row in the log."""
        again = replace(
            delivery,
            id=self._state.new_id(),
            delivered_at=self._state.clock(),
            redelivery=True,
            status="pending",
            status_code=0,
            headers=delivery.headers | sign(app.webhook_secret, delivery.body),
        )
        self._start(app, again)
        return again

    def _start(self, app: App, delivery: Delivery) -> None:
        app.deliveries.append(delivery)
        task = asyncio.get_running_loop().create_task(self._send(app, delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, app: App, delivery: Delivery) -> None:
        started = asyncio.get_running_loop().time()
        try:
            await self._post(app, delivery)
        except httpx.TimeoutException:
            delivery.status, delivery.status_code = "timed out", 504
        except httpx.HTTPError:
            delivery.status, delivery.status_code = "failed to connect", 502
        finally:
            delivery.duration = round(asyncio.get_running_loop().time() - started, 2)
            self._state.touch()

    async def _post(self, app: App, delivery: Delivery) -> None:
        url = httpx.URL(app.webhook_url or "https://forgehand.invalid")
        if url.host.endswith(".invalid"):
            # reserved never to exist: asking a resolver would only cost time
            raise httpx.ConnectError("no such host")
        answer = await self._client.post(url, content=delivery.body, headers=delivery.headers)
        delivery.status_code = answer.status_code
        delivery.status = "OK" if answer.is_success else f"Invalid HTTP Response: {answer.status_code}"
        delivery.response_headers = dict(answer.headers)
        delivery.response_body = answer.text[:ANSWER_LIMIT]

    async def idle(self, timeout: float = 15.0) -> None:
        """Wait until every webhook so far, and each that follows from it, was answered or given up."""
        async with asyncio.timeout(timeout):
            while self._tasks:
                await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()
