"""How envd reads a path and a user's name: pure."""

from __future__ import annotations

import posixpath

from tests.e2b_stand_in.link import GuestError
from tests.e2b_stand_in.machine import HOME

USERS = ("user", "root")


def resolved(path: str) -> str:
    if path.startswith("~"):
        if path[1:2] not in ("", "/"):
            raise GuestError("invalid_argument", "cannot expand user-specific home dir")
        path = HOME + path[1:]
    if not path:
        return HOME
    return path if path.startswith("/") else posixpath.normpath(posixpath.join(HOME, path))
