"""Finds the address of a sandbox's port, and the headers that let a request through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.e2b.settings import E2BSettings
from sandbox.runner import web

if TYPE_CHECKING:
    from e2b import AsyncSandbox


def target(sandbox: AsyncSandbox, port: int, settings: E2BSettings) -> web.Target:
    headers = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": str(port)}
    if sandbox.traffic_access_token:
        headers["E2b-Traffic-Access-Token"] = sandbox.traffic_access_token
    # Each port has a domain; with a fixed address the headers name the port.
    return web.Target.of(settings.sandbox_url or f"https://{sandbox.get_host(port)}", headers)
