"""What E2B's own suite for its SDK asks of the cloud, as far as we lean on it, asked of the stand-in by the same SDK.

In our own words, with the clock pushed where E2B waits. What it asks beyond that (terminals, volumes, forks, file
metadata, MCP, templates' contents) we do not use.
"""
