"""Gives a command the host's gateway and egress proxy as loopback ports; a script that runs inside.

    python3 forwarder.py --gateway SOCKET --egress SOCKET [--denied FILE] [--log FILE] [--expose SOCKET] -- COMMAND...
    (as runner.forwarder) --gateway-url URL --allow HOST,HOST [--denied FILE] [--log FILE] -- COMMAND...

The second form is for machines that share no folder with the host. They reach the gateway over the network or, with
`--gateway`, through a local socket. We are the egress proxy then, for the hosts that the machine's firewall allows.

`--denied` names the file for hosts that the egress proxy refused.
`--gateway-strip` removes a path from requests to the gateway's URL, if that is the provider's own.
`--log` sends the command's output to a file and says "ready" on standard output once the command was started.
`--expose` lets the host reach ports in here: it sends a port and a newline, and gets "+" if a process listens there.
"""

from __future__ import annotations

import sys

if not __package__:  # a script speaks to loopback ports only: without TLS it starts faster and takes 4 MB less
    sys.modules["ssl"] = None  # type: ignore[assignment]

import asyncio
import contextlib
import json
import os
import signal
import socket
import time

HOLD_SECONDS = 60.0  # how long a connection waits while the host restarts
RETRY_SECONDS = 0.1
BLOCK = 1 << 16
DENIED_BYTES = 1 << 20
WAYS = ({"gateway", "egress"}, {"gateway", "allow"}, {"gateway-url", "allow"})
OPTIONS = ("--gateway", "--egress", "--log", "--expose", "--gateway-url", "--gateway-strip", "--allow", "--denied")
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def parse(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options by name, and the command. Importing argparse would cost more than this whole file."""
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0] != "--":
        name = rest.pop(0)
        if name not in OPTIONS or not rest:
            raise SystemExit("forwarder: cannot understand " + name)
        options[name[2:]] = rest.pop(0)
    if len(rest) < 2 or not any(way <= options.keys() for way in WAYS):
        raise SystemExit("forwarder: --gateway SOCKET --egress SOCKET -- COMMAND is needed")
    return options, rest[1:]


def connect_once(path: str) -> socket.socket:
    """Connect without blocking: a Unix socket succeeds or fails at once (a full queue is a failure)."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.setblocking(False)
        found.connect(path)
    except OSError:
        found.close()
        raise
    return found


async def connect_held(path: str) -> socket.socket:
    deadline = asyncio.get_running_loop().time() + HOLD_SECONDS
    while True:
        try:
            return connect_once(path)
        except OSError:
            if asyncio.get_running_loop().time() >= deadline:
                raise
        await asyncio.sleep(RETRY_SECONDS)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction and pass on its end, while the other direction may live on."""
    try:
        while data := await reader.read(BLOCK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:  # one side was reset: the other must not wait for it
        writer.transport.abort()


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def relay(near: Pair, far: Pair) -> None:
    try:
        await asyncio.gather(copy(near[0], far[1]), copy(far[0], near[1]))
    finally:
        await asyncio.gather(close(near[1]), close(far[1]))


async def listen(path: str, denied: str | None = None) -> asyncio.Server:
    """Open a loopback port for the socket at `path`; `denied` is the log if that is the egress proxy."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far = await asyncio.open_unix_connection(sock=await connect_held(path))
            if denied is not None:
                await overhear((reader, writer), far, denied)
        except OSError:
            writer.transport.abort()
            return
        await relay((reader, writer), far)

    return await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)


async def overhear(near: Pair, far: Pair, denied: str) -> None:
    """Pass on the request to the egress proxy and its first answer; note a refusal."""
    try:
        asked = await near[0].readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        far[1].write(error.partial)
        return
    except asyncio.LimitOverrunError:
        return
    far[1].write(asked)
    answer = await far[0].read(BLOCK)
    near[1].write(answer)
    if answer.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 405 ")):
        note(denied, *asked_for(asked))


def asked_for(head: bytes) -> tuple[str, str]:
    """Return host and port of a request to a proxy: for a tunnel, or for a page without TLS."""
    method, _, rest = head.split(b"\r\n")[0].decode("latin-1").partition(" ")
    target = rest.split(" ")[0]
    if method != "CONNECT":
        target = target.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
        target += "" if target.rpartition(":")[2].isdecimal() else ":80"
    host, _, port = target.rpartition(":")
    return host, port


def note(path: str | None, host: str, port: str) -> None:
    """Log a refused host, unless the log is full."""
    if path is None or not host:
        return
    with contextlib.suppress(OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o644)
        with os.fdopen(descriptor, "a") as file:
            if os.fstat(descriptor).st_size < DENIED_BYTES:
                file.write(json.dumps({"host": host[:253], "port": port[:5], "at": round(time.time(), 3)}) + "\n")


async def ways_out(options: dict[str, str]) -> list[asyncio.Server]:
    """Open the ports to the gateway and to the rest of the world."""
    if "egress" in options:
        return [await listen(options["gateway"]), await listen(options["egress"], options.get("denied"))]
    from . import web  # works only if we run as a module of our package

    if "gateway" in options:
        gateway = await listen(options["gateway"])
    else:
        target = web.Target.of(options["gateway-url"], {})._replace(strip=options.get("gateway-strip", ""))
        gateway = await web.listen(target, hold=HOLD_SECONDS)
    allowed = frozenset(host for host in options["allow"].lower().split(",") if host)
    return [gateway, await web.listen_egress(allowed, options.get("denied"))]


async def listen_exposed(path: str) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            port = int(await asyncio.wait_for(reader.readline(), 10))
            far = await asyncio.open_connection("127.0.0.1", port)
        except (OSError, ValueError, OverflowError, asyncio.TimeoutError):
            writer.transport.abort()
            return
        writer.write(b"+")
        await relay((reader, writer), far)

    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - left by an earlier process of the same name
    return await asyncio.start_unix_server(serve, path)


def environment(gateway: int, egress: int) -> dict[str, str]:
    proxy = f"http://127.0.0.1:{egress}"
    aside = "127.0.0.1,localhost,::1"
    found = dict(os.environ, FORGEHAND_GATEWAY=f"http://127.0.0.1:{gateway}")
    for name, value in (("HTTP_PROXY", proxy), ("HTTPS_PROXY", proxy), ("NO_PROXY", aside)):
        found[name] = found[name.lower()] = value
    return found


def redirect(log: str) -> int:
    """Send our standard output and error to the log; return the old output."""
    before = os.dup(1)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    return before


async def run(options: dict[str, str], command: list[str]) -> int:
    servers = await ways_out(options)
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    if "expose" in options:
        servers.append(await listen_exposed(options["expose"]))
    output = redirect(options["log"]) if "log" in options else None
    signals = ForwarderSignals()
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment(*ports))
    except OSError as error:
        sys.stderr.write(f"forwarder: {command[0]}: {error.strerror}\n")
        return 126 if isinstance(error, PermissionError) else 127
    finally:
        if output is not None:
            with contextlib.suppress(OSError):  # the process that launched us may be gone
                os.write(output, b"ready\n")
            os.close(output)
    signals.to(process)
    code = await process.wait()
    return code if code >= 0 else 128 - code


class ForwarderSignals:
    """Passes signals on to the command, and keeps early ones until it has started."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.early: list[signal.Signals] = []
        for number in PASSED_ON:
            asyncio.get_running_loop().add_signal_handler(number, self.take, number)

    def take(self, number: signal.Signals) -> None:
        if self.process is None:
            self.early.append(number)
        else:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    def to(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        for number in self.early:
            self.take(number)


def main() -> None:
    options, command = parse(sys.argv[1:])
    code = asyncio.new_event_loop().run_until_complete(run(options, command))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # ends open connections and their tasks; an orderly shutdown would wait for them


if __name__ == "__main__":
    main()
