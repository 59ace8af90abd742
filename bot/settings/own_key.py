"""The key that set-up makes where none is set: a file in the data directory that only its owner can read."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

from bot.errors import SettingsError
from bot.settings.reader import Secret

NAME = "secret.key"
LARGEST = 10_000


def read(data_dir: Path) -> Secret | None:
    """Return None if there is none; refuse a file that others can read or change."""
    file = data_dir / NAME
    try:
        with file.open("rb") as opened:
            found = os.fstat(opened.fileno())
            text = opened.read(LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}.") from None
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise SettingsError(f"{file} is open to other users: chmod 600 {file}")
    return Secret(text.decode("ascii", "replace").strip())


def make(data_dir: Path) -> Path:
    """Make a new key, whole or not at all; FileExistsError if there is one. The data directory is locked."""
    file, arriving = data_dir / NAME, data_dir / f"{NAME}.partial"
    if file.exists():
        raise FileExistsError(file)
    try:
        arriving.unlink(missing_ok=True)
        descriptor = os.open(arriving, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(base64.b64encode(os.urandom(32)) + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
        arriving.replace(file)
        folder = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)  # what it encrypts must not outlive it
        finally:
            os.close(folder)
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror}.") from None
    return file
