"""A step that cannot succeed tells what is at GitHub already."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from bot.models import InstallationId, Outcome, Repo, RepoId, Step, Thread
from bot.sessions import moves
from bot.sessions.moves import End
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.base import Store
from bot.store.sessions import NewTurn

ISSUE = Thread(Repo(RepoId(7), "octo", "calc", True, "main"), InstallationId(1), 5, False)


async def test_a_push_without_its_pull_request_names_the_turns_own_branch(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "state.db")
    try:
        new = NewTurn(ISSUE, "run", "fix it", "alice", 11, "comment:1", "claude-sonnet-5-5", 5.0, 3600.0)
        key = await sessions.begin_turn(store, new)
        assert key is not None
        await sessions.update_session(store, key.session, branch="forgehand/5-shared")
        await sessions.advance(store, key, Step.PUBLISH, branch="forgehand/5-apart", commit_sha="a" * 40)
        services = cast(Services, SimpleNamespace(store=store))
        move = await moves.failed(services, await sessions.turn(store, key), Outcome.FAILED, "GitHub answered 502.")
    finally:
        await store.close()
    assert isinstance(move, End)
    assert move.outcome is Outcome.PUSHED
    assert "forgehand/5-apart" in (move.detail or "")
