"""The error of a value in a repository's config."""

from __future__ import annotations


class Wrong(Exception):
    """A value is wrong; the message ends a sentence that begins with the key."""
