"""`python -m tests.bench.packages`: `npm ci` and `pip install` of 30 packages, direct, through the gateway, and cached.

The registry is a process of its own, as far away as `FAR` says; the gateway runs in this one. Each run has a client
without any cache of its own. "Cold" is a host that has never seen the packages, "cached" one that has.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.registries import DIALECTS
from bot.simulation.registries import SimulatedRegistries, archives
from bot.store.outside_services import OutsideService
from tests.world.package_clients import PackageWorkplace
from tests.world.package_gateway import SECRET, PackageRig, rigged

PACKAGES = 30
SIZE = 500_000
ROUNDS = 4
NEAR = (0.0, 0.0)
FAR, FARTHER = (0.05, 10e6), (0.15, 2e6)
"""Seconds until an answer begins, and bytes a second of each: registries on the internet."""
WAYS = ("direct", "cold", "cached")
GOALS = {"cold": 1.15, "cached": 0.5}
NAMES = [f"bench-{n:02}" for n in range(PACKAGES)]
COMMANDS = {
    "npm": "npm ci --silent --cache $HOME/npm",
    "pypi": f"python -m pip install -q --no-cache-dir --target got {' '.join(NAMES)}",
}

CALLED = {"npm": "`npm ci`", "pypi": "`pip install`"}


async def serve(delay: float, speed: float) -> None:
    async with SimulatedRegistries.running(f"Bearer {SECRET}") as registries:
        registries.delay_seconds = delay
        registries.bytes_per_second = speed or registries.bytes_per_second
        for public in (False, True):
            for name in NAMES:
                registries.shelf("npm", public=public).put(archives.npm(name, "1.0.0", size=SIZE))
                registries.shelf("pypi", public=public).put(archives.wheel(name, "1.0.0", size=SIZE))
        print(json.dumps([registries.url, registries.files_url]), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


@asynccontextmanager
async def elsewhere(delay: float, speed: float) -> AsyncIterator[SimulatedRegistries]:
    arguments = ["-m", "tests.bench.packages", "serve", str(delay), str(speed)]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=-1, stdout=-1)
    assert process.stdin and process.stdout
    try:
        url, files_url = json.loads(await process.stdout.readline())
        yield SimulatedRegistries(f"Bearer {SECRET}", url, files_url)
    finally:
        process.stdin.close()
        await process.wait()


def project() -> dict[str, str]:
    root = {"name": "x", "version": "1.0.0", "dependencies": dict.fromkeys(NAMES, "1.0.0")}
    packages: dict[str, object] = {"": root}
    packages |= {f"node_modules/{name}": {"version": "1.0.0"} for name in NAMES}
    lock = {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "requires": True, "packages": packages}
    return {"package.json": json.dumps(root), "package-lock.json": json.dumps(lock)}


async def timed(place: PackageWorkplace, kind: str) -> float:
    place.put(project())
    began = time.perf_counter()
    await place.run(COMMANDS[kind])
    return time.perf_counter() - began


async def direct(folder: Path, kind: str, registries: SimulatedRegistries) -> float:
    place = PackageWorkplace(folder)
    address = registries.address(kind, public=True)
    place.variables = {"NPM_CONFIG_REGISTRY": address, "NPM_CONFIG_AUDIT": "false", "PIP_INDEX_URL": address}
    place.variables |= {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return await timed(place, kind)


async def through(folder: Path, kind: str, rig: PackageRig, service: OutsideService) -> float:
    place = PackageWorkplace(folder)
    place.configure([service], f"http://127.0.0.1:{rig.port}/gateway/packages/", rig.token)
    return await timed(place, kind)


async def measured(folder: Path, kind: str, registries: SimulatedRegistries) -> dict[str, float]:
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    for n in range(ROUNDS):
        at = folder / f"{kind}-{n}"
        taken["direct"].append(await direct(at / "direct", kind, registries))
        async with rigged(at / "host", registries) as rig:
            service = await rig.stored(kind)
            await rig.opened(kind)
            for way in ("cold", "cached"):
                taken[way].append(await through(at / way, kind, rig, service))
    return {way: min(seconds) for way, seconds in taken.items()}


async def main() -> None:
    assert set(COMMANDS) <= set(DIALECTS)
    print(f"{PACKAGES} packages of {SIZE // 1000} KB, the fastest of {ROUNDS} runs\n")
    print("| registry | client | direct, s | cold, s | cached, s | cold ÷ direct | cached ÷ direct |")
    print("|---|---|---:|---:|---:|---:|---:|")
    places = {"on this machine": NEAR, "50 ms and 10 MB/s away": FAR, "150 ms and 2 MB/s away": FARTHER}
    for words, (delay, speed) in places.items():
        async with elsewhere(delay, speed) as registries:
            for kind in COMMANDS:
                with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
                    took = await measured(Path(folder), kind, registries)
                ratios = [f"{took[way] / took['direct']:.2f}" for way in GOALS]
                seconds = [f"{took[way]:.2f}" for way in WAYS]
                print(f"| {words} | {CALLED[kind]} | {' | '.join((*seconds, *ratios))} |", flush=True)
    print(f"\ngoals, for a registry on the internet: cold {GOALS['cold']}, cached {GOALS['cached']}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(float(sys.argv[2]), float(sys.argv[3])))
    else:
        asyncio.run(main())
