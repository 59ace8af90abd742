"""The page that makes the GitHub App, stores its credentials, and checks that everything works."""

from bot.setup.serving import SetUp, serving

__all__ = ["SetUp", "serving"]
