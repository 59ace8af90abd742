"""The texts that leave for GitHub, made safe."""

from bot.outbound.door import Outbound, TextKind
from bot.outbound.redact import Redactor

__all__ = ["Outbound", "Redactor", "TextKind"]
