"""A process of its own that admits one bundle and tells what that took at most: `python -m tests.host_git.peak`."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
from pathlib import Path

from bot.git.errors import BundleRefused
from bot.git.quarantine import Quarantine
from bot.git.run import run_git


def peak() -> int:
    """Bytes of this process: unlike getrusage, without what the process had that started it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) << 10


async def main(mirror: str, place: str, bundle: str, base: str) -> None:
    quarantine = await Quarantine.create(Path(place), Path(mirror))
    await run_git(["version"])
    before = peak()
    try:
        tree = await quarantine.admit(Path(bundle), base=base)
        changed, paths = await quarantine.changes(base, tree), await quarantine.paths(tree)
        words = f"{len(changed)} changes, {len(paths)} files"
    except BundleRefused as error:
        words = str(error)
    helpers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    print(json.dumps({"words": words, "before": before, "after": peak(), "helpers": helpers}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
