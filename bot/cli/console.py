"""The output of the command line: results to stdout, the rest to stderr, an error as one sentence and an exit code."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

import typer

from bot.errors import BotError, SettingsError
from sandbox.errors import SandboxError

T = TypeVar("T")
MONEY_DECIMALS = 6


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; print an error of ours as its sentence and exit with code 1."""
    try:
        return asyncio.run(work)
    except (BotError, SandboxError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def look_in_no_relative_folder() -> None:
    """Drop relative entries of PATH: `.` or `node_modules/.bin` would run programs of the folder that we work on."""
    named = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, named)) or os.defpath


def require_git() -> None:
    """Check before anything starts: in the middle of a session, missing git causes confusing errors."""
    if shutil.which("git") is None:
        raise SettingsError("git is not on PATH. Install it (on Debian: apt install git).")


def seen(text: str) -> str:
    """Replace control characters and broken UTF-8, as in a folder's name."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


def fail(sentence: str, code: int = 1) -> NoReturn:
    typer.secho(seen(sentence), fg="red", err=True)
    raise typer.Exit(code)


def say(text: str) -> None:
    typer.echo(seen(text), err=True)


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(_in_parts_of_a_cent(value), ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()  # for people who follow the output


def _in_parts_of_a_cent(value: Any) -> Any:
    """Round money to six decimals: a sum of floats has digits that nobody paid."""
    if isinstance(value, dict):
        return {
            name: round(one, MONEY_DECIMALS)
            if isinstance(one, float) and str(name).endswith("usd")
            else _in_parts_of_a_cent(one)
            for name, one in value.items()
        }
    return [_in_parts_of_a_cent(one) for one in value] if isinstance(value, list | tuple) else value


def print_rows(rows: Sequence[Any], line: Callable[[Any], str], *, as_json: bool, none: str = "") -> None:
    """Print rows as JSON, or a line for each; `none` says that there are no rows."""
    if as_json:
        print_json([row if isinstance(row, dict) else asdict(row) for row in rows])
    elif rows or none:
        typer.echo("\n".join(map(line, rows)) or none)


def when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def stop_signals() -> asyncio.Event:
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        under_nohup = number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
        if not under_nohup:
            loop.add_signal_handler(number, event.set)
    return event
