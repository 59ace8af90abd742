"""Tells the host of a file's growth as it happens: a line for every change, and at least one a second.

It is disposable: it lives for a limited time, and its loss costs the host only a moment.
"""

from __future__ import annotations

import os
import time
from typing import Any

from . import files, launching
from .hands import say

TELL_SECONDS = 1.0
# Pauses between two looks: (as long as it is unchanged for fewer seconds, the pause).
PAUSES = ((2.0, 0.01), (30.0, 0.025), (float("inf"), 0.05))


def watch(request: dict[str, Any]) -> dict[str, Any]:
    """Print lines with the file's size and the names that run."""
    os.set_blocking(1, False)  # a reader that hangs must not block us; the host has noticed and looks elsewhere
    began = changed = told = time.monotonic()
    known: tuple[int, list[str]] | None = None
    while time.monotonic() - began < request["seconds"]:
        seen = (files.size_of(request["path"]), launching.running())
        now = time.monotonic()
        if seen != known:
            known, changed = seen, now
        if changed == now or now - told >= TELL_SECONDS:
            told = now
            say(f"{seen[0]} {','.join(seen[1])}")
        time.sleep(next(pause for limit, pause in PAUSES if now - changed < limit))
    return {}
