"""`python -m tests.walk [--files]`: how many modules one delivery enters, from `POST /webhook` to a draft pull request.

A module counts when a function of it runs after the service is up: what is only imported, or read at the start, does
not. The stand-ins are left out; what runs inside the sandbox is another process and is not seen.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import logging
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.world import World

ROOT = Path(__file__).parents[1]
LEFT_OUT = "bot/simulation/"


class Watch:
    """Notes the files whose functions are called while it is on, in all threads that started after it."""

    def __init__(self) -> None:
        self.on = False
        self.entered: set[str] = set()

    def called(self, frame: FrameType, event: str, _: object) -> None:
        if self.on and event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # no module's or class's body
            self.entered.add(frame.f_code.co_filename)


@contextmanager
def watching() -> Iterator[Watch]:
    watch = Watch()
    threading.setprofile(watch.called)
    sys.setprofile(watch.called)
    try:
        yield watch
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def walk() -> list[Path]:
    """The modules of ours that one delivery enters, relative to the repository."""
    with tempfile.TemporaryDirectory() as folder, watching() as watch:
        async with World.running(Path(folder)) as world, world.bot():
            watch.on = True
            world.say("/claude fix this")
            outcome = await world.outcome()
            watch.on = False
    assert outcome == "pull_request", outcome
    return sorted(ours(watch.entered))


def ours(files: set[str]) -> Iterator[Path]:
    for name in files:
        path = Path(name)
        if path.is_relative_to(ROOT):
            inside = path.relative_to(ROOT)
            if inside.parts[0] in ("bot", "sandbox") and not inside.as_posix().startswith(LEFT_OUT):
                yield inside


def room(path: Path) -> str:
    """The package that it lies in, two levels deep at most."""
    return "/".join(path.parts[:-1][:2])


def report(paths: list[Path], *, files: bool) -> str:
    lines = {path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in paths}
    rooms = Counter(map(room, paths))
    rows = [f"{rooms[name]:4} {name}" for name in sorted(rooms)]
    if files:
        rows += [f"{lines[path]:6} {path}" for path in paths]
    return "\n".join([*rows, f"{len(paths)} modules, {sum(lines.values())} lines"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the modules that one delivery enters.")
    parser.add_argument("--files", action="store_true", help="name them, with their lines")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print(report(asyncio.run(walk()), files=chosen.files))


if __name__ == "__main__":
    main()
