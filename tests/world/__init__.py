"""The whole world on loopback: a simulated GitHub, a scripted model, and the real service between them."""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import functools
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bot import app as service
from bot import settings
from bot.engine.durable import DurableEngine
from bot.models import TurnKey
from bot.simulation.anthropic import SimulatedAnthropic
from bot.simulation.github import SimulatedGitHub
from bot.simulation.github.accounts import App, Installation
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Comment, Issue, Pull
from bot.simulation.github.webhooks import Signed
from bot.simulation.scenarios import discount
from bot.store.base import Clock, Store
from sandbox.local.folders import EnvironmentsFolder, kill_all, remove
from tests.world.environments import short_folder
from tests.world.plain_http import plain_client
from tests.world.postgres import PostgresServer

MODEL_KEY = "sk-ant-api03-" + "canary-model-key" * 4
WEBHOOK_SECRET = "canary-webhook-secret-0123456789"
SECRET_KEY = base64.b64encode(b"canary-secret-key-of-32-bytes-!!").decode()
MARKER = re.compile(r"<!-- forgehand:session=([a-z0-9]{8}) turn=(\d+) state=(\w+)(?: outcome=(\w+))? -->")
TURN_SECONDS = 90.0
"""A turn takes five seconds; the rest is for busy machines."""
CONFIG = ".github/forgehand.yml"
WITHOUT_CHECKS = {name: text for name, text in discount.FILES.items() if name != CONFIG}
"""The demo's files without checks, because each turn needs another environment for checks, and two if they fail."""
END_SECONDS = 20.0
SAVING = "The work so far is still being saved"


@dataclass
class World:
    root: Path
    github: SimulatedGitHub
    model: SimulatedAnthropic
    app: App
    installation: Installation
    repo: Repository
    issue: Issue
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def running(cls, root: Path, /, **changes: str) -> AsyncIterator[World]:
        """Start GitHub and the model; `bot()` starts the service between them."""
        github_root = root / "github"
        async with (
            SimulatedGitHub.running(github_root) as github,
            SimulatedAnthropic.running(api_key=MODEL_KEY) as model,
        ):
            model.default(discount.script(paced=False))
            registered = github.create_app(slug="forgehand", webhook_secret=WEBHOOK_SECRET)
            registered.callback_urls = ["http://127.0.0.1/oauth/callback"]
            repo = github.create_repo(discount.REPOSITORY, files=WITHOUT_CHECKS, private=True)
            github.user("alice")
            repo.grant("alice", "write")
            installation = github.install(registered, repos=[repo])
            issue = github.open_issue(repo, title=discount.ISSUE_TITLE, body=discount.ISSUE_BODY, by="alice")
            world = cls(root, github, model, registered, installation, repo, issue)
            world.environment = {**world._environment(), **_elsewhere(), **changes}
            with short_folder() as boxes:
                _place(boxes, world.environments)
                _bring_tools(EnvironmentsFolder(world.environments))
                try:
                    yield world
                finally:
                    await world._clear()

    async def _clear(self) -> None:
        """Remove what a turn kept, or a failed or killed run left. A provider would first try whether boxes hold."""
        base = EnvironmentsFolder(self.environments)
        for left in map(base.folders, base.environment_ids()):
            assert await asyncio.to_thread(kill_all, left.home, END_SECONDS), f"{left.box.name} lives on"
            await asyncio.to_thread(remove, left)
        _remember_tools(base)

    @property
    def database(self) -> settings.Address:
        return settings.read_database(self.environment)

    @property
    def environments(self) -> Path:
        return self.root / "data" / "environments"

    def _environment(self) -> dict[str, str]:
        return {
            "FORGEHAND_DATA_DIR": str(self.root / "data"),
            "FORGEHAND_HOST": "127.0.0.1",
            "FORGEHAND_PORT": "0",
            "FORGEHAND_SETTLE_SECONDS": "0",
            "FORGEHAND_GITHUB_URL": self.github.url,
            "FORGEHAND_GITHUB_API_URL": self.github.api_url,
            "FORGEHAND_APP_ID": str(self.app.id),
            "FORGEHAND_PRIVATE_KEY": self.app.private_key_pem,
            "FORGEHAND_WEBHOOK_SECRET": WEBHOOK_SECRET,
            "FORGEHAND_CLIENT_ID": self.app.client_id,
            "FORGEHAND_CLIENT_SECRET": self.app.client_secret,
            "FORGEHAND_SECRET_KEY": SECRET_KEY,
            "FORGEHAND_ACCOUNTS": self.repo.owner.login,
            "ANTHROPIC_API_KEY": MODEL_KEY,
            "ANTHROPIC_BASE_URL": self.model.url,
            "PATH": os.environ["PATH"],
        }

    @asynccontextmanager
    async def bot(self, clock: Clock = time.time, /, **changes: str) -> AsyncIterator[service.Running]:
        """Run the service in this process on the world's data directory, and send it GitHub's webhooks."""
        chosen, open_store = settings.read({**self.environment, **changes}), partial(Store.open, clock=clock)
        await _bring_stores(chosen.data_dir, chosen.database)
        async with service.running(chosen, open_store, clock) as running:
            self.app.webhook_url = f"{running.url}/webhook"
            yield running

    def declare_checks(self) -> None:
        """Declare the checks of the demo's repository."""
        self.github.commit(self.repo, "main", {CONFIG: discount.FILES[CONFIG]})

    def say(self, words: str, *, by: str = "alice", on: Issue | Pull | None = None) -> Comment:
        return self.github.comment(on or self.issue, words, by=by)

    async def change(self, sql: str, **values: object) -> int:
        """Change rows of the store behind the service's back, wherever it is; return how many."""
        store = await Store.open(self.database)
        changed = await store.run(sql, **values)
        await store.close()
        return changed

    async def deliver(self, hook: Signed) -> None:
        """Deliver a webhook as GitHub would, when the test wants it."""
        async with plain_client(timeout=30) as client:
            answer = await client.post(str(self.app.webhook_url), headers=hook.headers, content=hook.body)
        assert answer.status_code == 202, answer.text

    async def replay(self, event: str, action: str) -> None:
        """Replay the last such delivery, as somebody who captured it could: its signature is valid with any GUID."""
        sent = [one for one in self.app.deliveries if (one.event, one.action) == (event, action)][-1]
        await self.deliver(self.github.webhook(self.app, event, json.loads(sent.body)))

    def replies(self, on: Issue | Pull | None = None) -> list[Comment]:
        """Return the comments of the App's bot on a thread."""
        thread = on or self.issue
        comments = thread.comments if isinstance(thread, Issue) else thread.issue.comments
        return [one for one in comments if one.author is self.app.bot and not one.deleted]

    def states(self, on: Issue | Pull | None = None) -> list[Mapping[str, str | None]]:
        """Return the markers of our live comments, oldest first."""
        found = (MARKER.match(one.body) for one in self.replies(on))
        return [{"session": m[1], "turn": m[2], "state": m[3], "outcome": m[4]} for m in found if m is not None]

    async def outcome(
        self, n: int = 1, *, on: Issue | Pull | None = None, timeout: float = TURN_SECONDS, early: bool = False
    ) -> str:
        """Return the outcome of the thread's n-th turn once its live comment is final; `early`: even if the work of a
        stopped turn is still being saved."""

        def final() -> str | None:
            states = self.states(on)
            if not early and any(SAVING in one.body for one in self.replies(on)):
                return None
            return states[n - 1]["outcome"] if len(states) >= n else None

        return str(await self.github.changed(final, timeout))

    def pulls(self) -> list[Pull]:
        return list(self.repo.pulls.values())


def _place(boxes: Path, environments: Path) -> None:
    """Put boxes where everything else is, in memory if there is room. The service itself would put them under /var/tmp,
    because pytest's folders are closed to other users; to make and remove files there takes a tenth of a turn."""
    if not environments.exists():
        environments.parent.mkdir(mode=0o700, exist_ok=True)
        environments.symlink_to(boxes)


def _elsewhere() -> dict[str, str]:
    """With FORGEHAND_TESTS_ON=postgres, each world's store is a new database of a server that this process starts."""
    if os.environ.get("FORGEHAND_TESTS_ON") != "postgres":
        return {}
    return {"FORGEHAND_DATABASE_URL": _postgres().fresh().reveal()}


@functools.cache
def _postgres() -> PostgresServer:
    running = PostgresServer.started()
    server = running.__enter__()
    atexit.register(running.__exit__, None, None, None)
    return server


@functools.cache
def _stores() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="forgehand-stores-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


async def _bring_stores(folder: Path, database: settings.Address) -> None:
    """Copy empty stores, because to make them takes a third of a start."""
    kept = [_stores() / name for name in ("state.db", "engine.db")]
    if any((folder / one.name).exists() for one in kept):
        return
    if not kept[1].exists():
        await (await Store.open(kept[0])).close()
        engine = DurableEngine(kept[1], _nothing)
        await engine.start()
        await engine.drain()
    folder.mkdir(mode=0o700, exist_ok=True)
    for one in kept if isinstance(database, Path) else kept[1:]:
        shutil.copy(one, folder)


async def _nothing(_: TurnKey) -> None: ...


@functools.cache
def _tools(device: int) -> Path:
    """Return a folder for the agent's binary as the first world of this process took it, because to hash it takes half
    a second. It is on the file system of the boxes, because we link it."""
    places = (Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/dev/shm"))
    place = next((one for one in places if one.is_dir() and one.stat().st_dev == device), None)
    folder = Path(tempfile.mkdtemp(prefix="forgehand-tools-", dir=place))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _bring_tools(base: EnvironmentsFolder) -> None:
    """Bring the agent's tools, as a second start of the service on this folder would find them."""
    kept = _tools(base.path.stat().st_dev)
    if any(kept.iterdir()):
        _link_tools(kept, base.tools)


def _remember_tools(base: EnvironmentsFolder) -> None:
    kept = _tools(base.path.stat().st_dev)
    if not any(kept.iterdir()):
        _link_tools(base.tools, kept)


def _link_tools(source: Path, target: Path) -> None:
    """Link the index last: without it the service takes the binary again, as between two file systems."""
    with contextlib.suppress(OSError):
        for file in (*source.glob("agent-*"), *source.glob("index.json")):
            os.link(file, target / file.name)
