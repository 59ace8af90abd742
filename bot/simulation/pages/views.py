"""Pages on which the simulated GitHub can be watched: threads with their live comments, pull requests with diffs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from bot.simulation.github.state import Issue, Repository, State
from bot.simulation.pages.markdown import to_html

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'"
)
COALESCE_SECONDS = 0.15

Say = Callable[[Issue, str], Any]


class Pages:
    """Server-rendered; a small script fetches the page anew when the state has changed."""

    def __init__(self, state: Callable[[], State], say: Say, notice: str) -> None:
        self._state = state
        self._say = say
        self._notice = notice
        self._templates = Environment(
            loader=PackageLoader("bot.simulation.pages"), autoescape=select_autoescape(), trim_blocks=True
        )
        self._templates.filters["markdown"] = lambda text: Markup(to_html(text or ""))
        self._templates.filters["when"] = self._when

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self.index),
            Mount("/watch/static", StaticFiles(directory=HERE / "static")),
            Route("/watch/events", self.events),
            Route("/{owner}/{repo}/issues/{number:int}", self.thread),
            Route("/{owner}/{repo}/pull/{number:int}", self.thread),
            Route("/{owner}/{repo}/issues/{number:int}/say", self.speak, methods=["POST"]),
        ]

    async def index(self, request: Request) -> Response:
        return self._page("index.html", repos=list(self._state().repos.values()))

    async def thread(self, request: Request) -> Response:
        issue = self._issue(request)
        if issue is None:
            return HTMLResponse("There is no such thread.", status_code=404)
        diff = await asyncio.to_thread(_diff, issue.repo, issue) if issue.pull else []
        pulls = [pull for pull in issue.repo.pulls.values() if not issue.pull]
        return self._page("thread.html", issue=issue, diff=diff, pulls=pulls)

    async def speak(self, request: Request) -> Response:
        """A comment by the demo's person, as GitHub's own form would make it."""
        issue = self._issue(request)
        if issue is None:
            return HTMLResponse("There is no such thread.", status_code=404)
        origin = request.headers.get("origin")
        if origin is not None and origin != str(request.base_url).rstrip("/"):
            return HTMLResponse("Comments come from this page only.", status_code=403)
        words = str((await request.form()).get("body", "")).strip()
        if words:
            self._say(issue, words)
        kind = "pull" if issue.pull else "issues"
        return RedirectResponse(f"/{issue.repo.full_name}/{kind}/{issue.number}", status_code=303)

    async def events(self, request: Request) -> Response:
        return StreamingResponse(self._changes(request), media_type="text/event-stream")

    async def _changes(self, request: Request) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        state = self._state()
        while not await request.is_disconnected():
            seen = asyncio.Event()
            try:
                await state.changed(_second_time(seen), timeout=15)
            except TimeoutError:
                yield b": still here\n\n"
                continue
            await asyncio.sleep(COALESCE_SECONDS)
            yield b"event: changed\ndata: {}\n\n"

    def _issue(self, request: Request) -> Issue | None:
        params = request.path_params
        repo = self._state().repo(f"{params['owner']}/{params['repo']}")
        return repo.issues.get(params["number"]) if repo else None

    def _when(self, at: float) -> str:
        seconds = max(0, int(self._state().clock() - at))
        if seconds < 5:
            return "now"
        return f"{seconds} s ago" if seconds < 60 else f"{seconds // 60} min ago"

    def _page(self, template: str, **values: Any) -> Response:
        html = self._templates.get_template(template).render(notice=self._notice, **values)
        return HTMLResponse(html, headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-store"})


def _second_time(seen: asyncio.Event) -> Callable[[], bool]:
    """False when first asked, true when asked again: that is, after a change."""

    def asked() -> bool:
        before = seen.is_set()
        seen.set()
        return before

    return asked


def _diff(repo: Repository, issue: Issue) -> list[tuple[str, str]]:
    """(class, line) pairs of the pull request's diff."""
    assert issue.pull is not None
    lines = repo.diff(issue.pull.base_sha, issue.pull.head_sha).splitlines()
    return [(_kind(line), line) for line in lines[:2000]]


def _kind(line: str) -> str:
    if line.startswith(("diff ", "index ", "--- ", "+++ ")):
        return "file"
    return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "same")
