"""`python -m tests.replicas [--kills 200] [--seed N] [--json]`: three replicas at work on one PostgreSQL, of which one
dies every few seconds. Exit 0 if no turn was lost, doubled or stuck."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests.replicas.kills import SETTINGS, Tally, killed
from tests.world import World
from tests.world.postgres import PostgresServer
from tests.world.replicas import ReplicaSet


async def run(kills: int, seed: int) -> Tally:
    """Keep the folder with the replicas' logs, unless all is well."""
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    print(f"seed {seed}, logs in {folder}", file=sys.stderr)
    with PostgresServer.started() as postgres:
        async with World.running(folder, **SETTINGS) as world, ReplicaSet.running(world, postgres) as found:
            tally = await killed(found, kills, seed)
    if tally.holds:
        shutil.rmtree(folder)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    began = time.monotonic()
    tally = asyncio.run(run(given.kills, given.seed))
    figures = asdict(tally) | {"seconds": round(time.monotonic() - began, 1), "holds": tally.holds}
    figures["takeovers"] = {"count": len(tally.takeovers), "seconds": sorted(round(one, 1) for one in tally.takeovers)}
    if given.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:10} {value}")
    return 0 if tally.holds else 1


if __name__ == "__main__":
    sys.exit(main())
