"""A PostgreSQL server on loopback that ends with its block, run by the programs that are installed here."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from bot.errors import SettingsError

SETTINGS = (
    *("fsync=off", "full_page_writes=off", "max_connections=200", "shared_buffers=32MB", "autovacuum=off"),
    *("listen_addresses=127.0.0.1", "unix_socket_directories="),
)
"""Its data need not outlive it, and it is reached by its port alone."""
STOP_SECONDS = 30
MISSING = (
    "PostgreSQL's programs initdb and postgres are neither on PATH nor in /usr/lib/postgresql. Install them (on "
    "Debian: apt install postgresql)."
)


def programs() -> Path | None:
    """Return the folder with the newest PostgreSQL here."""
    named = (Path(one) for one in os.get_exec_path() if Path(one).is_absolute())
    folders = (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *named)
    return next((one for one in folders if (one / "initdb").is_file() and (one / "postgres").is_file()), None)


class LocalPostgres:
    """Its superuser is `postgres`. Every method blocks, and the server ends with the thread that started it."""

    def __init__(self, folder: Path, password: str, settings: Sequence[str]) -> None:
        found = programs()
        if found is None:
            raise SettingsError(MISSING)
        self.port = free_port()
        self._programs = found
        self._folder = folder
        self._password = password
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def running(cls, *, password: str = "", settings: Sequence[str] = ()) -> Iterator[Self]:
        """Without a password, it trusts everyone on this machine."""
        folder = Path(tempfile.mkdtemp(prefix="forgehand-postgres-"))
        try:
            server = cls(folder, password, (*SETTINGS, *settings))
            server._initialise()
            server.start()
            try:
                yield server
            finally:
                server.stop()
        finally:
            shutil.rmtree(folder)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = [part for setting in self._settings for part in ("-c", setting)]
        self._process = subprocess.Popen(
            self._command("postgres", "-D", str(self._folder / "data"), "-p", str(self.port), *options),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for its user alone
        )
        asking = (str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port))
        while subprocess.run(asking, check=False).returncode:
            if self._process.poll() is not None:
                raise SettingsError(f"PostgreSQL in {self._programs} does not start here.")

    def stop(self) -> None:
        """End it at once, as a loss of power would; what was committed is there at the next start."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(STOP_SECONDS)

    def _initialise(self) -> None:
        data, password = self._folder / "data", self._folder / "password"
        password.write_text(self._password)
        data.mkdir()
        for one in (password, data):
            one.chmod(0o700)
            if os.geteuid() == 0:
                os.chown(one, _owner().pw_uid, _owner().pw_gid)
        if os.geteuid() == 0:
            self._folder.chmod(0o711)
        by = ("-A", "scram-sha-256", f"--pwfile={password}") if self._password else ("-A", "trust")
        command = self._command("initdb", "-D", str(data), "-U", "postgres", *by, "--locale=C.UTF-8", "-E", "UTF8")
        made = subprocess.run([*command, "--no-sync"], cwd="/", check=False, capture_output=True, text=True)
        if made.returncode:
            why = made.stderr.strip().rpartition("\n")[2]
            raise SettingsError(f"PostgreSQL in {self._programs} cannot make a database: {why}")
        password.unlink()

    def _command(self, program: str, *arguments: str) -> list[str]:
        """Run as another user than root, which PostgreSQL refuses, and end with us, whatever becomes of us."""
        user = _owner()
        other = ("--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups")
        as_user = other if os.geteuid() == 0 else ()
        return ["setpriv", *as_user, "--pdeathsig=QUIT", "--", str(self._programs / program), *arguments]


def _owner() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
