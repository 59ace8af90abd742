"""What leaves for GitHub, and how it is made safe to leave."""

from bot.outbound.door import Outbound, TextKind
from bot.outbound.redact import Redactor

__all__ = ["Outbound", "Redactor", "TextKind"]
