"""Tells the host of a file's growth as it happens: a line for every change, and one a second in any case.

Disposable: it lives for a bounded time, and losing it costs the host nothing but a moment.
"""

from __future__ import annotations

import os
import time
from typing import Any

from . import files, launching
from .hands import say

TELL_SECONDS = 1.0
# How long to wait between two looks: (after so many seconds without a change, the pause).
PAUSES = ((2.0, 0.01), (30.0, 0.025), (float("inf"), 0.05))


def watch(request: dict[str, Any]) -> dict[str, Any]:
    """Each line: the file's size, then the names that run."""
    os.set_blocking(1, False)  # a reader that hangs must not keep us: the host has noticed and looks elsewhere
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
