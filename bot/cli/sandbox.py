"""`forgehand sandbox …`: the sandboxes that there are, of whichever kind; what they do and cost, and their end."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli import console, sandbox_logs, sandbox_template
from bot.cli.asked import AsJson, Config, database
from bot.cli.sandbox_access import BY_HAND, Row, SandboxAccess, opened
from bot.cli.shape import CommandGroup
from bot.cli.spend import began, period, shown
from bot.errors import UserError

app = CommandGroup(help="List, look into, make and end sandboxes; what they cost.")
app.add_typer(sandbox_template.app, name="template")
app.command("logs")(sandbox_logs.command)
Id = Annotated[str, typer.Argument(metavar="ID", help="As `sandbox list` shows it.")]

WORDS = {"hand": "made by hand", "snapshot": "makes a snapshot"}


class CostGrouping(StrEnum):
    SESSION = "session"
    DAY = "day"


@app.command()
def create(as_json: AsJson = False, config: Config = None) -> None:
    """Make one by hand, as a session would get it: to see that it can be had."""
    row = console.run(_create(config))
    if as_json:
        console.print_json(row.json)
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
def list_(as_json: AsJson = False, config: Config = None) -> None:
    """All of this service's, with the session that each belongs to."""
    rows = console.run(_list(config))
    if as_json:
        console.print_json([row.json for row in rows])
        return
    if not rows:
        typer.echo("There are no sandboxes.")
    for row in rows:
        typer.echo(_line(row))


async def _list(config: Path | None) -> list[Row]:
    async with opened(config) as access:
        return await access.rows()


def _line(row: Row) -> str:
    from bot.live.sections import duration

    belongs = (
        f"{row.repo or '(unknown)'}  session {row.session} turn {row.turn}"
        if row.session
        else WORDS.get(row.made_for, row.made_for)
    )
    return f"{row.id}  {row.kind}  {row.state}  {duration(row.age_seconds)}  {belongs}  {_needed(row)}"


def _needed(row: Row) -> str:
    if row.kept_until is not None:
        return f"kept until {_clock(row.kept_until)}"
    return "needed" if row.needed else "not needed"


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


@app.command()
def status(sandbox: Id, as_json: AsJson = False, config: Config = None) -> None:
    """One of them, with what it uses now and has cost so far, in all turns that it has served."""
    found = console.run(_status(config, sandbox))
    if as_json:
        console.print_json(found)
        return
    from bot.live.sections import duration

    since, age = _clock(found["since"]), duration(found["age_seconds"])
    typer.echo(f"{found['id']}: {found['kind']}, {found['state']} since {since} ({age})")
    if found["session"]:
        working = "which works in it" if found["needed"] else "which has ended"
        typer.echo(f"{found['repo'] or '(unknown)'}, session {found['session']}, turn {found['turn']}, {working}")
    if found["kept_until"] is not None:
        typer.echo(f"kept until {_clock(found['kept_until'])} for the next turn of its session")
    if used := found["metrics"]:
        memory, disk = used["memory_bytes"] / 1e6, used["disk_bytes"] / 1e6
        typer.echo(f"uses CPU {used['cpu_percent']:.0f} %, memory {memory:.0f} MB, disk {disk:.0f} MB")
    if found["sandbox_usd"]:
        typer.echo(f"has cost ${found['sandbox_usd']:.4f} so far")


async def _status(config: Path | None, sandbox_id: str) -> dict[str, Any]:
    from bot.store import machines

    async with opened(config) as access:
        row = await access.row(sandbox_id)
        cost = (await machines.environment_cost(access.store, sandbox_id)).usd if access.store else 0.0
        return {**row.json, "sandbox_usd": cost, "metrics": await _metrics(access, row)}


async def _metrics(access: SandboxAccess, row: Row) -> dict[str, Any] | None:
    """None while it is paused: to ask would wake it."""
    import dataclasses

    from sandbox.primitives import EnvironmentState

    environment = await access.environment(row.id) if row.state == EnvironmentState.RUNNING else None
    if environment is None:
        return None
    return dataclasses.asdict(await environment.metrics())


@app.command()
def terminate(
    sandbox: Annotated[str | None, typer.Argument(metavar="ID", help="As `sandbox list` shows it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that no turn under way works in.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also where a turn works: it loses what is not home.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """End one, or all; what is in it is gone."""
    if everything == (sandbox is not None):
        console.fail("Name the sandbox to end, or give --all.", 2)
    rows = console.run(_terminate(config, sandbox, force=force))
    if as_json:
        console.print_json(rows)
    elif not rows:
        typer.echo("There are no sandboxes.")
    else:
        for row in rows:
            typer.echo(f"{row['id']}: {row['message']}")
    if any(row["failed"] for row in rows):
        raise typer.Exit(1)


async def _terminate(config: Path | None, sandbox_id: str | None, *, force: bool) -> list[dict[str, Any]]:
    async with opened(config) as access:
        rows = await access.rows() if sandbox_id is None else [await access.row(sandbox_id)]
        if sandbox_id is not None and rows[0].needed and not force:
            raise UserError(f"{_in_use(rows[0])} Or give --force: the turn then goes without what was not home yet.")
        return [
            {"id": row.id, "terminated": False, "failed": False, "message": f"left alone. {_in_use(row)}"}
            if row.needed and not force
            else await _end(access, row)
            for row in rows
        ]


async def _end(access: SandboxAccess, row: Row) -> dict[str, Any]:
    from sandbox.errors import SandboxError

    try:
        await access.end(row.id)
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
    by: Annotated[CostGrouping, typer.Option(help="One line for each.")] = CostGrouping.SESSION,
    since: Annotated[str, typer.Option(metavar="DATE|30d", help="A day (UTC), or so long ago (h, d, w).")] = "30d",
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """What sandboxes have cost: seconds of their CPUs and memory, and dollars. Those on this host cost nothing."""
    rows = console.run(_cost(config, by, since))
    if as_json:
        console.print_json(rows)
        return
    for row in rows:
        name = row["day"] if by is CostGrouping.DAY else f"{row['session']}  {row['thread'] or '(gone)'}"
        typer.echo(f"{row['usd']:>10.4f}  {row['vcpu_seconds']:>9.0f} vCPU s  {row['gib_seconds']:>9.0f} GiB s  {name}")
    typer.echo(f"{sum(row['usd'] for row in rows):>10.4f}  dollars {period(since)}")


async def _cost(config: Path | None, by: CostGrouping, since: str) -> list[dict[str, Any]]:
    from bot.store import machines
    from bot.store.base import Store

    start = began(since, time.time())
    async with Store.reading(database(config)) as store:
        return [shown(row) for row in await machines.summed(store, by, start)]
