"""How the command line speaks: results to stdout, all else to stderr, an error as one sentence and an exit code."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import typer

from bot.errors import BotError
from sandbox.errors import SandboxError

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; an error of ours is printed as its sentence and ends with exit code 1."""
    try:
        return asyncio.run(work)
    except (BotError, SandboxError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def fail(sentence: str, code: int = 1) -> NoReturn:
    typer.secho(sentence, fg="red", err=True)
    raise typer.Exit(code)


def say(text: str) -> None:
    """For people, beside the result."""
    typer.echo(text, err=True)


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def stop_signals() -> asyncio.Event:
    """Set on SIGINT or SIGTERM: time to let go."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, event.set)
    return event
