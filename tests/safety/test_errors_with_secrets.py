"""An error from anywhere may carry any secret: none of them gets into a comment, a log line or the store."""

from __future__ import annotations

import base64
import pkgutil
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from bot.cli.sweep import credentials_in
from bot.errors import GitHubRefused
from sandbox.errors import SandboxError
from tests.slices import EVERY
from tests.world import MODEL_KEY, SECRET_KEY, WEBHOOK_SECRET, World

PLACES = {
    "reading from GitHub": "bot.github.reads.Reads.issue",
    "fetching": "bot.git.cache.RepositoryCache.fetch",
    "making a box": "sandbox.local.provider.LocalProvider.create",
    "preparing": "sandbox.execution.ExecutionEnvironment.prepare",
    "starting": "sandbox.execution.ExecutionEnvironment.start",
    "asking the model": "bot.web.gateway.exchange.Upstream.ask",
    "collecting": "sandbox.execution.ExecutionEnvironment.collect",
    "admitting": "bot.git.quarantine.Quarantine.admit",
    "pushing": "bot.git.quarantine.Quarantine.push",
    "opening the pull request": "bot.outbound.door.Outbound.open_pull",
    "ending the box": "sandbox.local.environment.LocalEnvironment.terminate",
}
ERRORS: dict[str, Callable[[str], Exception]] = {
    "a bug": RuntimeError,
    "a box's": SandboxError,
    "GitHub's": lambda words: GitHubRefused(422, words),
}
EACH = [(place, kind) for at, place in enumerate(PLACES) for kind in list(ERRORS)[at % 3 : at % 3 + 1]]
MATRIX = list(product(PLACES, ERRORS)) if EVERY else EACH


@pytest.mark.acceptance("F15")
@pytest.mark.parametrize(("place", "kind"), MATRIX)
async def test_whatever_raises_shows_no_secret(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], place: str, kind: str
) -> None:
    raised: list[Exception] = []
    working = pkgutil.resolve_name(PLACES[place])

    def secrets() -> list[str]:
        tokens = [token.value for token in world.github.state.tokens.values()]
        return [MODEL_KEY, WEBHOOK_SECRET, SECRET_KEY, world.app.private_key_pem, *tokens]

    def fail_once(*arguments: Any, **more: Any) -> Any:
        if raised:
            return working(*arguments, **more)
        encoded = base64.b64encode(MODEL_KEY.encode()).decode()
        raised.append(ERRORS[kind](f"it broke with {secrets()} and {encoded}"))
        raise raised[0]

    monkeypatch.setattr(PLACES[place], fail_once)
    world.environment["FORGEHAND_KEEP_MINUTES"] = "0"  # the last place that can fail is where a sandbox is ended
    async with world.bot():
        world.say("/claude fix this")
        await world.outcome()
    assert raised, "nobody came by"
    bodies = [body for one in world.replies() for _, body in one.history]
    assert credentials_in(secrets(), [], bodies, world.root / "data" / "state.db") == []
    log = capfd.readouterr()
    lines = [line for secret in secrets() for line in secret.splitlines() if len(line) > 20 and "-----" not in line]
    assert not [line for line in lines if line in log.err + log.out]
    assert "it broke with" in log.err + "".join(bodies), "the operator or the reader hears of it"
