"""`forgehand sandbox …`: lists, makes and ends sandboxes of any kind, and shows what they do and cost."""

from __future__ import annotations

import dataclasses
import secrets
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import console, sandbox_logs, sandbox_template
from bot.cli.asked import AsJson, Config, read_store
from bot.cli.filters import ListFilters, filtered
from bot.cli.period import began, period, shown
from bot.cli.sandbox_access import BY_HAND, Row, SandboxAccess, opened
from bot.cli.shape import CommandGroup
from bot.cli.table import Column, print_table
from bot.errors import UserError

if TYPE_CHECKING:
    from bot.store.base import Store

app = CommandGroup(help="List, inspect, make and end sandboxes; show their cost.")
app.add_typer(sandbox_template.app, name="template")
app.command("logs")(sandbox_logs.command)
Id = Annotated[str, typer.Argument(metavar="ID", help="As `sandbox list` shows it.")]

NONE = "There are no sandboxes."
STATES = ("running", "paused", "kept")
WORDS = {"hand": "made by hand", "snapshot": "makes a snapshot"}


class CostGrouping(StrEnum):
    SESSION = "session"
    DAY = "day"


@app.command()
def create(as_json: AsJson = False, config: Config = None) -> None:
    """Make a sandbox by hand, as a session would get it, to see that it works."""
    row = console.run(_create(config))
    if as_json:
        console.print_json(dataclasses.asdict(row))
        return
    typer.echo(row.id)
    console.say(f"It is yours to end: forgehand sandbox terminate {row.id}")


async def _create(config: Path | None) -> Row:
    from sandbox.primitives import EnvironmentSpec

    async with opened(config, makes=True) as access:
        if not access.choice.isolated:
            raise UserError(f"This host cannot isolate a sandbox: {access.choice.why}")
        key = f"by-hand-{secrets.token_hex(4)}"
        await access.choice.provider.create(key, EnvironmentSpec(BY_HAND, public_repository=False))
        return await access.row(key)


@app.command("list")
@filtered("repo", "state", "limit")
def list_(filters: ListFilters, as_json: AsJson = False, config: Config = None) -> None:
    """List this service's sandboxes, with the session of each."""

    async def look() -> list[Row]:
        async with opened(config) as access:
            return await access.rows()

    sought = filters.sought(states=STATES)
    rows = [row for row in console.run(look()) if sought.repo.lower() in ("", (row.repo or "").lower())]
    rows = [row for row in rows if sought.state in ("", row.state)][: sought.limit]
    print_table(rows, COLUMNS, as_json=as_json, none="No sandbox matches." if sought.narrows else NONE)


def _age(row: Row) -> str:
    from bot.live.sections import duration

    return duration(row.age_seconds)


COLUMNS = (
    Column("ID", lambda row: row.id),
    Column("KIND", lambda row: row.kind),
    Column("STATE", lambda row: row.state),
    Column("AGE", _age, right=True),
    Column("REPOSITORY", lambda row: row.repo or ("(unknown)" if row.session else "")),
    Column("SESSION", lambda row: row.session or WORDS.get(row.made_for, row.made_for)),
    Column("TURN", lambda row: "" if row.turn is None else str(row.turn), right=True),
    Column(
        "NEED",
        lambda row: (
            f"kept until {console.when(row.kept_until)}"
            if row.kept_until is not None
            else "needed"
            if row.needed
            else "not needed"
        ),
    ),
)


@app.command()
def status(sandbox: Id, as_json: AsJson = False, config: Config = None) -> None:
    """Show one sandbox: what it uses now, and what all its turns have cost."""
    found = console.run(_status(config, sandbox))
    if as_json:
        console.print_json(found)
        return
    from bot.live.sections import duration

    since, age = console.when(found["since"]), duration(found["age_seconds"])
    typer.echo(f"{found['id']}: {found['kind']}, {found['state']} since {since} ({age})")
    if found["session"]:
        working = "which works in it" if found["needed"] else "which has ended"
        typer.echo(f"{found['repo'] or '(unknown)'}, session {found['session']}, turn {found['turn']}, {working}")
    if found["kept_until"] is not None:
        typer.echo(f"kept until {console.when(found['kept_until'])} for the next turn of its session")
    if used := found["metrics"]:
        memory, disk = used["memory_bytes"] / 1e6, used["disk_bytes"] / 1e6
        typer.echo(f"uses CPU {used['cpu_percent']:.0f} %, memory {memory:.0f} MB, disk {disk:.0f} MB")
    if found["sandbox_usd"]:
        typer.echo(f"has cost ${found['sandbox_usd']:.4f} so far")


async def _status(config: Path | None, sandbox_id: str) -> dict[str, Any]:
    from bot.store import machines
    from sandbox.primitives import EnvironmentState

    async with opened(config) as access:
        row = await access.row(sandbox_id)
        cost = (await machines.environment_cost(access.store, sandbox_id)).usd if access.store else 0.0
        metrics: list[dict[str, Any]] = []
        if row.state == EnvironmentState.RUNNING:  # asking would wake a paused one
            running = (one for one in await access.choice.provider.find({}) if one.id == row.id)
            metrics = [dataclasses.asdict(await one.metrics()) for one in running]
        return {**dataclasses.asdict(row), "sandbox_usd": cost, "metrics": metrics[0] if metrics else None}


@app.command()
def terminate(
    sandbox: Annotated[str | None, typer.Argument(metavar="ID", help="As `sandbox list` shows it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sandboxes in which no turn works.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Even if a turn works in it and then loses unsaved work.")
    ] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """End one sandbox, or all. Everything in it is lost."""
    if everything == (sandbox is not None):
        console.fail("Name the sandbox to end, or give --all.", 2)
    rows = console.run(_terminate(config, sandbox, force=force))
    console.print_rows(rows, lambda row: f"{row['id']}: {row['message']}", as_json=as_json, none=NONE)
    if any(row["failed"] for row in rows):
        raise typer.Exit(1)


async def _terminate(config: Path | None, sandbox_id: str | None, *, force: bool) -> list[dict[str, Any]]:
    async with opened(config) as access:
        rows = await access.rows() if sandbox_id is None else [await access.row(sandbox_id)]
        if sandbox_id is not None and rows[0].needed and not force:
            raise UserError(f"{_in_use(rows[0])} Or give --force: the turn then loses its unsaved work.")
        return [
            {"id": row.id, "terminated": False, "failed": False, "message": f"left alone. {_in_use(row)}"}
            if row.needed and not force
            else await _end(access, row)
            for row in rows
        ]


async def _end(access: SandboxAccess, row: Row) -> dict[str, Any]:
    from sandbox.errors import SandboxError

    try:
        await access.choice.provider.end(row.id)  # does not wake it, and accepts one that is gone
    except SandboxError as error:
        return {"id": row.id, "terminated": False, "failed": True, "message": str(error)}
    return {"id": row.id, "terminated": True, "failed": False, "message": "ended"}


def _in_use(row: Row) -> str:
    return (
        f"Turn {row.turn} of session {row.session} works in {row.id}: `forgehand sessions stop {row.session}` ends the "
        "turn and keeps its work."
    )


@app.command()
def cost(
    by: Annotated[CostGrouping, typer.Option(help="Print one line for each.")] = CostGrouping.SESSION,
    since: Annotated[str, typer.Option(metavar="DATE|30d", help="A day (UTC), or a time ago (h, d, w).")] = "30d",
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show what sandboxes have cost: CPU and memory seconds, and dollars. Those on this host are free."""
    from bot.store import machines

    async def look(store: Store) -> list[dict[str, Any]]:
        return [shown(row) for row in await machines.summed(store, by, began(since, time.time()))]

    rows = read_store(config, look)
    end = f"{sum(row['usd'] for row in rows):.4f} dollars {period(since)}"
    named = [Column("DAY", lambda row: row["day"])]
    if by is CostGrouping.SESSION:
        named = [Column("SESSION", lambda row: row["session"]), Column("THREAD", lambda row: row["thread"] or "(gone)")]
    print_table(rows, [*named, *COSTS], as_json=as_json, end=end)


COSTS = (
    Column("USD", lambda row: f"{row['usd']:.4f}", right=True),
    Column("VCPU SECONDS", lambda row: f"{row['vcpu_seconds']:.0f}", right=True),
    Column("GIB SECONDS", lambda row: f"{row['gib_seconds']:.0f}", right=True),
)
