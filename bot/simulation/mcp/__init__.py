"""A stand-in for an MCP server and its token endpoint, on loopback."""

from bot.simulation.mcp.server import SimulatedMcp
from bot.simulation.mcp.tokens import TokenDesk

__all__ = ["SimulatedMcp", "TokenDesk"]
