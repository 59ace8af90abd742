"""`python -m tests.bench NAME [arguments]`: runs one bench of this folder by its name."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

NAMES = sorted(one.stem for one in Path(__file__).parent.glob("[a-z]*.py"))


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"Name a bench: {', '.join(NAMES)}")
    name = sys.argv.pop(1)
    runpy.run_module(f"tests.bench.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
