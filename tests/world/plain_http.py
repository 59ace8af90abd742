"""Clients for servers on loopback without TLS: to read the machine's certificates takes 23 ms for each client."""

from __future__ import annotations

from typing import Any

import httpx


def plain_client(**options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(verify=False, **options)
