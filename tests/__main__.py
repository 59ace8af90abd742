"""All checks in one command: `python -m tests` (formatting, lint, types, layers, tests); what CI runs.

`--quick` runs the tests that carry the mark `quick`, which enter each package once. Other arguments go to pytest.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests import slices

BIN = Path(sys.executable).parent
CHECKS = (("ruff", "format", "--check", "."), ("ruff", "check", "."))
BESIDE = (("mypy",), ("lint-imports",))
"""They take more than a minute of one core, so they run beside the tests, and behind them in the line for it."""
WORKERS = min(8, 2 * (os.cpu_count() or 1) + 1)
"""Tests wait longer for processes of theirs than they compute."""
QUICK = "--quick"
TESTS = ("pytest", "-q", "--tb", "native", "-n", str(WORKERS), "--dist", "load", "--maxschedchunk", "1")
"""One test at a time to whoever is free: `conftest` puts the long ones first, so that all workers end together. Native
tracebacks: pytest's own parse the source, which CPython 3.11 at times fails at, and that ends the run."""
ALONE = ("pytest", "-q", "--last-failed", "--last-failed-no-failures", "none")
MOST_REPEATED = 8
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 6 << 30
"""What must be free there: the workers hold some hundred megabytes each."""
ROUND = slices.today()
"""Chosen once, because a run may last over midnight."""
FAILED = 1
"""What pytest exits with when tests failed, and nothing worse has happened."""
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    for check in CHECKS:
        if code := run(*check):
            return code
    arguments = [one for one in sys.argv[1:] if one != QUICK]
    chosen = ("-m", "quick") if QUICK in sys.argv[1:] else ()
    command = (*TESTS, *chosen, *arguments)
    print(f"== {' '.join(command)}", flush=True)
    with subprocess.Popen(argv(*command), env=environment()) as tests, ThreadPoolExecutor(1) as pool:
        checking = pool.submit(check_beside, tests)
        code = tests.wait()
    return checking.result() or (again() if code == FAILED else code)


def check_beside(tests: subprocess.Popen[bytes]) -> int:
    """Run the checks that are left, and end the tests if one fails."""
    for check in BESIDE:
        found = subprocess.run(
            ["nice", "-n", "5", *argv(*check)], check=False, env=environment(), capture_output=True, text=True
        )
        print(f"\n== {' '.join(check)}\n{found.stdout}{found.stderr}", flush=True)
        if found.returncode:
            tests.send_signal(signal.SIGINT)
            return found.returncode
    return 0


def run(*command: str) -> int:
    print(f"== {' '.join(command)}", flush=True)
    return subprocess.run(argv(*command), check=False, env=environment()).returncode


def argv(program: str, *arguments: str) -> list[str]:
    return [str(BIN / program), *arguments]


def environment() -> dict[str, str]:
    """Ours, with three changes. Without bytecode on disk each worker, and each of the hundreds of processes that tests
    start, would compile all of our modules. And folders of tests lie in memory where there is room: a turn syncs its
    store to the disk a hundred times, which is a third of the time that a test takes. And long tests take turns: the
    day says whose it is."""
    changed = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES:
        changed.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    changed.setdefault(slices.VARIABLE, str(ROUND))
    return changed


def again() -> int:
    """A few that failed are run once more, one at a time: sessions of real processes beside each other on a small
    machine may miss a time limit. What fails by itself too has failed; what does not is named, to be looked at."""
    failed = sorted(json.loads(LAST_FAILED.read_text(encoding="utf-8"))) if LAST_FAILED.exists() else []
    if not 0 < len(failed) <= MOST_REPEATED:
        return FAILED
    code = run(*ALONE)
    if code == 0:
        print("== failed beside others, passed alone:", *failed, sep="\n   ", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
