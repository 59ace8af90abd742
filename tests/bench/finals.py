"""`python -m tests.bench.finals N`: how soon people see that a session has ended, while N write into their comments.

The real board, allowance and client of GitHub, over the wire to the simulated one; the agents are rows in the store.
Every session has news each second; they end one after the other, some seconds apart.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bot.github.client import GitHubApp
from bot.live.board import LiveBoard
from bot.live.edit_quota import EditPace, EditQuota, EditQuotas
from bot.live.page import Page, PageSettings
from bot.live.state import Folds
from bot.models import InstallationId, Outcome, Repo, RepoId, Step, Thread, TurnKey
from bot.notices import Notices
from bot.outbound import Outbound, Redactor
from bot.sessions.admission import QueuePlaces
from bot.settings import GitHubSettings, Limits, Secret
from bot.simulation.github import SimulatedGitHub
from bot.simulation.github.threads import Issue
from bot.store import conversation, posts, sessions
from bot.store.base import Store
from bot.store.posts import StoredEditQuota as Bucket
from bot.store.records import NewTurn
from sandbox.agents.claude import Claude
from tests.bench.scheduler import share

NEWS_SECONDS = 1.0
APART_SECONDS = 2.5
PATIENCE_SECONDS = 60.0


@dataclass
class Rig:
    github: SimulatedGitHub
    store: Store
    board: LiveBoard
    thread: Thread
    issues: dict[TurnKey, Issue]

    @property
    def edits(self) -> int:
        return sum(call.method == "PATCH" for call in self.github.calls)

    def shows(self, key: TurnKey, words: str) -> bool:
        return any(words in one.body for one in self.issues[key].comments)

    async def until_shown(self, key: TurnKey, words: str) -> None:
        await self.github.changed(lambda: self.shows(key, words), PATIENCE_SECONDS)


@asynccontextmanager
async def rig(folder: Path, count: int) -> AsyncIterator[Rig]:
    """So many turns at work, each with its comment."""
    async with SimulatedGitHub.running(folder / "github") as github:
        app = github.create_app()
        repo = github.create_repo("octo/calc", files={"a.py": "x = 1\n"})
        installed = github.install(app, repos=[repo])
        settings = GitHubSettings(github.url, github.api_url, app.id, Secret(app.private_key_pem), (), ())
        client, store = GitHubApp(settings), await Store.open(folder / "state.db")
        quotas = EditQuotas(store, time.time)
        outbound, folds = Outbound(client, Redactor(), on_made=quotas.note), Folds(store, Claude())
        places = QueuePlaces(store, Limits(), time.time)
        page = Page(store, folds, PageSettings("/claude"), find_place=places.of)
        board = LiveBoard(store, outbound, page, quotas, Notices())
        where = Repo(RepoId(repo.id), "octo", "calc", True, "main")
        found = Rig(github, store, board, Thread(where, InstallationId(installed.id), 0, is_pull=False), {})
        try:
            for _ in range(count):
                await _begin(found, github.open_issue(repo, title="Broken", by="alice"))
            yield found
        finally:
            await board.stop()
            await client.close()
            await store.close()


async def _begin(found: Rig, issue: Issue) -> None:
    thread = Thread(found.thread.repo, found.thread.installation, issue.number, is_pull=False)
    new = NewTurn(thread, "run", "fix it", "alice", 11, f"issue:{issue.number}", "claude-sonnet-5-5", 5.0, 3600.0)
    key = await sessions.begin_turn(found.store, new)
    assert key is not None
    found.issues[key] = issue
    await sessions.start(found.store, key)
    await sessions.advance(found.store, key, Step.WORK)
    await _full(found, EditPace.LENIENT)
    await found.board.post(key)
    await found.until_shown(key, "forgehand:session=")


async def _full(found: Rig, pace: EditPace) -> None:
    """The sessions were begun long ago: what they took of the allowance has come back."""
    saved = Bucket(**asdict(EditQuota.full(time.time(), pace)))
    await posts.save_edit_quota(found.store, found.thread.installation, saved)


async def measure(found: Rig, pace: EditPace) -> list[float]:
    """Seconds from the end of each, by the store, to its final form at GitHub."""
    await _full(found, pace)
    telling = [asyncio.create_task(_news(found, key)) for key in found.issues]
    ending = []
    for key, task in zip(found.issues, telling, strict=True):
        ending.append(asyncio.create_task(_end(found, key, task)))
        await asyncio.sleep(APART_SECONDS)
    return await asyncio.gather(*ending)


async def _news(found: Rig, key: TurnKey) -> None:
    for count in range(10_000):
        said = {"type": "text", "text": f"Word {count}."}
        line = json.dumps({"type": "assistant", "message": {"role": "assistant", "content": [said]}})
        await conversation.append_events(
            found.store, key, [(conversation.STREAM, line)], expected_offset=count * 100, new_offset=(count + 1) * 100
        )
        found.board.touch(key)
        await asyncio.sleep(NEWS_SECONDS)


async def _end(found: Rig, key: TurnKey, telling: asyncio.Task[None]) -> float:
    telling.cancel()
    await sessions.finish(found.store, key, Outcome.NO_CHANGE)
    began = time.monotonic()
    found.board.touch(key, final=True)
    await found.until_shown(key, "outcome=no_change")
    return time.monotonic() - began


async def main(counts: Sequence[int]) -> None:
    print("sessions  pace     final p50   p95    max   edits")
    for count in counts:
        for pace in (EditPace.STRICT, EditPace.LENIENT):
            with tempfile.TemporaryDirectory() as folder:
                async with rig(Path(folder), count) as found:
                    seen = await measure(found, pace)
                    edits = found.edits
            print(
                f"{count:8}  {pace:8} {share(seen, 0.5):5.2f} s {share(seen, 0.95):5.2f} s {max(seen):5.2f} s {edits:6}"
            )


if __name__ == "__main__":
    asyncio.run(main([int(one) for one in sys.argv[1:]] or [1, 10, 50]))
