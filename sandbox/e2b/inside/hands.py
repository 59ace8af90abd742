"""Does one operation per start for the host, as root, in a remote environment; standard library only, Python 3.9+.

    python3 -I -S -c BOOT OPERATION REQUEST     (the request is JSON in base64; it never contains a secret)

The answer is the last line of the output: "=" and JSON. Lines before it are dots, which show that we are alive.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import signal
import sys
from pathlib import Path

PULSE_SECONDS = 2.0

MODULES = {
    "furniture": ("furnish", "wake", "mark", "strip"),
    "files": ("read", "put", "stage", "list", "stat"),
    "commands": ("run", "cancel"),
    "launching": ("launch", "liveness", "kill", "still"),
    "gate": ("gate", "shut"),
    "measuring": ("measure",),
    "watching": ("watch",),
}


class Refused(Exception):
    """A refusal, which the host gets in place of an answer."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


def say(line: str) -> None:
    data = (line + "\n").encode("ascii", "backslashreplace")
    while data:
        data = data[os.write(1, data) :]


def replace(path: Path, text: str) -> None:
    """Write a small file whole or not at all."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def main() -> None:
    operation, request = sys.argv[1], json.loads(base64.urlsafe_b64decode(sys.argv[2]))
    # Dots let the host tell a long operation from a dead line.
    signal.signal(signal.SIGALRM, lambda *_: say("."))
    signal.setitimer(signal.ITIMER_REAL, PULSE_SECONDS, PULSE_SECONDS)
    [name] = (name for name, operations in MODULES.items() if operation in operations)
    module = importlib.import_module("." + name, __package__)
    try:
        document = getattr(module, operation)(request)
    except Refused as refused:
        document = {"error": refused.kind, "words": str(refused)}
    except OSError as error:
        document = {"error": "busy", "words": str(error.strerror)}
    signal.setitimer(signal.ITIMER_REAL, 0)
    say("=" + json.dumps(document))
