"""Pages that show the simulated GitHub: threads with their live comments, pull requests with diffs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, quote

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from bot.simulation.github import SimulatedGitHub, tasks
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Issue, Pull
from bot.simulation.pages import markdown
from bot.simulation.pages.pulls import checks, kind_of, timeline

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'"
)
FORGEHANDS = "/watch/forgehand"
"""The address of Forgehand's pages, whose port changes with each start."""
COALESCE_SECONDS = 0.15
HEARTBEAT_SECONDS = 15.0
LONGEST_FORM = 300_000
ELSEWHERE = "Only this page may do that."
UNFINISHED = re.compile(r"<!-- forgehand:session=\w+ turn=\d+ state=\w+ -->")
SESSION = re.compile(r"<!-- forgehand:session=(\w+) turn=")
DASHBOARD = re.compile(r"<!-- forgehand:dashboard=")
WHILE_IT_WORKS = (
    ("Say something to the agent", "/claude also test a discount of exactly 100 %"),
    ("Stop it", "/claude stop"),
)
OTHERWISE = (
    ("Have it fixed", "/claude fix this and keep the tests green"),
    ("Ask", "/claude ask what does `discounted` do?"),
    ("Plan first", "/claude plan how to fix this"),
    ("Take the last push back", "/claude undo"),
)
ON_A_PULL = (("Have it reviewed", "/claude review"), *OTHERWISE)
"""The buttons under a thread: their labels and comments."""


class Service(Protocol):
    """The service that the page's button kills."""

    crash_label: str
    """The words of that button."""

    @property
    def up(self) -> bool: ...

    @property
    def url(self) -> str: ...

    @property
    def status(self) -> list[str]:
        """How it is, a line for each thing."""

    async def crash(self) -> None: ...


class Pages:
    """Pages rendered by the server; a small script reloads them after each change of the state."""

    def __init__(self, *, by: str, notice: str, hint: str = "") -> None:
        self.notice = notice
        self.service: Service | None = None
        self.push: Callable[[], object] | None = None
        """The push of the play's author, for its button."""
        self._hint = hint
        self.watched = asyncio.Event()
        """Set when somebody first looks."""
        self._by = by
        self._templates = templates(self._when)

    def routes(self, github: SimulatedGitHub) -> list[BaseRoute]:
        self._github = github
        return [
            Route("/", self.index),
            Mount("/watch/static", StaticFiles(directory=HERE / "static")),
            Route("/watch/events", self.events),
            Route("/watch/crash", self.crash, methods=["POST"]),
            Route("/watch/push", self.press_push, methods=["POST"]),
            Route(f"{FORGEHANDS}/{{path:path}}", self.forgehands),
            Route("/{owner}/{repo}/issues/{number:int}", self.thread),
            Route("/{owner}/{repo}/pull/{number:int}", self.thread),
            Route("/{owner}/{repo}/issues/{number:int}/say", self.speak, methods=["POST"]),
            Route("/{owner}/{repo}/issues/{number:int}/tick", self.tick, methods=["POST"]),
        ]

    async def index(self, request: Request) -> Response:
        return self._page("index.html", repos=list(self._github.state.repos.values()))

    async def thread(self, request: Request) -> Response:
        issue = self._issue(request)
        if issue is None:
            return HTMLResponse("There is no such thread.", status_code=404)
        diff = await asyncio.to_thread(_diff, issue.repo, issue) if issue.pull else []
        pulls = [pull for pull in issue.repo.pulls.values() if _speaks_of(pull, issue)]
        working = any(UNFINISHED.match(one.body) for one in issue.comments if not one.deleted)
        actions = WHILE_IT_WORKS if working else ON_A_PULL if issue.pull else OTHERWISE
        known = (SESSION.match(one.body) for one in issue.comments if not one.deleted)
        sessions = list(dict.fromkeys(f"{FORGEHANDS}/sessions/{one[1]}" for one in known if one))
        values = {
            "diff": diff,
            "pulls": pulls,
            "actions": actions,
            "hint": self._hint,
            "service": self.service,
            "entries": timeline(issue),
            "checks": checks(issue.pull),
            "push": self.push,
            "dashboard": next((one for one in issue.repo.issues.values() if DASHBOARD.match(one.body or "")), None),
        }
        return self._page("thread.html", issue=issue, sessions=sessions, by=self._by, **values)

    async def speak(self, request: Request) -> Response:
        """Comment as the demo's person."""
        sent = await self._sent(request)
        if isinstance(sent, Response):
            return sent
        issue, fields = sent
        if words := fields.get("body", "").strip():
            self._github.comment(issue, words, by=self._by)
        kind = "pull" if issue.pull else "issues"
        return RedirectResponse(f"/{issue.repo.full_name}/{kind}/{issue.number}", status_code=303)

    async def tick(self, request: Request) -> Response:
        """Click a checkbox of a comment, or of the thread's own text, as the demo's person."""
        sent = await self._sent(request)
        if isinstance(sent, Response):
            return sent
        issue, fields = sent
        comment = next((one for one in issue.comments if str(one.id) == fields.get("comment")), None)
        at, is_first = fields.get("task", ""), fields.get("comment") == "first"
        body = issue.body if is_first else comment.body if comment else None
        if body is None or not at.isdecimal() or int(at) >= len(tasks.shown(body)):
            return HTMLResponse("There is no such box any more.", status_code=404)
        if comment is not None:
            self._github.tick(comment, int(at), by=self._by)
        else:
            self._github.tick_issue(issue, int(at), by=self._by)
        return Response(status_code=204)

    async def crash(self, request: Request) -> Response:
        """Kill Forgehand, and answer once it is back."""
        if not _from_this_page(request):
            return HTMLResponse(ELSEWHERE, status_code=403)
        if self.service is None:
            return HTMLResponse("Forgehand is still starting.", status_code=409)
        await self.service.crash()
        return RedirectResponse(request.headers.get("referer", "/"), status_code=303)

    async def press_push(self, request: Request) -> Response:
        """Push as the play's person; a second press pushes nothing new."""
        if not _from_this_page(request):
            return HTMLResponse(ELSEWHERE, status_code=403)
        if self.push is None:
            return HTMLResponse("There is nothing to push in this play.", status_code=409)
        self.push()
        return RedirectResponse(request.headers.get("referer", "/"), status_code=303)

    async def forgehands(self, request: Request) -> Response:
        """Redirect to the real page; there this GitHub says that the visitor is the demo's person."""
        if self.service is None or not self.service.up:
            return HTMLResponse("Forgehand is starting. Please load this page again in a moment.", status_code=503)
        query = f"?{request.url.query}" if request.url.query else ""
        path = quote(request.path_params["path"])
        return RedirectResponse(f"{self.service.url}/{path}{query}", status_code=303)

    async def events(self, request: Request) -> Response:
        self.watched.set()
        return StreamingResponse(self._changes(request), media_type="text/event-stream")

    async def _changes(self, request: Request) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        change = asyncio.create_task(self._change())
        try:
            while not await request.is_disconnected():
                changed = await change
                # begun before we send, so that no change is lost
                change = asyncio.create_task(self._change())
                yield b"event: changed\ndata: {}\n\n" if changed else b": still here\n\n"
        finally:
            change.cancel()

    async def _change(self) -> bool:
        """Return True after a change, False if nothing changed for a while."""
        try:
            await self._github.state.changed(_second_time(asyncio.Event()), timeout=HEARTBEAT_SECONDS)
        except TimeoutError:
            return False
        await asyncio.sleep(COALESCE_SECONDS)
        return True

    async def _sent(self, request: Request) -> tuple[Issue, dict[str, str]] | Response:
        """Return the thread and the form's fields, or the answer to give instead."""
        issue = self._issue(request)
        if issue is None:
            return HTMLResponse("There is no such thread.", status_code=404)
        if not _from_this_page(request):
            return HTMLResponse(ELSEWHERE, status_code=403)
        fields = await _fields(request)
        return (issue, fields) if fields is not None else HTMLResponse("This is too long.", status_code=413)

    def _issue(self, request: Request) -> Issue | None:
        params = request.path_params
        repo = self._github.state.repo(f"{params['owner']}/{params['repo']}")
        return repo.issues.get(params["number"]) if repo else None

    def _when(self, at: float) -> str:
        seconds = max(0, int(self._github.state.clock() - at))
        if seconds < 5:
            return "now"
        return f"{seconds} s ago" if seconds < 60 else f"{seconds // 60} min ago"

    def _page(self, template: str, **values: object) -> Response:
        html = self._templates.get_template(template).render(notice=self.notice, **values)
        return HTMLResponse(html, headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-store"})


def templates(when: Callable[[float], str]) -> Environment:
    """Load the templates of the pages; `when` writes a time for people."""
    found = Environment(loader=PackageLoader("bot.simulation.pages"), autoescape=select_autoescape(), trim_blocks=True)
    found.filters["title"] = lambda text: Markup(markdown.title(text))
    found.filters["markdown"] = lambda text, repo: Markup(markdown.to_html(text or "", repo.full_name))
    found.filters["when"] = when
    return found


def _second_time(seen: asyncio.Event) -> Callable[[], bool]:
    """Make a predicate that is first false and then true, that is, after a change."""

    def asked() -> bool:
        before = seen.is_set()
        seen.set()
        return before

    return asked


def _from_this_page(request: Request) -> bool:
    origin = request.headers.get("origin")
    return origin is None or origin == str(request.base_url).rstrip("/")


async def _fields(request: Request) -> dict[str, str] | None:
    """Return the form's fields; None if they are longer than any comment."""
    form = b""
    async for chunk in request.stream():
        form += chunk
        if len(form) > LONGEST_FORM:
            return None
    fields = parse_qs(form.decode("utf-8", "replace"))
    return {name: values[0].replace("\r\n", "\n") for name, values in fields.items()}


def _speaks_of(pull: Pull, issue: Issue) -> bool:
    return issue.pull is None and re.search(rf"#{issue.number}\b", pull.issue.body or "") is not None


def _diff(repo: Repository, issue: Issue) -> list[tuple[str, str]]:
    """Return (class, line) pairs of the pull request's diff."""
    assert issue.pull is not None
    lines = repo.diff(issue.pull.base_sha, issue.pull.head_sha).splitlines()
    return [(kind_of(line), line) for line in lines[:2000] if not line.startswith("index ")]
