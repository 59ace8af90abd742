"""Stands in for an agent's program: speaks stream-json on stdin and stdout and does what the prompt lists."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable


def say(document: object) -> None:
    data = json.dumps(document).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def text(words: str) -> None:
    say({"type": "assistant", "message": {"content": [{"type": "text", "text": words}]}, "parent_tool_use_id": None})


def big(size: int) -> None:
    block = {"type": "tool_result", "tool_use_id": "b", "content": "updated " + "x" * 1000}
    say({"type": "user", "message": {"content": [block]}, "tool_use_result": {"originalFile": "y" * size}})


def result() -> None:
    say({"type": "result", "subtype": "success", "is_error": False, "result": "done", "terminal_reason": "completed"})


def heard() -> str | None:
    """Answer questions beside the work, which end nothing, until words come."""
    while line := sys.stdin.readline():
        document = json.loads(line)
        if document["type"] != "control_request":
            return str(document["message"]["content"])
        answer = {"response": f"about {document['request']['question']}", "synthetic": False}
        response = {"subtype": "success", "request_id": document["request_id"], "response": answer}
        say({"type": "control_response", "response": response})
    return None


def listen_until_closed() -> None:
    while (words := heard()) is not None:
        text(f"heard {words}")
        result()


def wait_for(path: str) -> None:
    while not pathlib.Path(path).exists():
        time.sleep(0.005)


def count(number: int) -> None:
    for one in range(number):
        text(f"line {one}")


def hang() -> None:
    while True:
        time.sleep(60)


def orphan() -> None:
    subprocess.Popen(["setsid", "sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


STEPS: dict[str, Callable[..., object]] = {
    "say": text,
    "big": big,
    "result": result,
    "raw": lambda data: os.write(1, data.encode("latin-1")),
    "count": count,
    "write": lambda path, words: pathlib.Path(path).write_text(words),
    "shell": lambda command: subprocess.run(command, shell=True, check=True, capture_output=True),
    "error": lambda words: os.write(2, words.encode()),
    "hear": lambda: text(f"heard {heard()}"),
    "wait_for": wait_for,
    "ignore_term": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "orphan": orphan,
    "hang": hang,
    "environment": lambda *names: text(json.dumps({name: os.environ.get(name) for name in names})),
    "exit": sys.exit,
}


def main() -> None:
    with pathlib.Path(os.environ["HOME"], "starts").open("a") as starts:
        starts.write("started\n")
    say({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "cwd": str(pathlib.Path.cwd())})
    for name, *arguments in json.loads(heard() or "[]"):
        STEPS[name](*arguments)
    result()
    listen_until_closed()


if __name__ == "__main__":
    main()
