"""How envd reads a path and a user's name: pure."""

from __future__ import annotations

import posixpath

from tests.e2b_stand_in.disk import HOME
from tests.e2b_stand_in.link import GuestError

USERS = ("user", "root")


def home_of(user: str) -> str:
    return "/root" if user == "root" else HOME


def resolved(path: str, user: str = "user") -> str:
    home = home_of(user)
    if path.startswith("~"):
        if path[1:2] not in ("", "/"):
            raise GuestError("invalid_argument", "cannot expand user-specific home dir")
        path = home + path[1:]
    if not path:
        return home
    return path if path.startswith("/") else posixpath.normpath(posixpath.join(home, path))
