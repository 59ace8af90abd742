"""`python -m tests.bench.e2b`: the spine's figures with sessions in E2B's sandboxes (the stand-in, the real SDK)."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bot.models import SessionId, TurnKey
from bot.store import sessions
from bot.store.base import Store
from sandbox.e2b.provider import E2BProvider
from sandbox.primitives import EnvironmentSpec
from tests.bench import spine
from tests.e2b_stand_in import E2BStandIn
from tests.world import World
from tests.world.e2b import e2b_maker, e2b_spine
from tests.world.environments import short_folder, small_agent

RUNS = 5
CALLS = 15  # below the number of sandboxes that a plan allows at a time
PACK_BYTES = 20 << 20
FILES = 5_000


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with e2b_spine(Path(folder)) as (world, e2b):
            await turns(world, e2b)
            await spine.latency(world)
    with tempfile.TemporaryDirectory() as folder:
        async with e2b_spine(Path(folder)) as (world, e2b):
            await bring_in(world, e2b)
    with short_folder() as root:
        async with e2b_maker(root, small_agent(root)) as make:
            await calls(make, root)


async def turns(world: World, e2b: E2BStandIn) -> None:
    created, asked = [], []
    async with world.bot():
        for _ in range(RUNS):
            issue = world.github.open_issue(world.repo, title="Bench", body="", by="alice")
            before, began = len(world.model.requests), time.time()
            world.say("/claude fix this", on=issue)
            await world.model.until(lambda model, before=before: len(model.requests) > before, 60)  # type: ignore[misc]
            asked.append(time.time() - began)
            created.append(time.time() - e2b.sandboxes[-1].created_at)
            await world.outcome(on=issue)
    spine.say("create to first request at the model", created, None)
    spine.say("webhook to first request at the model", asked, None)


async def bring_in(world: World, e2b: E2BStandIn) -> None:
    """A large repository: first to the host and into a sandbox, then into another with the host's copy there."""
    files = {f"src/part{n % 50}/module{n}.py": f"# {n}\nVALUE = {n * 7919}\n" * 20 for n in range(FILES)}
    repo = world.github.create_repo(f"{world.repo.owner.login}/large", files=files, private=True)
    repo.grant("alice", "write")
    world.github.add_repos(world.installation, repo)
    async with world.bot():
        for name in ("cold", "warm", "warm again"):
            issue = world.github.open_issue(repo, title="Bench", body="", by="alice")
            before = len(e2b.calls)
            world.say("/claude look", on=issue)
            await world.outcome(on=issue)
            sent = sum(call.size for call in e2b.calls[before:] if call.path.startswith("/files"))
            key = TurnKey(SessionId(str(world.states(issue)[0]["session"])), 1)
            store = await Store.open_reader(world.database)
            turn = await sessions.turn(store, key)
            await store.close()
            assert turn.started_at is not None
            furnish, work = turn.step_times["furnish"], turn.step_times["work"]
            to_host, inside = furnish - turn.started_at, work - furnish
            told = (
                f"to the host {to_host:5.2f} s, create and into the sandbox {inside:5.2f} s, {sent / 1e6:5.2f} MB sent"
            )
            print(f"{FILES} files, {name:12} {told}")


async def calls(make: Callable[[], E2BProvider], root: Path) -> None:
    provider = make()
    spec = EnvironmentSpec(labels={}, public_repository=False)
    env = await provider.create("bench", spec)
    timed: dict[str, list[float]] = {}

    async def measure(what: str, call: Callable[[], object]) -> None:
        began = time.monotonic()
        await call()  # type: ignore[misc]
        timed.setdefault(what, []).append(time.monotonic() - began)

    pack = root / "pack"
    pack.write_bytes(os.urandom(PACK_BYTES))
    for number in range(CALLS):
        await measure("create and furnish", partial(provider.create, f"b-{number}", spec))
        await measure("exec", lambda: env.exec(["true"]))
        await measure("write", lambda: env.write(f"{env.layout.work}/x", b"x"))
        await measure("read", lambda: env.read(f"{env.layout.work}/x"))
        await measure("upload of 20 MiB", lambda: env.upload(pack, f"{env.layout.work}/pack"))
    for what, seconds in timed.items():
        spine.say(what, seconds, None)


if __name__ == "__main__":
    asyncio.run(main())
