"""Runs inside a sandbox, standard library only: starts processes and touches files as the guest sees them.

It speaks over one inherited socket: a length, then JSON; descriptors travel beside the length. Each request has a
thread of its own, because opening a FIFO blocks, and blocks there too.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

Answer = tuple[dict[str, Any], list[int]]
IDS = {"root": 0, "user": 1000}
NAMES = {number: name for name, number in IDS.items()}
ENVD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SEED = "/usr/local/bin/e2b-seed-certs"
KINDS = ((stat.S_ISLNK, "FILE_TYPE_SYMLINK"), (stat.S_ISDIR, "FILE_TYPE_DIRECTORY"), (stat.S_ISREG, "FILE_TYPE_FILE"))


class Refused(Exception):
    """What Connect calls an error: a code and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def entry(path: str) -> dict[str, Any]:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Refused("not_found", f"file not found: {error}") from error
    about: dict[str, Any] = {
        "name": Path(path).name or "/",
        "type": next((kind for test, kind in KINDS if test(found.st_mode)), "FILE_TYPE_UNSPECIFIED"),
        "path": path,
        "size": str(found.st_size),
        "mode": stat.S_IMODE(found.st_mode),
        "permissions": permissions(found.st_mode),
        "owner": owner(found.st_uid),
        "group": owner(found.st_gid),
        "modified": found.st_mtime_ns,
    }
    if stat.S_ISLNK(found.st_mode):
        about["symlinkTarget"] = os.path.realpath(path)
        with contextlib.suppress(OSError):
            behind = Path(path).stat().st_mode
            about["type"] = next((kind for test, kind in KINDS if test(behind)), about["type"])
    return about


def permissions(mode: int) -> str:
    """As Go writes them: the kind, which is `-` for a regular file and `L` for a link, then what may be done."""
    marks = [mark for test, mark in ((stat.S_ISDIR, "d"), (stat.S_ISLNK, "L"), (stat.S_ISFIFO, "p")) if test(mode)]
    marks += [mark for bit, mark in ((stat.S_ISUID, "u"), (stat.S_ISGID, "g"), (stat.S_ISVTX, "t")) if mode & bit]
    plain = stat.filemode(mode & 0o777)[1:]
    return ("".join(marks) or "-") + plain


def owner(number: int) -> str:
    return NAMES.get(number, str(number)) if os.geteuid() == 0 else "user"


def give(path: str, user: str) -> None:
    """envd touches files as root, and what it makes becomes the user's."""
    if os.geteuid() == 0:
        os.chown(path, IDS[user], IDS[user], follow_symlinks=False)


def make_parents(path: str, user: str) -> None:
    missing = [one for one in Path(path).parents if not one.exists()]
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise Refused("internal", f"path is a file: {error.filename}") from error
    for one in missing:
        give(str(one), user)


def look(request: dict[str, Any]) -> Answer:
    return {"entry": entry(request["path"])}, []


def listing(request: dict[str, Any]) -> Answer:
    asked, depth = request["path"], request["depth"]
    if depth < 1:
        raise Refused("invalid_argument", "depth should be at least 1")
    if not os.path.lexists(asked):
        raise Refused("not_found", f"path not found: lstat {asked}: no such file or directory")
    top = os.path.realpath(asked)
    if not Path(top).is_dir():
        raise Refused("invalid_argument", f"path is not a directory: {top}")
    found = []
    for folder, folders, files in os.walk(top):
        below = os.path.relpath(folder, top)
        level = 0 if below == "." else below.count("/") + 1
        for name in sorted(folders + files):
            with contextlib.suppress(Refused):
                about = entry(f"{folder}/{name}")
                about["path"] = os.path.normpath(f"{asked}/{below}/{name}")
                found.append(about)
        if level + 1 >= depth:
            folders.clear()
    found.sort(key=lambda about: about["path"].split("/"))
    return {"entries": found}, []


def make_folder(request: dict[str, Any]) -> Answer:
    path = request["path"]
    if Path(path).is_dir():
        raise Refused("already_exists", f"directory already exists: {path}")
    if Path(path).exists():
        raise Refused("invalid_argument", f"path already exists but it is not a directory: {path}")
    make_parents(f"{path}/any", request["user"])
    return look(request)


def move(request: dict[str, Any]) -> Answer:
    make_parents(request["to"], request["user"])
    try:
        Path(request["path"]).rename(request["to"])
    except FileNotFoundError as error:
        raise Refused("not_found", f"source file not found: {error}") from error
    return {"entry": entry(request["to"])}, []


def remove(request: dict[str, Any]) -> Answer:
    path = Path(request["path"])
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()
    return {}, []


def open_for_reading(request: dict[str, Any]) -> Answer:
    path = request["path"]
    try:
        if stat.S_ISDIR(Path(path).stat().st_mode):
            raise Refused("invalid_argument", f"path '{path}' is a directory")
    except FileNotFoundError as error:
        raise Refused("not_found", f"path '{path}' does not exist") from error
    return {}, [os.open(path, os.O_RDONLY)]


def open_for_writing(request: dict[str, Any]) -> Answer:
    path = request["path"]
    make_parents(path, request["user"])
    if Path(path).is_dir():
        raise Refused("invalid_argument", f"path is a directory: {path}")
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    give(path, request["user"])
    return {}, [opened]


def send_signal(request: dict[str, Any]) -> Answer:
    os.kill(request["pid"], request["signal"])
    return {}, []


WORK = {
    "stat": look,
    "list": listing,
    "mkdir": make_folder,
    "move": move,
    "remove": remove,
    "read": open_for_reading,
    "write": open_for_writing,
    "signal": send_signal,
}


class Guest:
    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._sending = threading.Lock()

    def serve(self) -> None:
        while True:
            head, fds, _, _ = socket.recv_fds(self._link, 4, 3)
            if not head:
                return
            request = json.loads(self._exactly(struct.unpack("!I", head)[0]))
            threading.Thread(target=self._answer, args=(request, list(fds)), daemon=True).start()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self._link.recv(size - len(data))
        return data

    def _send(self, message: dict[str, Any], fds: list[int]) -> None:
        data = json.dumps({**message, "fds": len(fds)}).encode()
        with self._sending:
            socket.send_fds(self._link, [struct.pack("!I", len(data))], fds)
            self._link.sendall(data)

    def _answer(self, request: dict[str, Any], fds: list[int]) -> None:
        number = request["number"]
        if request["do"] == "spawn":
            self._spawn(request, fds)
            return
        try:
            answer, given = WORK[request["do"]](request)
        except Refused as error:
            answer, given = {"code": error.code, "error": str(error)}, []
        except OSError as error:
            answer, given = {"code": "internal", "error": str(error)}, []
        self._send({"number": number, **answer}, given)
        for fd in given:
            os.close(fd)

    def _spawn(self, request: dict[str, Any], fds: list[int]) -> None:
        out, err, *rest = fds
        command = request["argv"]
        identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            number = IDS[request["user"]]
            identity = {"user": number, "group": number, "extra_groups": [27] if number else []}
        try:
            started = subprocess.Popen(
                [*wrapper(), *command],
                stdin=rest[0] if rest else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=request["env"],
                cwd=request["cwd"],
                **identity,
            )
        except (OSError, ValueError) as error:
            message = f"error starting process '{' '.join(command)}': {error}"
            self._send({"number": request["number"], "code": "invalid_argument", "error": message}, [])
            return
        finally:
            for fd in fds:
                os.close(fd)
        self._send({"number": request["number"], "pid": started.pid}, [])
        self._send({"exited": started.pid, "status": started.wait()}, [])


def wrapper() -> list[str]:
    """What envd puts before each command, looked up in its own PATH each time, also for root."""
    kind, nice = shutil.which("ionice", path=ENVD_PATH), shutil.which("nice", path=ENVD_PATH)
    priority = (f"{kind} -c 2 -n 4 " if kind else "") + (f"{nice} -n 0 " if nice else "")
    return ["/bin/sh", "-c", f'exec {priority}"${{@}}"', "--"]


def boot() -> None:
    """What runs as root before envd, and what is started beside it."""
    if os.geteuid() != 0:
        return
    if os.access(SEED, os.X_OK):
        subprocess.run([SEED], check=False, stdin=subprocess.DEVNULL)
    if os.fork() == 0:
        with contextlib.suppress(BaseException):
            os.closerange(3, 1024)
            runpy.run_path("/run/sshd.py", run_name="__main__")
        os._exit(0)


def main() -> None:
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A handler and not SIG_IGN: what is ignored stays so in the processes that are started.
        signal.signal(each, lambda *_: None)
    os.umask(0o022)
    boot()
    Guest(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
