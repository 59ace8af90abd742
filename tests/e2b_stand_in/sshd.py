"""Runs inside a sandbox, standard library only: what the image starts beside envd, a server that lets root in without
a password. It listens on a Unix socket in the place of port 22, which is the host's, and begins again when it is
killed: a unit that is masked while it runs is still known to systemd.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from pathlib import Path

PROGRAM = "/usr/sbin/sshd"
UNIT = "/etc/systemd/system/ssh.service"
CONFIG = Path("/etc/ssh/sshd_config")
SHADOW = Path("/etc/shadow")
SOCKET = "/run/sshd.sock"
IDS = {"root": 0, "user": 1000}
PAUSE = 0.05


def main() -> None:
    """As init does: started unless its unit leads nowhere, and again as long as there is something to execute."""
    if os.path.realpath(UNIT) == "/dev/null":
        return
    while os.access(PROGRAM, os.X_OK):
        pid = os.fork()
        if pid == 0:
            serve()
        os.waitpid(pid, 0)
        time.sleep(PAUSE)


def serve() -> None:
    """It has its name from the moment at which it is executed, and is not where that is refused."""
    Path("/proc/self/comm").write_text("sshd", encoding="ascii")
    if not os.access(PROGRAM, os.X_OK):
        os._exit(1)
    with contextlib.suppress(FileNotFoundError):
        Path(SOCKET).unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET)
    Path(SOCKET).chmod(0o666)
    listener.listen()
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError, ValueError, KeyError):
            answer(connection)


def answer(connection: socket.socket) -> None:
    asked = json.loads(connection.makefile().readline())
    if not lets_in(asked["user"], asked["password"]):
        connection.sendall(b"Permission denied\n")
        return
    uid = IDS[asked["user"]]
    command = ["/bin/bash", "-l", "-c", asked["command"]]
    at = connection.fileno()
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=at, stderr=at, user=uid, group=uid)


def lets_in(user: str, password: str) -> bool:
    """Passwords that are set are not known here: the empty one is tried, where there is none."""
    said = CONFIG.read_text(encoding="ascii").lower().split("\n")
    known = {line.split(":")[0]: line.split(":")[1] for line in SHADOW.read_text(encoding="ascii").splitlines()}
    allowed = "permitemptypasswords yes" in said and (user != "root" or "permitrootlogin yes" in said)
    return allowed and password == "" and known.get(user) == ""


if __name__ == "__main__":
    main()
