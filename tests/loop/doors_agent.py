"""What an agent can do: its stream, its last words, its files, and what it sends to the gateway."""

from __future__ import annotations

import textwrap

from bot.simulation.anthropic import Call, Say, Script
from tests.loop import hostile
from tests.loop.attacks import attack
from tests.loop.field import Field
from tests.world.visitor import visitor

LAST_WORDS = 24_000
RUN_SECONDS = 110.0

INTO_THE_STREAM = """
import json, os, sys, time
out = open(f"/proc/{os.environ['CLAUDE_PID']}/fd/1", "ab", buffering=0)
def said(text, **more):
    block = {"type": "text", "text": text}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block]}
    return {"type": "assistant", "message": message, "session_id": "s", **more}
def put(data):
    while data:
        data = data[out.write(data):]
"""
TO_THE_GATEWAY = """
import os, threading, urllib.request, urllib.error
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
key = os.environ.get("ANTHROPIC_AUTH_TOKEN") or os.environ.get("ANTHROPIC_API_KEY")
headers = {"x-api-key": key, "content-type": "application/json", "anthropic-version": "2023-06-01"}
def post(body):
    try:
        urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60).read()
    except Exception as error:
        return str(error)
def beside(body, times):
    threads = [threading.Thread(target=lambda: [post(body) for _ in range(times)]) for _ in range(8)]
    [one.start() for one in threads]
    [one.join() for one in threads]
"""


async def program(field: Field, text: str, *, begins: str = "") -> str:
    """A turn in which the agent runs this in Python; its outcome."""
    whole = f"python3 - <<'PROGRAM'\n{begins}{textwrap.dedent(text)}\nPROGRAM"
    return await run(field, Call("Bash", {"command": whole, "description": "Attack", "timeout": 100_000}), Say("Done."))


async def run(field: Field, *steps: Call | Say) -> str:
    """A turn in which the agent does this; its outcome."""
    field.world.model.default(Script(list(steps)))
    before = len(field.world.states())
    field.world.say("/claude add a line")
    outcome = await field.world.outcome(before + 1, timeout=RUN_SECONDS)
    await field.world.github.idle()
    return outcome


async def look(field: Field, times: int = 3) -> None:
    """At the newest session's page, as a person who may."""
    session = field.world.states()[-1]["session"]
    async with visitor(field.world, field.service.url, "alice") as alice:
        alice.client.timeout = 110
        for path in [""] * times + ["?find=nothing+of+this", "?open=all&at=e1-0", "?place=0", "/times"]:
            page = await alice.get(f"/sessions/{session}{path}")
            assert page.status_code in (200, 303), page.text[:500]


def words_of(kind: str, words: str) -> None:
    """Said as an answer, and looked at as a page."""

    @attack(f"last words of 24,000 characters: {kind}", "agent")
    async def last_words(field: Field) -> None:
        await run(field, Say(words))
        await look(field)


words_of("quotes", hostile.quotes(LAST_WORDS).removeprefix("/claude \n"))
words_of("fences", hostile.fences(LAST_WORDS))


@attack("lines of 10 MB", "stream")
async def long_lines(field: Field) -> None:
    text = """
    line = json.dumps(said("y" * (10 << 20))).encode() + b"\\n"
    for _ in range(8):
        put(line)
    many = json.dumps({**said("x"), "more": [{"a": 1}] * 40000, "text": "z" * (9 << 20)}).encode() + b"\\n"
    for _ in range(4):
        put(many)
    """
    await program(field, text, begins=INTO_THE_STREAM)
    assert int(field.asked("SELECT MAX(stream_offset) FROM turns")) > 100 << 20, "nothing came"


@attack("5,000 events a second", "stream")
async def many_events(field: Field) -> None:
    text = """
    ends = time.monotonic() + 6
    while time.monotonic() < ends:
        began = time.monotonic()
        put(b"".join(json.dumps(said(f"{n} " + "word " * 20)).encode() + b"\\n" for n in range(500)))
        time.sleep(max(0, began + 0.1 - time.monotonic()))
    """
    await program(field, text, begins=INTO_THE_STREAM)
    assert int(field.asked("SELECT COUNT(*) FROM events")) > 5_000, "nothing came"
    await look(field)


@attack("deep JSON in lines", "stream")
async def deep_lines(field: Field) -> None:
    text = """
    for size in (900, 15000, 1 << 18, 1 << 20):
        put(b"[" * size + b"]" * size + b"\\n")
        put(b'{"type":' * size + b"1" + b"}" * size + b"\\n")
        put(b'{"type":"assistant","message":{"content":' + b"[" * size + b"]" * size + b"}}\\n")
    tiny = b'{"type":"user","message":{"content":[' + b"1," * 240000 + b"1]}}\\n"
    for _ in range(10):
        put(tiny)
    """
    await program(field, text, begins=INTO_THE_STREAM)


@attack("5,000 calls with large edits, and their page", "stream")
async def many_calls(field: Field) -> None:
    text = """
    old, new = "\\n".join("a" for n in range(190)), "\\n".join("ax"[n % 2] for n in range(190))
    edits = [{"old_string": old, "new_string": new}] * 8
    for n in range(5000):
        given = {"file_path": f"/work/{n}", "edits": edits if n % 10 == 0 else edits[:1]}
        call = {"type": "tool_use", "id": f"t{n}", "name": "Edit", "input": given}
        line = said("")
        line["message"]["content"] = [call]
        back = {"type": "tool_result", "tool_use_id": f"t{n}", "content": "w " * 1000}
        put(json.dumps(line).encode() + b"\\n")
        put(json.dumps({"type": "user", "message": {"role": "user", "content": [back]}}).encode() + b"\\n")
    """
    await program(field, text, begins=INTO_THE_STREAM)
    assert int(field.asked("SELECT COUNT(*) FROM events")) > 9_000, "nothing came"
    await look(field)


def requests_of(name: str, text: str) -> None:
    """From eight threads of the agent's."""

    @attack(name, "gateway")
    async def requests(field: Field) -> None:
        await program(field, text, begins=TO_THE_GATEWAY)


requests_of(
    "11 MB of tiny objects from eight threads, refused",
    """beside(b'{"model":"m","max_tokens":1,"messages":[' + b'{"a":1},' * (11 << 17) + b'{}]}', 3)""",
)
requests_of(
    "deep JSON of 16 MB from eight threads",
    """
    beside(b'{"messages":' + b"[" * (8 << 20) + b"]" * (8 << 20) + b"}", 2)
    beside(b"[" * (8 << 20), 2)
    """,
)
requests_of(
    "30 MB of one string from eight threads",
    """
    beside(b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"' + b"x" * (28 << 20) + b'"}]}', 1)
    """,
)


@attack("trees in trees, ten deep", "files")
async def nested_trees(field: Field) -> None:
    """Committed by the agent: each level names the one below it twenty times."""
    text = """
    import subprocess
    def git(*words, given=b""):
        return subprocess.run(["git", *words], input=given, capture_output=True, check=True).stdout.strip()
    tree = git("mktree", given=b"100644 blob " + git("hash-object", "-w", "--stdin", given=b"x") + b"\\tx\\n")
    for _ in range(10):
        tree = git("mktree", given=b"".join(b"040000 tree " + tree + b"\\t%02d\\n" % n for n in range(20)))
    me = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    commit = git(*me, "commit-tree", tree.decode(), "-p", "HEAD", "-m", "deep")
    git("update-ref", "HEAD", commit.decode())
    """
    await program(field, text)


@attack("files of 30 MB beside the work", "files")
async def large_answers(field: Field) -> None:
    """Wherever the host looks for what the agent hands over."""
    text = """
    import os
    for folder in (os.getcwd(), os.path.dirname(os.getcwd()), os.environ.get("HOME", "/tmp"), "/tmp"):
        for name in ("outcome.json", "answer.json", "answer", "outcome", "review.json", "PULL_REQUEST.md"):
            try:
                with open(os.path.join(folder, name), "w") as file:
                    file.write("[" * (30 << 20))
            except OSError:
                pass
    """
    await program(field, text)
