"""Fixtures: the scene, and an endpoint for its webhooks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.routing import Route

from bot.simulation.github import SimulatedGitHub
from bot.simulation.loopback import LoopbackServer
from tests.simulation.scene import Clock, Receiver, Scene
from tests.world.plain_http import plain_client


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    clock = Clock()
    async with SimulatedGitHub.running(tmp_path / "github", clock=clock) as github:
        app = github.create_app(webhook_secret="hush")
        repo = github.create_repo("octo/calc", {"a.py": "one\ntwo\nthree\n", "lib/b.py": b"x = 1\n"})
        installation = github.install(app, repos=[repo])
        base, agent = f"{github.api_url}", {"User-Agent": "tests"}
        async with plain_client(base_url=base, headers=agent, trust_env=False) as http:
            yield Scene(github, clock, app, repo, installation, http)


@pytest.fixture
async def receiver(scene: Scene) -> AsyncIterator[Receiver]:
    from starlette.applications import Starlette

    receiver, server = Receiver(), LoopbackServer()
    port = await server.start(Starlette(routes=[Route("/webhook", receiver.__call__, methods=["POST"])]), 0)
    scene.app.webhook_url = f"http://127.0.0.1:{port}/webhook"
    yield receiver
    await server.stop()
