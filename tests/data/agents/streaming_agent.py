#!/usr/bin/python3
"""Stands in for an agent's program in a bench: says some lines a second, for as long as it is let."""

from __future__ import annotations

import json
import sys
import time

PER_SECOND = 20
SECONDS = 900
WORDS = "I look at the next file and think about what it means for the change that was asked for. " * 3


def say(document: object) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    if "--version" in sys.argv:
        print("2.1.326 (Claude Code)")
        return
    sys.stdin.readline()
    say({"type": "system", "subtype": "init", "session_id": "bench", "model": "bench", "tools": []})
    began = time.monotonic()
    for number in range(PER_SECOND * SECONDS):
        time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
        block = {"type": "text", "text": f"{number}: {WORDS}"}
        say({"type": "assistant", "message": {"content": [block]}, "at": time.time(), "parent_tool_use_id": None})


if __name__ == "__main__":
    main()
