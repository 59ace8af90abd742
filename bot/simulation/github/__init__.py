"""A stateful stand-in for GitHub: a real server on loopback that refuses the same requests."""

from bot.simulation.github.faults import Call, Fault
from bot.simulation.github.simulated import SimulatedGitHub

__all__ = ["Call", "Fault", "SimulatedGitHub"]
