"""Checks everything that a session needs, for `forgehand doctor` and the set-up page."""

from bot.checkup.app import NOWHERE
from bot.checkup.examination import examine
from bot.checkup.host import examine_folder
from bot.checkup.lines import CheckupFinding, Level

__all__ = ["NOWHERE", "CheckupFinding", "Level", "examine", "examine_folder"]
