"""Hosts that an agent asked for and did not get: where people are asked, a yes opens them to the next turn."""

from __future__ import annotations

from bot import repo_config
from bot.kinds.parts import BroughtHome, OnFork
from bot.repo_config.values import covered, may_be_opened
from bot.sessions.services import Services
from bot.store import approvals, sessions
from bot.store.approvals import Approval, Kind, Question, Scope, Standing
from bot.store.sessions import Turn
from bot.words import on_approvals

MOST = 10
PORT = 443
"""The only one that the way out lets through."""
REQUEST = "hosts"


async def ask(services: Services, turn: Turn) -> None:
    """With the turn's end: nobody waits for the answer, and a yes begins the next turn."""
    ours = sorted(services.settings.own_hosts())
    asked = [str(one["host"]) for one in turn.part(BroughtHome).blocked if one["port"] == PORT]
    wanted = [host for host in asked if may_be_opened(host) and not covered(host, ours)]
    if not turn.traits.changes or not wanted or repo_config.load(turn.config).permission != "ask":
        return
    hosts = wanted[:MOST]
    matter = {"tool": "network", "hosts": hosts, "shown": on_approvals.hosts_asked(hosts), "call": REQUEST}
    question = Question(turn.key, Kind.TOOL, matter, services.clock(), REQUEST)
    await approvals.expire(services.store, (await approvals.ask(services.store, question)).id)


async def open_to(services: Services, turn: Turn) -> frozenset[str] | None:
    """Those of the repository's config, and those that people have allowed: this turn, or the whole session. None:
    nothing at all, where the code comes from a fork."""
    if turn.part(OnFork).fork is not None:
        return None
    found = set(repo_config.load(turn.config).egress)
    for one in await approvals.of_session(services.store, turn.key.session):
        if one.hosts and one.state is Standing.APPROVED and await _counts(services, turn, one):
            found.update(one.hosts)
    return frozenset(found)


async def _counts(services: Services, turn: Turn, yes: Approval) -> bool:
    """One that is given once is used up by the first turn whose agent has worked with it: a `retry` asks again."""
    if yes.scope is Scope.SESSION or yes.id != turn.approval:
        return yes.scope is Scope.SESSION
    begun_with_it = [one for one in await sessions.turns_of(services.store, turn.key.session) if one.approval == yes.id]
    return not any(one.n < turn.n and one.work_started_at is not None for one in begun_with_it)
