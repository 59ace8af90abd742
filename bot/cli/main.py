"""The command line: one group of typer commands, each of which imports what it needs when it runs."""

from __future__ import annotations

import typer

from bot.cli import demo, execute, serve, sessions

app = typer.Typer(
    name="forgehand",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Runs Claude Code on GitHub issues and pull requests, on a machine of your own.",
)
app.command("serve")(serve.command)
app.command("execute")(execute.command)
app.command("demo")(demo.command)
app.add_typer(sessions.app, name="sessions")
