"""How the command line speaks: results to stdout, all else to stderr, an error as one sentence and an exit code."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Coroutine
from importlib import metadata
from typing import Any, NoReturn, TypeVar

import typer

from bot.errors import BotError, SettingsError
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


def version() -> str:
    return f"forgehand {metadata.version('forgehand')}"


def look_in_no_relative_folder() -> None:
    """Programs are where the PATH says from the root: `.` or `node_modules/.bin` in it would be of whatever folder a
    command is used on."""
    named = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, named)) or os.defpath


def require_git() -> None:
    """Asked before anything is started: in the middle of a session its absence has many faces."""
    if shutil.which("git") is None:
        raise SettingsError("git is not on PATH. Install it (on Debian: apt install git).")


def seen(text: str) -> str:
    """What stands in a folder's name says nothing to the terminal, and names that are no UTF-8 can be printed."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


def fail(sentence: str, code: int = 1) -> NoReturn:
    typer.secho(seen(sentence), fg="red", err=True)
    raise typer.Exit(code)


def say(text: str) -> None:
    """For people, beside the result."""
    typer.echo(seen(text), err=True)


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()  # whoever follows reads it now


def stop_signals() -> asyncio.Event:
    """Set on SIGINT, SIGTERM or a closed terminal: time to let go."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN or number is not signal.SIGHUP:  # nohup is meant
            loop.add_signal_handler(number, event.set)
    return event
