"""The batch API of Git LFS: what we ask, whom we believe, and what we say if GitHub or its storage refuses."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import GitHubRefused, GitHubUnavailable
from bot.github.large_files import Content, LargeFiles, LfsServer
from bot.settings import Secret
from bot.simulation.github import Fault, SimulatedGitHub, auth
from bot.simulation.github.state import Repository


@asynccontextmanager
async def lfs(root: Path) -> AsyncIterator[tuple[SimulatedGitHub, Repository, LargeFiles, LfsServer]]:
    async with SimulatedGitHub.running(root / "github") as github:
        repo = github.create_repo("octo-org/shop", {"a": "b"}, private=True)
        installation = github.install(github.create_app(slug="forgehand"), repos=[repo])
        token = auth.mint(github.state, github.tokens, installation, {"permissions": {"contents": "write"}}, None)
        client = LargeFiles(github.url)
        try:
            yield github, repo, client, LfsServer(f"{github.url}/{repo.full_name}.git", Secret(token.value))
        finally:
            await client.close()


def content(root: Path, data: bytes, *, there: bool = False) -> Content:
    oid = hashlib.sha256(data).hexdigest()
    if there:
        (root / oid).write_bytes(data)
    return Content(oid, len(data), root / oid)


async def test_contents_come_and_go_in_batches_through_a_storage_that_takes_no_token(tmp_path: Path) -> None:
    async with lfs(tmp_path) as (github, repo, client, server):
        data = [f"content {n}\n".encode() * 9000 for n in range(3)] + [f"{n}".encode() for n in range(200)]
        for one in data[1:]:
            repo.large.add(one)
        repo.large.ended = 2  # an address that GitHub names is too old for the storage; the next one is not
        missing = await client.download(server, [content(tmp_path, one) for one in data])
        assert list(missing) == [hashlib.sha256(data[0]).hexdigest()]
        assert all(content(tmp_path, one).file.read_bytes() == one for one in data[1:])
        batches = [one for one in github.calls if one.path.endswith("/objects/batch")]
        assert len(batches) == 3 + 2, "203 objects, and two asked for again"
        new = content(tmp_path, b"new" * 9000, there=True)
        await client.upload(server, [new], "refs/heads/main")
        await client.upload(server, [new], "refs/heads/main")
        assert repo.large.held[new.oid] == b"new" * 9000
        assert len([one for one in github.calls if one.path.endswith("/verify")]) == 1, "the second has nothing to do"
        assert await client.missing(server, [new, content(tmp_path, b"nobody")]) == {
            hashlib.sha256(b"nobody").hexdigest(): "Object does not exist on the server or you don't have permissions "
            "to access it"
        }
        repo.large.locks.append(("a.bin", "carol"))
        assert [(one.path, one.owner) for one in await client.locks_of_others(server, "refs/heads/x")] == [
            ("a.bin", "carol")
        ]
        assert not list(tmp_path.glob(".*.part"))


async def test_a_content_that_is_not_its_name_never_gets_it(tmp_path: Path) -> None:
    async with lfs(tmp_path) as (_, repo, client, server):
        right = content(tmp_path, b"right content")
        for wrong in (b"wrong content", b"right content, and more"):
            repo.large.held[right.oid] = wrong
            with pytest.raises(GitHubRefused):
                await client.download(server, [replace(right, size=len(wrong))])
            assert not right.file.exists()
        repo.large.held[right.oid] = b"right"
        for states_size in (True, False):
            repo.large.states_size = states_size
            assert list(await client.missing(server, [right])) == [right.oid]
            assert list(await client.download(server, [right])) == [right.oid], "one pointer fails no turn"


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, GitHubUnavailable), (503, GitHubUnavailable), (413, GitHubRefused), (422, GitHubRefused)],
)
async def test_a_refusal_is_told_apart_from_trouble(status: int, error: type[Exception], tmp_path: Path) -> None:
    async with lfs(tmp_path) as (github, repo, client, server):
        one = content(tmp_path, b"content", there=True)
        body = '{"message": "in its own words"}'
        github.faults.add(Fault("POST */objects/batch", "fail", status, {"Retry-After": "7"}, body))
        with pytest.raises(error) as caught:
            await client.upload(server, [one], "refs/heads/main")
        if isinstance(caught.value, GitHubUnavailable):
            assert caught.value.retry_after == 7.0
        else:
            assert "in its own words" in str(caught.value)
        await client.upload(server, [one], "refs/heads/main")
        assert one.oid in repo.large.held


@pytest.mark.parametrize(
    "href",
    ["http://storage.example/x", "https://user@storage.example/x", "file:///etc/passwd", "https:///x", "https://[x"],
)
async def test_an_address_that_github_would_not_name_is_not_opened(href: str, tmp_path: Path) -> None:
    async def resolve(_: str) -> list[str]:
        return ["10.0.0.1"]

    client = LargeFiles("https://github.com", resolve=resolve)
    for one in (href, "https://inside.example/x"):
        with pytest.raises(GitHubRefused):
            await client._require_open(one)
