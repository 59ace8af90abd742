"""A scripted stand-in for Anthropic's API: a real server on loopback that refuses the same requests."""

from bot.simulation.anthropic.reading import ModelRequest, ToolResult
from bot.simulation.anthropic.script import Call, Calls, Cut, Fail, Say, Script, Slow, Step, Wait
from bot.simulation.anthropic.server import SimulatedAnthropic
from bot.simulation.anthropic.wire import NO_CREDIT

__all__ = [
    "NO_CREDIT",
    "Call",
    "Calls",
    "Cut",
    "Fail",
    "ModelRequest",
    "Say",
    "Script",
    "SimulatedAnthropic",
    "Slow",
    "Step",
    "ToolResult",
    "Wait",
]
