"""Hostile input through every door of the running service, and what its event loop makes of it."""
