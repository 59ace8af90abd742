"""`forgehand sessions …`: what the store knows of sessions, and ways to stop or repeat one."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import funds, settings
from bot.cli import console, service
from bot.cli.asked import AsJson, Config, data_dir, database
from bot.cli.shape import CommandGroup
from bot.errors import UserError
from bot.funds import BudgetTerms
from bot.kinds.parts import OnFork
from bot.models import SessionId
from bot.settings import Address
from bot.words import on_money

if TYPE_CHECKING:
    from bot.store.sessions import Turn

app = CommandGroup(help="List, show, read, stop and repeat sessions.")
Id = Annotated[str, typer.Argument(metavar="ID", help="As `sessions list` shows it.")]


@app.command("list")
def list_(as_json: AsJson = False, config: Config = None) -> None:
    """All sessions, newest first."""
    rows = console.run(_list(database(config)))
    if as_json:
        console.print_json(rows)
        return
    if not rows:
        typer.echo("No sessions yet.")
    for row in rows:
        ended = row["outcome"] or row["state"]
        when = _when(row["created_at"])
        typer.echo(f"{row['id']}  {when}  {row['repo']}#{row['number']}  {ended}  ${row['cost_usd']:.2f}")


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


async def _list(where: Address) -> list[dict[str, Any]]:
    from bot.store import sessions
    from bot.store.base import Store

    async with Store.reading(where) as store:
        return [dataclasses.asdict(row) for row in await sessions.listing(store)]


@app.command()
def show(session: Id, as_json: AsJson = False, config: Config = None) -> None:
    """One session with its turns."""
    terms = BudgetTerms.of(settings.read_limits(settings.from_environment(config)))
    found = console.run(_show(database(config), SessionId(session), terms))
    if as_json:
        console.print_json(found)
        return
    typer.echo(f"{found['id']}  {found['owner']}/{found['name']}#{found['number']}  since {_when(found['created_at'])}")
    for name, shown in (("branch", "branch"), ("pull request", "pull_url"), ("sandbox", "environment_id")):
        if found[shown]:
            typer.echo(f"{name}: {found[shown]}")
    spent = on_money.spent_of(found["cost_usd"], found["unconfirmed_usd"], found["budget_usd"])
    typer.echo(f"spent: {spent}")
    for turn in found["turns"]:
        ended = f"{turn['state']} {turn['outcome'] or turn['step']}"
        typer.echo(f"turn {turn['n']}: {ended}  {_cost(turn)}  {turn['detail'] or ''}".rstrip())


def _cost(turn: dict[str, Any]) -> str:
    return f"${turn['cost_usd']:.4f}{f' + ${sandbox:.4f} sandbox' if (sandbox := turn['sandbox_usd']) else ''}"


async def _show(where: Address, session_id: SessionId, terms: BudgetTerms) -> dict[str, Any]:
    from bot.store import machines, sessions, spend
    from bot.store.base import Store

    async with Store.reading(where) as store:
        session = dataclasses.asdict(await sessions.session(store, session_id))
        turns: list[dict[str, Any]] = []
        for turn in await sessions.turns_of(store, session_id):
            model, machine = await spend.turn_cost(store, turn.key), await machines.turn_cost(store, turn.key)
            turns.append({**dataclasses.asdict(turn), "cost_usd": model.usd, "sandbox_usd": machine.usd})
            turns[-1]["unconfirmed_usd"] = model.unconfirmed_usd
        money = funds.of(await spend.account(store, session_id), terms)
        paid = {"cost_usd": money.spent_usd, "unconfirmed_usd": money.unconfirmed_usd, "budget_usd": money.limit_usd}
        return {**session, **paid, "turns": turns}


@app.command()
def logs(
    session: Id,
    checks: Annotated[bool, typer.Option("--checks", help="What the checks printed, instead.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """What the agent said and did, in order; with --json every line of its output as it is."""
    if checks:
        _show_checks(config, SessionId(session), as_json=as_json)
        return
    console.run(_logs(database(config), SessionId(session), as_json=as_json))


def _show_checks(config: Path | None, session_id: SessionId, *, as_json: bool) -> None:
    from bot.sessions import declared_checks

    console.run(_turns(database(config), session_id))
    for file in declared_checks.outputs_of(data_dir(config), session_id):
        text = file.read_text(encoding="utf-8")
        if as_json:
            console.print_json({"name": file.stem, "text": text})
        else:
            typer.echo(text, nl=False)


async def _turns(where: Address, session_id: SessionId) -> list[Turn]:
    """Says so where there is no such session."""
    from bot.store import sessions
    from bot.store.base import Store

    async with Store.reading(where) as store:
        await sessions.session(store, session_id)
        return await sessions.turns_of(store, session_id)


async def _logs(where: Address, session_id: SessionId, *, as_json: bool) -> None:
    from bot.cli import logs as telling
    from bot.store import sessions
    from bot.store.base import Store

    async with Store.reading(where) as store:
        await sessions.session(store, session_id)
        for turn in await sessions.turns_of(store, session_id):
            await telling.print_turn(store, turn.key, as_json=as_json)


@app.command()
def stop(session: Id, as_json: AsJson = False, config: Config = None) -> None:
    """End the turn that runs; its work so far is kept."""
    _have("stop", "stopped", session, as_json, config)


@app.command()
def retry(session: Id, as_json: AsJson = False, config: Config = None) -> None:
    """Run the last turn again, in the name of who asked for it: they must still have write access."""
    _have("retry", "asked_for", session, as_json, config)


@app.command()
def settle(
    session: Id,
    usd: Annotated[
        str, typer.Argument(metavar="USD", help="What they have cost beyond what is confirmed already; 0 if nothing.")
    ],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Say what the requests have cost whose end nobody saw: until then the most that they can cost is counted."""
    _have("settle", "settled", session, as_json, config, usd=usd)


def _have(kind: str, name: str, session: str, as_json: bool, config: Path | None, **more: str) -> None:
    """What the running service does, and how that is called in JSON."""
    done, answer = console.run(_asked(database(config), kind, SessionId(session), more))
    if as_json:
        console.print_json({name: done, "message": answer})
    elif done:
        typer.echo(answer)
    if not done:
        console.fail(answer)


async def _asked(where: Address, kind: str, session_id: SessionId, more: dict[str, str]) -> tuple[bool, str]:
    from bot.store import sessions
    from bot.store.base import Store

    async with Store.reading(where) as store:
        await sessions.session(store, session_id)  # one that is not there needs no service to say so
    return await service.ask(where, kind, {"session": session_id, **more})


@app.command()
def patch(
    session: Id,
    turn: Annotated[int | None, typer.Option(metavar="N", min=1, help="Which; else the last that has one.")] = None,
    config: Config = None,
) -> None:
    """Print a turn's work on a fork as a patch for `git am`."""
    sys.stdout.buffer.write(console.run(_patch(config, SessionId(session), turn)))


async def _patch(config: Path | None, session_id: SessionId, n: int | None) -> bytes:
    turns = await _turns(database(config), session_id)
    names = [name for one in turns if (name := one.part(OnFork).patch) and n in (None, one.n)]
    file = data_dir(config) / "kept" / names[-1] if names else None
    if file is None or not await asyncio.to_thread(file.is_file):
        raise UserError(f"Session {session_id} has no patch{f' of turn {n}' if n else ''}; one is kept for 30 days.")
    return await asyncio.to_thread(file.read_bytes)


@app.command()
def pull(
    session: Id,
    path: Annotated[Path, typer.Option(metavar="FOLDER", help="Your clone; the working directory otherwise.")] = Path(),
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Bring its branch and its transcript into your clone, to go on with `claude --resume`."""
    from bot.cli import pull as pulling

    found = console.run(pulling.pull(config, SessionId(session), path))
    if as_json:
        console.print_json(dataclasses.asdict(found))
        return
    typer.echo(console.seen(f"branch: {found.branch}") if found.branch else "Nothing was pushed.")
    if found.kept:
        typer.echo(f"Its work is kept as a bundle: git fetch {found.kept} refs/forgehand/work")
    typer.echo(
        f"To go on: git switch {found.branch or ''}; {found.resume}" if found.resume else "No transcript is kept."
    )
