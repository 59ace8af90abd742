"""MCP through the gateway: agents reach the tools of an account's servers here, and never their credentials."""

from __future__ import annotations

from typing import Final

PATH: Final = "/gateway/anthropic/mcp/"
"""It is below the address at which agents find the model."""
