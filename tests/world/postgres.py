"""A real PostgreSQL server on a free port of loopback, one for each process of tests, with a fresh database for each
that asks. Without Debian's `postgresql` its tests skip; in CI they must run."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest

from bot.settings import Secret

FOLDERS = (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *map(Path, os.get_exec_path()))
POSTGRES = next((one for one in FOLDERS if (one / "initdb").is_file()), None)
SETTINGS = (
    *("fsync=off", "full_page_writes=off", "max_connections=200", "shared_buffers=32MB"),
    *("listen_addresses=127.0.0.1", "unix_socket_directories=", "autovacuum=off", "timezone=Asia/Kathmandu"),
)


@dataclass
class PostgresServer:
    """Trusts everyone on loopback; its superuser is `postgres`."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    _numbers: count[int] = field(default_factory=lambda: count(1))

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[PostgresServer]:
        if POSTGRES is None:
            assert "CI" not in os.environ, "install postgresql"
            pytest.skip("needs Debian's postgresql")
        folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        try:
            server = cls(folder / "data", free_port())
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

    def fresh(self, template: str = "template0") -> Secret:
        """The URL of a new, empty database."""
        name = f"forgehand{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return Secret(self.url(name))

    def start(self) -> None:
        assert POSTGRES is not None
        options = [part for setting in SETTINGS for part in ("-c", setting)]
        self.process = self._as_owner(
            [str(POSTGRES / "postgres"), "-D", str(self.folder), "-p", str(self.port), *options]
        )
        while subprocess.run(
            [POSTGRES / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
        ).returncode:
            assert self.process.poll() is None, "PostgreSQL did not start"

    def stop(self) -> None:
        """At once, as after a loss of power: what was committed is there at the next start."""
        assert self.process is not None
        self.process.send_signal(3)
        self.process.wait(30)

    def _initialise(self) -> None:
        assert POSTGRES is not None
        if os.geteuid() == 0:
            self.folder.parent.chmod(0o755)
            self.folder.mkdir()
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        command = [str(POSTGRES / "initdb"), "-D", str(self.folder), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        assert self._as_owner([*command, "--no-sync", "--locale=C.UTF-8"]).wait() == 0

    @staticmethod
    def _as_owner(command: list[str]) -> subprocess.Popen[bytes]:
        """PostgreSQL refuses to run as root; and it ends with its tests, whatever becomes of them."""
        owner = ("--reuid=postgres", "--regid=postgres", "--init-groups") if os.geteuid() == 0 else ()
        return subprocess.Popen(
            ["setpriv", *owner, "--pdeathsig=QUIT", "--", *command],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
