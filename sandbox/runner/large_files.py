"""Puts the contents of LFS files into the work tree, and tells git how to turn them into pointers again."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from . import documents
from .pointer_filter import pointer
from .repository import Checkout, CheckoutGitFailed, remove

MARKER = "large-files.json"
"""Lists the contents that the commit has. `prepare` removes it with the checkout that it is about."""
_OID = re.compile(r"[0-9a-f]{64}")


def main() -> int:
    return documents.serve(place, CheckoutGitFailed)


def place(spec: dict[str, Any]) -> dict[str, Any]:
    """Fill in each file that still is the pointer; what a person's or agent's work has put there stays."""
    work, state = Path(spec["work"]), Path(spec["state"])
    tar, git_dir = state / "large.tar", work / ".git"
    try:
        if (state / MARKER).exists():
            return {"already": True}
        store = git_dir / "lfs" / "objects"
        index = _unpack(tar, store)
        repository = Checkout(spec["git"], git_dir, work, seconds=spec["timeout_seconds"])
        repository("config", "filter.lfs.process", _command("keep", git_dir))
        filled = [
            path for path, oid, size in index["files"] if _fill(work / path, pointer(oid, size), _stored(store, oid))
        ]
        with tempfile.TemporaryFile() as listed:  # git asks its filter only about files whose size is as it knows
            listed.write("".join(f"{path}\0" for path in filled).encode("utf-8", "surrogateescape"))
            listed.seek(0)
            repository("update-index", "-z", "--stdin", stdin=listed)
        documents.write_atomically(state / MARKER, {"paths": index["known"]})
        return {"already": False}
    finally:
        remove(tar)


def collecting(state: Path) -> dict[str, str]:
    """Return git's settings to bring work home; none if this checkout has no LFS files."""
    marker = state / MARKER
    return {"filter.lfs.process": _command("collect", marker)} if marker.is_file() else {}


def _command(mode: str, path: Path) -> str:
    script = Path(__file__).with_name("pointer_filter.py")
    return shlex.join([sys.executable, "-E", "-s", "-S", "-B", str(script), mode, str(path)])


def _stored(store: Path, oid: str) -> Path:
    return store / oid[:2] / oid[2:4] / oid


def _unpack(tar: Path, store: Path) -> dict[str, Any]:
    """Keep the contents where git-lfs has them too, and return the list of what belongs where."""
    with tarfile.open(tar) as packed:
        index = json.load(packed.extractfile("index.json") or io.BytesIO())
        for member in packed:
            source = packed.extractfile(member) if _OID.fullmatch(member.name) else None
            if source is None:
                continue
            target = _stored(store, member.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
    found: dict[str, Any] = index
    return found


def _fill(file: Path, text: bytes, content: Path) -> bool:
    if file.is_symlink() or not file.is_file() or file.stat().st_size != len(text) or file.read_bytes() != text:
        return False
    partial = file.with_name(f".{content.name[:16]}.part")
    with partial.open("wb") as target, content.open("rb") as source:
        shutil.copyfileobj(source, target, 1 << 20)
    partial.chmod(file.stat().st_mode & 0o777)
    partial.replace(file)
    return True


if __name__ == "__main__":
    sys.exit(main())
