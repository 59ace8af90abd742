"""Checks the database server and the replicas that share it; looks at their beats until each has moved."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from bot.checkup.lines import CheckupFinding, good, warning
from bot.engine.database import MOST_CONNECTIONS
from bot.replicas import BEAT_SECONDS
from bot.store import replicas
from bot.store.base import Store
from bot.store.replicas import DatabaseServer, Replica

LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 3 * BEAT_SECONDS
LONG_ROUND_TRIP_SECONDS = 0.02
LONG_CLOCK_SECONDS = 5.0
SPARE_CONNECTIONS = 10
"""For commands, backups and the operator's own tools."""


async def examine(store: Store) -> list[CheckupFinding]:
    """Return nothing for a store in a file."""
    server = await store.server()
    if server is None:
        return []
    ahead = store.now() - server.now
    before = await replicas.living(store)
    after = await replicas.living(store)
    for _ in range(int(PATIENCE_SECONDS / LOOK_SECONDS)):
        if not silent(before, after):
            break
        await asyncio.sleep(LOOK_SECONDS)
        after = await replicas.living(store)
    return [of_server(server, len(after)), of_clock(ahead), *of_replicas(after, silent(before, after))]


def silent(before: Sequence[Replica], after: Sequence[Replica]) -> list[Replica]:
    """Return those whose beat has not moved; one that came or went meanwhile lives, or is known to have ended."""
    beats = {one.id: one.beat for one in before}
    return [one for one in after if beats.get(one.id) == one.beat]


def of_server(server: DatabaseServer, count: int) -> CheckupFinding:
    if server.is_pooled:
        fix = "Name PostgreSQL's own port in FORGEHAND_DATABASE_URL: in a pool, locks and notices get lost."
        return warning("database server", "A connection pooler stands before PostgreSQL.", fix)
    took = f"PostgreSQL {server.version} answers in {1000 * server.round_trip_seconds:.1f} ms"
    needed = max(1, count) * (server.each_needs + MOST_CONNECTIONS) + SPARE_CONNECTIONS
    words = f"{took}; {server.connections} of {server.most_connections} connections are open."
    if needed > server.most_connections:
        replicas = "one replica" if count <= 1 else f"{count} replicas"
        fix = f"Raise max_connections to at least {needed + 3} for {replicas}, then restart PostgreSQL."
        return warning("database server", f"{words} Under load, {replicas} may open more.", fix)
    if server.round_trip_seconds > LONG_ROUND_TRIP_SECONDS:
        fix = "Each step of a turn waits for several answers: bring the database nearer to this machine."
        return warning("database server", words, fix)
    return good("database server", words)


def of_clock(ahead: float) -> CheckupFinding:
    words = f"This machine's clock is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the database server's."
    if abs(ahead) > LONG_CLOCK_SECONDS:
        fix = "Set both by NTP (on Debian: timedatectl set-ntp true): times in the store come from either."
        return warning("database clock", words, fix)
    return good("database clock", words)


def of_replicas(found: Sequence[Replica], without_beat: Sequence[Replica]) -> list[CheckupFinding]:
    if not found:
        return [good("replicas", "None runs now.")]
    named = [f"{one.host} ({one.id}{', leads' if one.leads else ''})" for one in found]
    findings = [good("replicas", f"{len(found)} live: {', '.join(named)}.")]
    for one in without_beat:
        fix = "The others give it up and take over its turns; if it stays in this list, restart it."
        findings.append(warning("beat", f"{one.host} ({one.id}) gives no sign of life.", fix))
    if not any(one.leads for one in found):
        fix = "Run this again; if none leads then either, each replica's log says why."
        findings.append(warning("leader", "No replica leads, so nothing new starts.", fix))
    versions = Counter(one.version for one in found)
    if len(versions) > 1:
        told = ", ".join(f"{version} ({count})" for version, count in sorted(versions.items()))
        fix = "Finish the upgrade: replace the older ones one by one."
        findings.append(warning("versions", f"The replicas run different versions: {told}.", fix))
    return findings
