"""Fixtures: the two sides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.client import GitHubApp
from bot.models import InstallationId, Repo, RepoId, Thread
from bot.outbound import Outbound, Redactor
from bot.outbound.door import WritePace
from bot.settings import GitHubSettings, Secret
from bot.simulation.github.simulated import SimulatedGitHub
from tests.github_client.bench import Bench, Clock


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = Clock()
    async with SimulatedGitHub.running(tmp_path, clock=clock) as github:
        app = github.create_app()
        repo = github.create_repo("octo/calc", files={"a.py": "x = 1\n", ".github/forgehand.yml": "model: m\n"})
        installed = github.install(app, repos=[repo])
        issue = github.open_issue(repo, title="Broken", body="It *is*.", by="alice")
        settings = GitHubSettings(github.url, github.api_url, app.id, Secret(app.private_key_pem), (), ())
        secrets: list[str] = []
        retired: list[str] = []
        redactor = Redactor()

        def on_secret(value: str) -> None:
            secrets.append(value)
            redactor.register(value)

        ours = GitHubApp(settings, clock=clock, on_secret=on_secret, on_retired=retired.append, repeat_after=(0.0, 0.0))
        outbound = Outbound(ours, redactor, pace=WritePace(clock), look_after=(0.0, 0.0))
        where = Repo(RepoId(repo.id), "octo", "calc", True, "main")
        thread = Thread(where, InstallationId(installed.id), issue.number, False)
        yield Bench(github, settings, ours, outbound, redactor, thread, issue, installed, clock, secrets, retired)
        await ours.close()
