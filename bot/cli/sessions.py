"""`forgehand sessions …`: lists and shows stored sessions, and stops or repeats one."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import funds, settings
from bot.cli import console, service
from bot.cli.asked import AsJson, Config, database, read_files, read_store
from bot.cli.filters import ListFilters, filtered
from bot.cli.shape import CommandGroup
from bot.cli.table import Column, print_table
from bot.funds import BudgetTerms
from bot.kinds.shape import OnFork
from bot.models import Outcome, SessionId, TurnState
from bot.words import on_money

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.files import KeptFiles
    from bot.store.sessions import SessionSummary, Turn

app = CommandGroup(help="List, show, read, stop and repeat sessions.")
MOST_DIGITS = 10
Id = Annotated[str, typer.Argument(metavar="ID", help="As `sessions list` shows it.")]


@app.command("list")
@filtered("repo", "state", "outcome", "by", "since", "limit")
def list_(filters: ListFilters, as_json: AsJson = False, config: Config = None) -> None:
    """List sessions, newest first, each with the state and outcome of its last turn."""
    from bot.store import replicas, sessions

    sought = filters.sought(states=[*TurnState], outcomes=[*Outcome])

    async def look(store: Store) -> tuple[list[SessionSummary], dict[str, str]]:
        return await sessions.listing(store, sought), await store.read(replicas.hosts)

    rows, hosts = read_store(config, look)
    columns = (
        Column("ID", lambda row: row.id),
        Column("SINCE", lambda row: console.when(row.created_at)),
        Column("THREAD", lambda row: f"{row.repo}#{row.number}"),
        Column("BY", lambda row: row.requester),
        Column("TURNS", lambda row: str(row.turns), right=True),
        Column("USD", lambda row: f"{row.cost_usd:.2f}", right=True),
        Column("STATE", lambda row: f"{row.outcome or row.state}{_where(row.state, hosts.get(row.replica or ''))}"),
    )
    print_table(rows, columns, as_json=as_json, none="No session matches." if sought.narrows else "No sessions yet.")


def _where(state: TurnState, host: str | None) -> str:
    return f" on {host}" if host and state is TurnState.RUNNING else ""


@app.command()
def show(session: Id, as_json: AsJson = False, config: Config = None) -> None:
    """Show one session with its turns."""

    async def look(store: Store) -> dict[str, Any]:
        terms = BudgetTerms.of(settings.read_limits(settings.from_environment(config)))
        return await _facts(store, SessionId(session), terms)

    found = read_store(config, look)
    if as_json:
        console.print_json(found)
        return
    thread, since = f"{found['owner']}/{found['name']}#{found['number']}", console.when(found["created_at"])
    typer.echo(f"{found['id']}  {thread}  since {since}")
    for name, shown in (("branch", "branch"), ("pull request", "pull_url"), ("sandbox", "environment_id")):
        if found[shown]:
            typer.echo(f"{name}: {found[shown]}")
    spent = on_money.spent_of(found["cost_usd"], found["unconfirmed_usd"], found["budget_usd"])
    typer.echo(f"spent: {spent}")
    for turn in found["turns"]:
        ended = f"{turn['state']} {turn['outcome'] or turn['step']}{_where(turn['state'], turn['host'])}"
        machine = f" + ${turn['sandbox_usd']:.4f} sandbox" if turn["sandbox_usd"] else ""
        typer.echo(f"turn {turn['n']}: {ended}  ${turn['cost_usd']:.4f}{machine}  {turn['detail'] or ''}".rstrip())


async def _facts(store: Store, session_id: SessionId, terms: BudgetTerms) -> dict[str, Any]:
    from bot.store import machines, replicas, sessions, spend

    hosts = await store.read(replicas.hosts)
    session = dataclasses.asdict(await sessions.session(store, session_id))
    turns: list[dict[str, Any]] = []
    for turn in await sessions.turns_of(store, session_id):
        model, machine = await spend.turn_cost(store, turn.key), await machines.turn_cost(store, turn.key)
        turns.append({**dataclasses.asdict(turn), "cost_usd": model.usd, "sandbox_usd": machine.usd})
        turns[-1] |= {"unconfirmed_usd": model.unconfirmed_usd, "host": hosts.get(turn.replica or "")}
    money = funds.of(await spend.account(store, session_id), terms)
    paid = {"cost_usd": money.spent_usd, "unconfirmed_usd": money.unconfirmed_usd, "budget_usd": money.limit_usd}
    return {**session, **paid, "turns": turns}


@app.command()
def start(  # noqa: PLR0913, PLR0917 - typer reads its options here
    repository: Annotated[str, typer.Argument(metavar="REPOSITORY", help="OWNER/NAME of the repository.")],
    number: Annotated[str, typer.Argument(metavar="NUMBER", help="The issue or pull request.")],
    words: Annotated[
        str, typer.Argument(metavar="WORDS", help="What to do; without words, the thread itself says it.")
    ] = "",
    kind: Annotated[str, typer.Option(metavar="KIND", help="run, ask, plan or review.")] = "run",
    budget: Annotated[float | None, typer.Option(metavar="USD", help="Dollars for this turn.")] = None,
    url: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where Forgehand runs; FORGEHAND_PUBLIC_URL otherwise.")
    ] = "",
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file with the token; FORGEHAND_API_TOKEN otherwise.")
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Start a turn through the API of a running Forgehand, in the name of the token's maker."""
    from bot.cli import api_client

    if not (number.isascii() and number.isdigit() and 0 < len(number) < MOST_DIGITS and int(number)):
        console.fail("NUMBER is the number of an issue or pull request, such as 12.", 2)
    values = settings.from_environment(config)
    wish = {"repository": repository, "number": int(number), "prompt": words, "kind": kind, "budget_usd": budget}

    async def ask() -> dict[str, Any]:
        token = api_client.read_token(token_file, values)
        return await api_client.start(url or settings.read_public_url(values), token, wish)

    told = console.run(ask())
    if as_json:
        console.print_json(told)
    elif told["state"] == "waiting":
        typer.echo(told["said"])
    else:
        typer.echo(f"Turn {told['turn']} of session {told['session']} is queued.")


@app.command()
def logs(
    session: Id,
    checks: Annotated[bool, typer.Option("--checks", help="Print the output of the checks instead.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the last turn ends.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Print what the agent said and did; with --json, every original line of its output."""
    if checks:
        _show_checks(config, SessionId(session), as_json=as_json)
        return
    from bot.cli.logs import print_turn

    async def look(store: Store) -> None:
        printed = 0
        while later := (await _turns(store, SessionId(session)))[printed:]:  # another turn may have begun meanwhile
            for turn in later:
                await print_turn(store, turn.key, as_json=as_json, follow=follow)
            printed += len(later)

    read_store(config, look)


def _show_checks(config: Path | None, session_id: SessionId, *, as_json: bool) -> None:
    from bot.sessions import declared_checks

    async def look(store: Store, files: KeptFiles) -> list[Path]:
        await _turns(store, session_id)
        return await declared_checks.outputs_of(files, session_id)

    for file in read_files(config, look):
        text = file.read_text(encoding="utf-8")
        if as_json:
            console.print_json({"name": file.stem, "text": text})
        else:
            typer.echo(text, nl=False)


async def _turns(store: Store, session_id: SessionId) -> list[Turn]:
    from bot.store import sessions

    await sessions.session(store, session_id)
    return await sessions.turns_of(store, session_id)


@app.command()
def stop(session: Id, as_json: AsJson = False, config: Config = None) -> None:
    """Stop the running turn and keep its work."""
    _request("stop", "stopped", session, as_json, config)


@app.command()
def retry(session: Id, as_json: AsJson = False, config: Config = None) -> None:
    """Run the last turn again for the same person, who must still have write access."""
    _request("retry", "asked_for", session, as_json, config)


@app.command()
def settle(
    session: Id,
    usd: Annotated[
        str, typer.Argument(metavar="USD", help="Their cost beyond the confirmed part; 0 if there was none.")
    ],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """State the cost of requests whose end nobody saw; until then, Forgehand counts the most they can cost."""
    _request("settle", "settled", session, as_json, config, usd=usd)


def _request(kind: str, name: str, session: str, as_json: bool, config: Path | None, **more: str) -> None:
    read_store(config, lambda store: _turns(store, SessionId(session)))  # needs no service if there is no session
    asking = service.ask(database(config), kind, {"session": session, **more})
    service.show_answer(asking, name, as_json=as_json)


@app.command()
def patch(
    session: Id,
    turn: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Which turn; by default the last that has one.")
    ] = None,
    config: Config = None,
) -> None:
    """Print a turn's work on a fork as a patch for `git am`."""
    from bot.sessions.publish.rescue import kept_name

    async def look(store: Store, files: KeptFiles) -> Path | None:
        turns = await _turns(store, SessionId(session))
        names = [name for one in turns if (name := one.part(OnFork).patch) and turn in (None, one.n)]
        return await files.fetch(kept_name(names[-1])) if names else None

    if (file := read_files(config, look)) is None:
        console.fail(f"Session {session} has no patch{f' of turn {turn}' if turn else ''}; one is kept for 30 days.")
    sys.stdout.buffer.write(file.read_bytes())


@app.command()
def pull(
    session: Id,
    path: Annotated[Path, typer.Option(metavar="FOLDER", help="Your clone; the working directory otherwise.")] = Path(),
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Bring a session's branch and transcript into your clone, to go on with `claude --resume`."""
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
