"""Reads a commit's submodules, and finds the repositories that `.gitmodules` names; believes and follows neither."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bot.git import names
from bot.git.errors import BadName, GitFailed
from bot.git.inspection import GITLINK, LOOK_SECONDS, decode
from bot.git.run import Io, run_git

FILE = ".gitmodules"
MOST_BYTES = 64 << 10
MOST_LINKS = 1000
_PLAIN_FILES = ("100644", "100755")
_SEGMENT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_SCP = re.compile(r"(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):(?!/)(.*)", re.DOTALL)
_SSH_PORTS = (None, 22, 443)


@dataclass(frozen=True)
class Gitlink:
    """A submodule as a tree has it: a path, and a commit of another repository."""

    path: str
    sha: str


class _Links:
    """Keeps the entries for submodules of all that `ls-tree` lists."""

    def __init__(self) -> None:
        self.found: list[Gitlink] = []
        self._rest = b""

    def take(self, part: bytes) -> bool:
        *entries, self._rest = (self._rest + part).split(b"\0")
        for entry in entries:
            if entry.startswith(GITLINK.encode()):
                head, _, path = entry.partition(b"\t")
                self.found.append(Gitlink(decode(path), head.split(b" ")[2].decode("ascii")))
        return len(self.found) <= MOST_LINKS


async def links(git_dir: Path, commit: str) -> list[Gitlink]:
    """List the submodules of a commit, at most one more than MOST_LINKS."""
    kept = _Links()
    argv = ["ls-tree", "-r", "-z", "--full-tree", commit]
    await run_git(argv, git_dir, io=Io(each=kept.take), timeout=LOOK_SECONDS)
    return kept.found


async def addresses(git_dir: Path, commit: str) -> dict[str, str]:
    """Return the address of each path that `.gitmodules` of a commit names; raise BadName if nobody can read it.

    Only git's parser knows the file's format. It gets the blob alone, so that no `include` is followed."""
    row = (await run_git(["ls-tree", "-z", "--full-tree", commit, "--", FILE], git_dir)).text.rstrip("\0")
    if not row:
        return {}
    mode, _, blob = row.partition("\t")[0].split(" ")
    if mode not in _PLAIN_FILES:
        raise BadName(f"`{FILE}` is not a file.")
    size = await run_git(["cat-file", "-s", blob], git_dir)
    if int(size.text) > MOST_BYTES:
        raise BadName(f"`{FILE}` has more than {MOST_BYTES >> 10} KiB.")
    try:
        listed = await run_git(["config", "--no-includes", f"--blob={blob}", "-z", "--list"], git_dir)
    except GitFailed:
        raise BadName(f"git cannot read `{FILE}`.") from None
    return named(listed.stdout)


def named(listing: bytes) -> dict[str, str]:
    """Read `git config -z --list`. An entry counts only if nothing else claims its name or its path."""
    entries = list(_entries(listing))
    names_of = Counter((name, key) for name, key, _ in entries)
    paths = {name: value for name, key, value in entries if key == "path"}
    urls = {name: value for name, key, value in entries if key == "url"}
    claimed = Counter(names.fold(path) for path in paths.values())
    once = [name for name in paths if names_of[name, "path"] == names_of[name, "url"] == 1]
    return {paths[name]: urls[name] for name in once if claimed[names.fold(paths[name])] == 1}


def _entries(listing: bytes) -> Iterator[tuple[str, str, str]]:
    for entry in listing.split(b"\0")[:-1]:
        key, _, value = decode(entry).partition("\n")
        section, _, rest = key.partition(".")
        name, _, variable = rest.rpartition(".")
        if section == "submodule" and name and variable in ("path", "url"):
            yield name, variable, value


def path_fault(path: str) -> str | None:
    """Say why nothing is put at a path; None if it is a plain one."""
    if path.startswith("-"):
        return "its name reads like an option"
    return names.alias_fault(path) or names.path_fault(path)


def repository(url: str, of: str, github_url: str) -> str:
    """Return `owner/name` for an address in `.gitmodules` of the repository `of`; raise BadName with the reason."""
    if url.startswith("-") or any(ord(char) < 33 or ord(char) == 127 for char in url):
        raise BadName("its address is not one that git takes")
    if url.startswith(("./", "../")):
        return _relative(url, of)
    if "://" not in url:
        found = _SCP.fullmatch(url)
        if found is None:
            raise BadName("its address is neither relative nor one of this GitHub")
        return _here(found[1], found[2], github_url)
    return _absolute(url, github_url)


def _relative(url: str, of: str) -> str:
    parts = of.split("/")
    for part in url.rstrip("/").split("/"):
        if part == ".." and not parts:
            raise BadName("its address leaves this GitHub")
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return _full_name("/".join(parts))


def _absolute(url: str, github_url: str) -> str:
    try:
        parts, own = urlsplit(url), urlsplit(github_url)
        port = parts.port
    except ValueError:
        raise BadName("its address cannot be read") from None
    if parts.query or parts.fragment or parts.password is not None:
        raise BadName("its address has more in it than a place; a password has no business there")
    if parts.scheme == "ssh" and port in _SSH_PORTS:
        return _here(parts.hostname or "", parts.path, github_url)
    if parts.scheme != own.scheme or parts.username is not None or port != own.port:
        raise BadName("only addresses of this GitHub by https or ssh, without a user, are opened")
    return _here(parts.hostname or "", parts.path, github_url)


def _here(host: str, path: str, github_url: str) -> str:
    own = urlsplit(github_url).hostname or ""
    if host.lower() not in (own, f"ssh.{own}"):
        raise BadName("it lies on another host")
    return _full_name(path.strip("/"))


def _full_name(path: str) -> str:
    parts = path.removesuffix("/").removesuffix(".git").split("/")
    if len(parts) != 2 or not all(map(_SEGMENT.fullmatch, parts)):
        raise BadName("its address names no repository")
    return "/".join(parts)
