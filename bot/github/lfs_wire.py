"""The JSON of Git LFS, as far as we read it."""

from __future__ import annotations

import msgspec


class LfsObjectJson(msgspec.Struct):
    oid: str
    size: int | None = None
    actions: dict[str, LfsActionJson] | None = None
    error: LfsErrorJson | None = None


class LfsActionJson(msgspec.Struct):
    href: str
    header: dict[str, str] | None = None


class LfsErrorJson(msgspec.Struct):
    code: int = 0
    message: str = ""


class LfsBatchJson(msgspec.Struct):
    objects: list[LfsObjectJson]
    transfer: str = "basic"


class LfsLockOwner(msgspec.Struct):
    name: str = ""


class LfsLockJson(msgspec.Struct):
    path: str
    owner: LfsLockOwner | None = None


class LfsLocksJson(msgspec.Struct):
    theirs: list[LfsLockJson] = []
    next_cursor: str | None = None
