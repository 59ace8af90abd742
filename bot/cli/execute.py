"""`forgehand execute`: one turn of the agent on a local folder, watched from the terminal."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import string
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import Config, values_for
from bot.commands import options
from bot.commands.options import Options
from bot.errors import BotError, UserError
from bot.models import SessionId
from sandbox.errors import SandboxError

if TYPE_CHECKING:
    from bot.cli.screens import PlainScreen, RichScreen
    from bot.workbench.job import Report, WorkbenchJob, WorkbenchMeans

ALPHABET = string.ascii_lowercase + string.digits
EXPLAINED = """\
Run one turn of the agent on a local folder; it needs a key for the model, but no GitHub App.

The agent works in a sandbox on a copy of the folder, uncommitted files included. Its work comes back as a branch \
forgehand/ID, or as a patch if there is no repository. Only --apply changes the folder itself.

Ctrl-C ends the agent and keeps its work; a second Ctrl-C throws the work away.

\b
Exit codes:
    0  done, or nothing to change
    1  failed, or policy holds the work
    3  over budget
    4  timed out
    5  killed
  130  interrupted
"""


def command(  # noqa: PLR0913, PLR0917 - one parameter for each option
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The task; `-` reads it from stdin.")],
    path: Annotated[Path, typer.Option(metavar="FOLDER", help="A git repository, a part of one, or none.")] = Path(),
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model, instead of FORGEHAND_MODEL.")] = None,
    fallback: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model that goes on if the first is overloaded.")
    ] = None,
    budget: Annotated[str | None, typer.Option(metavar="USD", help="How many dollars it may spend.")] = None,
    timeout: Annotated[str | None, typer.Option(metavar="30m", help="How long it may work.")] = None,
    turns: Annotated[str | None, typer.Option(metavar="N", help="How many steps the agent may take.")] = None,
    effort: Annotated[
        str | None, typer.Option(metavar="LEVEL", help=f"How hard the model thinks: {', '.join(options.EFFORTS)}.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Also apply the finished work to the folder.")] = False,
    no_isolation: Annotated[
        bool, typer.Option("--no-isolation", help="No sandbox: the agent may do whatever you may.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; words for people go to stderr.")
    ] = False,
    config: Config = None,
) -> None:
    try:
        named = {"model": model, "fallback": fallback, "effort": effort}
        given = options.read({**named, "budget": budget, "timeout": timeout, "turns": turns})
        values = values_for(path, config)
        words = sys.stdin.read() if prompt == "-" else prompt
        job = _job(values, given, prompt=words, path=path, apply=apply, isolate=not no_isolation)
        report = asyncio.run(_execute(job, _means(values), as_json=as_json))
    except (BotError, SandboxError) as error:
        _fail(str(error), as_json=as_json)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(130) from None
    if as_json:
        console.print_json(report.facts)
    raise typer.Exit(report.exit_code)


command.__doc__ = EXPLAINED


def _job(values: Mapping[str, str], options: Options, **asked: Any) -> WorkbenchJob:
    from bot.sessions.money.budget import canonical, pace
    from bot.words import on_models
    from bot.workbench.job import WorkbenchJob
    from sandbox.agents.base import Subagents

    limits, means = settings.read_limits(values), settings.read_model(values)
    model, budget_usd = options.model or means.model, options.budget_usd or limits.session_budget_usd
    models = [model, *filter(None, [options.fallback])]
    if len(set(map(canonical, models))) < len(models):
        raise UserError(on_models.same_twice(model))
    return WorkbenchJob(
        id=SessionId("".join(secrets.choice(ALPHABET) for _ in range(8))),
        model=model,
        basic_api=means.provider.at is not None,
        budget_usd=budget_usd,
        task_tokens=pace(means, budget_usd, models),
        timeout_seconds=options.timeout_seconds or limits.timeout_minutes * 60,
        max_turns=options.turns,
        effort=options.effort,
        fallback=options.fallback,
        subagents=Subagents(at_once=limits.subagents_at_once, most=limits.subagents),
        **asked,
    )


def _means(values: Mapping[str, str]) -> WorkbenchMeans:
    from bot.workbench.job import WorkbenchMeans

    model = settings.read_model(values)
    settings.require_credential(model)
    retention = settings.read_limits(values).retention_days
    newest = settings.read_newest_agent(values)
    return WorkbenchMeans(settings.data_dir(values), model, settings.read_egress(values), retention, newest)


async def _execute(job: WorkbenchJob, means: WorkbenchMeans, *, as_json: bool) -> Report:
    from bot.workbench.bench import Workbench

    logging.getLogger().addHandler(logging.NullHandler())  # what the gateway logs, the report says
    stop = asyncio.Event()
    with _screen(job) as screen:
        _listen(stop, screen)
        report = await Workbench(job, means, screen, stop).execute()
    _summarise(job, report, said=screen.said, as_json=as_json)
    return report


def _screen(job: WorkbenchJob) -> PlainScreen | RichScreen:
    from rich.console import Console

    from bot.cli.screens import PlainScreen, RichScreen

    terminal = Console(stderr=True, highlight=False)
    if terminal.is_terminal and not terminal.is_dumb_terminal:
        return RichScreen(terminal, job.budget_usd)
    return PlainScreen(console.say, job.budget_usd)


def _listen(stop: asyncio.Event, screen: PlainScreen | RichScreen) -> None:
    """End the agent and keep its work on the first signal; throw the work away on the second."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    count = 0

    def asked() -> None:
        nonlocal count
        count += 1
        if count == 1:
            screen.note("Stopping the agent and keeping its work. Press Ctrl-C again to throw the work away.")
            stop.set()
        elif count == 2:
            screen.note("Abandoned; cleaning up.")
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, asked)


def _summarise(job: WorkbenchJob, report: Report, *, said: str, as_json: bool) -> None:
    from bot.cli import summary

    shown_already = report.result.strip() == said and sys.stdout.isatty() and sys.stderr.isatty()
    text = summary.text(job, report, with_result=not shown_already)
    style = summary.colour(report)
    typer.secho(f"\n{text.headline}", fg=style, bold=True, err=as_json)
    for part in text.parts:
        typer.echo(console.seen(part), err=as_json)


def _fail(sentence: str, *, as_json: bool) -> None:
    if as_json:
        from bot.models import Outcome
        from bot.workbench.job import Report

        console.print_json(Report(Outcome.FAILED, sentence).facts)
    console.fail(sentence)
