"""Keeps the cost and the time of ended turns: the source of estimates, and how often those held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot import estimates
from bot.estimates import EstimateScope, TurnFigures
from bot.kinds.shape import WorkEstimate
from bot.models import InstallationId, Outcome, Repo
from bot.store.base import Store
from bot.store.records import Record, Turn
from bot.store.rows import Database, Row, many, one, run, statement

_CUT_SHORT = (Outcome.STOPPED, Outcome.KILLED, Outcome.FAILED, Outcome.REFUSED)
"""Turns that ended like this say nothing about what such work costs."""
_NEWEST = "SELECT usd, seconds, at FROM turn_figures WHERE {where} AND kind = :kind ORDER BY at DESC LIMIT :most"
_FACTS = """
SELECT repos.id, repos.installation_id, repos.private,
    (SELECT COALESCE(SUM(cost_usd + unconfirmed_usd), 0) FROM spend
     WHERE spend.session_id = :session AND spend.turn = :n) AS usd
FROM sessions JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id
WHERE sessions.id = :session
"""
_PUT = """
INSERT INTO turn_figures (session_id, turn, repo_id, installation_id, private, kind, usd, seconds, at, held_usd,
                          held_seconds)
VALUES (:session, :n, :repo, :installation, :private, :kind, :usd, :seconds, :at, :held_usd, :held_seconds)
ON CONFLICT (session_id, turn) DO NOTHING
"""
_HELD = """
SELECT kind, COUNT(*) AS turns, SUM(held_usd) AS held_usd, SUM(held_seconds) AS held_seconds FROM turn_figures
WHERE at >= :since AND held_usd IS NOT NULL {whose} GROUP BY kind ORDER BY kind
"""


@dataclass(frozen=True)
class EstimatesHeld(Record):
    """How many turns of a kind had an estimate, and how many stayed within its upper figures."""

    kind: str
    turns: int
    held_usd: int
    held_seconds: int


async def held(store: Store, since: float, installation: InstallationId | None = None) -> list[EstimatesHeld]:
    whose = "" if installation is None else "AND installation_id = :installation"
    values = {"since": since} | ({} if installation is None else {"installation": installation})
    return await EstimatesHeld.many(store, statement(_HELD, whose=whose), **values)


def total(held: Sequence[EstimatesHeld]) -> tuple[int, int, int]:
    return sum(one.turns for one in held), sum(one.held_usd for one in held), sum(one.held_seconds for one in held)


async def estimate(store: Store, repo: Repo, installation: InstallationId, kind: str) -> WorkEstimate | None:
    return await store.read(lambda db: estimated(db, repo, installation, kind))


def estimated(db: Database, repo: Repo, installation: InstallationId, kind: str) -> WorkEstimate | None:
    """WorkEstimate by turns of the repository; without enough, by those of its account; then by all public ones.

    A public repository shows its estimates to everybody, so only turns of public ones count there; and no account
    learns what another one's private work costs."""
    own = many(db, statement(_NEWEST, where="repo_id = :repo"), repo=repo.id, kind=kind, most=estimates.MOST)
    found = estimates.of(_figures(own), kind, EstimateScope.REPOSITORY)
    if found is None:
        found = estimates.of(_elsewhere(db, repo, kind, installation), kind, EstimateScope.ACCOUNT)
    return found or estimates.of(_elsewhere(db, repo, kind), kind, EstimateScope.INSTALLATION)


def put(db: Database, turn: Turn, at: float) -> None:
    """Keep the figures of a turn that has ended, if they tell something about such work; safe to repeat."""
    tells = turn.outcome is not None and turn.outcome not in _CUT_SHORT and turn.work_started_at is not None
    facts = one(db, _FACTS, session=turn.key.session, n=turn.key.n)
    if not tells or turn.started_at is None or facts is None:
        return
    actual, given = TurnFigures(facts["usd"], max(0.0, at - turn.started_at)), turn.part(WorkEstimate)
    is_judged = given.kind == turn.kind
    held_usd, held_seconds = estimates.held(given, actual)
    run(
        db,
        _PUT,
        session=turn.key.session,
        n=turn.key.n,
        repo=facts["id"],
        installation=facts["installation_id"],
        private=facts["private"],
        kind=turn.kind,
        usd=actual.usd,
        seconds=actual.seconds,
        at=at,
        held_usd=int(held_usd) if is_judged else None,
        held_seconds=int(held_seconds) if is_judged else None,
    )


def _elsewhere(db: Database, repo: Repo, kind: str, installation: InstallationId | None = None) -> list[TurnFigures]:
    """Return the newest figures of an account, or of all, that people of the repository may know."""
    with_private = repo.private and installation is not None
    whose = "" if installation is None else "installation_id = :installation AND "
    sql = statement(_NEWEST, where=f"{whose}private = :private")
    values = {"kind": kind, "most": estimates.MOST} | ({} if installation is None else {"installation": installation})
    rows = [row for private in range(1 + with_private) for row in many(db, sql, private=private, **values)]
    return _figures(sorted(rows, key=lambda row: row["at"], reverse=True))


def _figures(rows: Sequence[Row]) -> list[TurnFigures]:
    return [TurnFigures(row["usd"], row["seconds"]) for row in rows]
