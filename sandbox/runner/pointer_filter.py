"""git's filter for files of LFS: turns contents into pointers and back, as git-lfs does, without a network.

`pointer_filter.py keep GIT_DIR` is for the agent's own git: it keeps each content beside the repository.
`pointer_filter.py collect LIST` brings work home: a content that is not on the list stays as it is, for the host.

git starts it once for many files and speaks its filter protocol with it. It runs as a script and imports nothing of
ours.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize ([0-9]{1,15})\n")
MOST_POINTER = 200
PACKET = 65516
IN_MEMORY = 4 << 20


class ContentStore:
    """The contents beside a repository, where git-lfs has them as well."""

    def __init__(self, git_dir: Path) -> None:
        self._root = git_dir / "lfs" / "objects"

    def place(self, oid: str) -> Path:
        return self._root / oid[:2] / oid[2:4] / oid

    def keep(self, oid: str, content: IO[bytes]) -> None:
        place = self.place(oid)
        if place.exists():
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
            for part in parts(content):
                file.write(part)
        Path(file.name).replace(place)


def parts(content: IO[bytes]) -> Iterator[bytes]:
    content.seek(0)
    while part := content.read(PACKET):
        yield part


def pointer(oid: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n".encode()


def oid_in(content: IO[bytes]) -> str | None:
    """Return the name in the pointer that the content is; None if it is none."""
    content.seek(0)
    found = POINTER.fullmatch(content.read(MOST_POINTER))
    return found[1].decode() if found else None


class Filter:
    def __init__(self, store: ContentStore | None, known: frozenset[str]) -> None:
        self._store, self._known = store, known

    def clean(self, content: IO[bytes]) -> Iterator[bytes]:
        digest, size = hashlib.sha256(), 0
        for part in parts(content):
            digest.update(part)
            size += len(part)
        oid = digest.hexdigest()
        stays = not size or oid_in(content) is not None
        if stays or (self._store is None and oid not in self._known):
            yield from parts(content)
            return
        if self._store is not None:
            self._store.keep(oid, content)
        yield pointer(oid, size)

    def smudge(self, content: IO[bytes]) -> Iterator[bytes]:
        oid = oid_in(content)
        place = self._store.place(oid) if self._store and oid else None
        if place is not None and place.is_file():
            with place.open("rb") as file:
                yield from parts(file)
        else:
            yield from parts(content)


def read_packet() -> bytes | None:
    """Read one packet; None for a flush. The end of the input ends the program."""
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        sys.exit(0)
    size = int(head, 16)
    return sys.stdin.buffer.read(size - 4) if size else None


def read_list() -> list[str]:
    found = []
    while (packet := read_packet()) is not None:
        found.append(packet.decode("utf-8", "surrogateescape").rstrip("\n"))
    return found


def write(*packets: bytes) -> None:
    """Write packets and a flush."""
    for packet in packets:
        sys.stdout.buffer.write(b"%04x" % (len(packet) + 4) + packet)
    sys.stdout.buffer.write(b"0000")
    sys.stdout.buffer.flush()


def serve(work: Filter) -> None:
    read_list()  # git's greeting and versions
    write(b"git-filter-server\n", b"version=2\n")
    read_list()  # what git can do
    write(b"capability=clean\n", b"capability=smudge\n")
    while True:
        asked = dict(line.partition("=")[::2] for line in read_list())
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as content:
            while (packet := read_packet()) is not None:
                content.write(packet)
            run = {"clean": work.clean, "smudge": work.smudge}.get(asked.get("command", ""))
            if run is None:
                write(b"status=error\n")
                continue
            write(b"status=success\n")
            for part in run(content):
                sys.stdout.buffer.write(b"%04x" % (len(part) + 4) + part)
            write()
        write()  # the status has not changed


def main(argv: list[str]) -> None:
    if argv[0] == "keep":
        return serve(Filter(ContentStore(Path(argv[1])), frozenset()))
    known = json.loads(Path(argv[1]).read_text(encoding="utf-8"))["paths"]
    return serve(Filter(None, frozenset(known)))


if __name__ == "__main__":
    main(sys.argv[1:])
