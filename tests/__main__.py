"""All checks in one command: `python -m tests` (formatting, lint, types, layers, tests); what CI runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
CHECKS = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("mypy",),
    ("lint-imports",),
    ("pytest", "-q", "-n", str(min(4, os.cpu_count() or 1)), "--dist", "loadfile"),
)


def main() -> int:
    for check in CHECKS:
        print(f"== {' '.join(check)}", flush=True)
        command = [str(BIN / check[0]), *check[1:], *(sys.argv[1:] if check[0] == "pytest" else [])]
        found = subprocess.run(command, check=False)
        if found.returncode:
            return found.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
