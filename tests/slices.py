"""How much of a long matrix is tried: in CI a slice, with `FORGEHAND_TESTS=all` the whole of it."""

from __future__ import annotations

import os

EVERY = os.environ.get("FORGEHAND_TESTS") == "all"
MATRIX_SECONDS = 3600 if EVERY else 300
