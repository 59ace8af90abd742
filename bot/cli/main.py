"""The command line: one group of typer commands, each of which imports its modules when it runs."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from bot.cli import (
    audit,
    config,
    console,
    db,
    deliveries,
    demo,
    doctor,
    execute,
    keys,
    mcp,
    receivers,
    registries,
    replicas,
    sandbox,
    serve,
    sessions,
    setup,
    spend,
    switch,
    tokens,
)
from bot.cli.shape import CommandGroup

app = CommandGroup(
    name="forgehand",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Runs Claude Code on GitHub issues and pull requests, on your own machine.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"forgehand {metadata.version('forgehand')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    console.look_in_no_relative_folder()


app.command("serve")(serve.command)
app.command("execute")(execute.command)
app.command("demo")(demo.command)
app.command("spend")(spend.command)
app.command("setup")(setup.command)
app.command("doctor")(doctor.command)
app.command("pause")(switch.pause)
app.command("resume")(switch.resume)
app.command("audit")(audit.command)
app.command("replicas")(replicas.command)
app.add_typer(sessions.app, name="sessions")
app.add_typer(deliveries.app, name="deliveries")
app.add_typer(config.app, name="config")
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(keys.app, name="keys")
app.add_typer(mcp.app, name="mcp")
app.add_typer(registries.app, name="registries")
app.add_typer(tokens.app, name="tokens")
app.add_typer(receivers.app, name="receivers")
app.add_typer(db.app, name="db")
