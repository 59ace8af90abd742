"""Fixtures: the bench with a first commit, an environment's checkout of it, a quarantine, and work in there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.git.cache import RepositoryCache
from bot.git.quarantine import Quarantine
from tests.host_git.bench import (
    BOT,
    REPO,
    TOKEN,
    Bench,
)
from tests.world.git_remote import GitRemote, git


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    (tmp_path / "remotes").mkdir()
    async with GitRemote.running(tmp_path / "remotes", TOKEN) as remote:
        remote.create("calc")
        dev = tmp_path / "dev"
        git(tmp_path, "init", "-q", "-b", "main", str(dev))
        yield Bench(remote, RepositoryCache(tmp_path / "cache"), tmp_path, dev)


@pytest.fixture
async def base(bench: Bench) -> str:
    sha = bench.commit({"calc.py": "def add(a, b):\n    return a - b\n", "docs/a.md": "# A\n"}, "first")
    bench.publish()
    return await bench.cache.fetch(REPO, bench.access, "main") if sha else sha


@pytest.fixture
async def box(bench: Bench, base: str) -> Path:
    return await bench.box(base)


@pytest.fixture
async def quarantine(bench: Bench, base: str) -> AsyncIterator[Quarantine]:
    async with bench.cache.quarantine(REPO) as opened:
        yield opened


@pytest.fixture
async def work(bench: Bench, base: str, quarantine: Quarantine) -> str:
    tree = git(bench.dev, "rev-parse", f"{bench.commit({'w': '1'})}^{{tree}}")
    git(quarantine._dir, "fetch", "-q", str(bench.dev), "HEAD")
    return await quarantine.commit(tree, [base], "work", BOT, 1_700_000_001)
