"""The page that makes the GitHub App, stores what belongs to it, and looks whether all works."""

from bot.setup.serving import SetUp, serving

__all__ = ["SetUp", "serving"]
