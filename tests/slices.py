"""How much of what takes long is tried: all with `FORGEHAND_TESTS=all`, otherwise a share of it in each round."""

from __future__ import annotations

import os
import sys
import time
import zlib

EVERY = os.environ.get("FORGEHAND_TESTS") == "all"
MATRIX_SECONDS = 3600 if EVERY else 300
VARIABLE = "FORGEHAND_TESTS_ROUND"
ROUND = int(os.environ.get(VARIABLE) or 0)
IS_CHOSEN = not EVERY and VARIABLE in os.environ
"""`python -m tests` chooses a round. pytest by itself runs every case of the tests that it is given."""
ROUNDS = 4
"""So many rounds one after the other run each long test that takes turns."""


def today() -> int:
    """Return the round of today: another one for each of four Python versions, so that CI runs all of them at once."""
    return int(time.time() // 86_400) + sys.version_info.minor


def is_due(test: str, place: int, rounds: int) -> bool:
    """Decide whether a case of a test runs in this round. Tests start at different rounds, so that all rounds take
    about as long."""
    return (place + zlib.crc32(test.encode()) + ROUND) % rounds == 0
