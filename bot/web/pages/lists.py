"""The front page with the sessions, and the ledger of deliveries: each person sees those of their repositories."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.errors import UserError
from bot.github.client import GitHubApp
from bot.models import Outcome, Permission
from bot.store import lists, repos
from bot.store.base import Store
from bot.store.deliveries import DeliveryState
from bot.store.lists import ListPosition, Wanted
from bot.store.records import OfRepo
from bot.web.pages.gate import Gate
from bot.web.pages.visitors import Visitor
from bot.words import replies

PAGE = 50
MOST_ROUNDS = 6
"""One load replaces rows that the visitor may not see so many times; the next load goes on from there."""
UNDER_WAY = "running"
BROKEN = "This address is not a page of the list. Please start at the first page."
_MARK = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)~([!-~]{1,200})")


R = TypeVar("R", bound=OfRepo)
Read = Callable[[Store, Wanted, int], Awaitable[list[R]]]


@dataclass(frozen=True)
class Filters:
    repo: str = ""
    state: str = ""
    person: str = ""
    before: str = ""
    noise: str = ""
    """Deliveries: `1` also shows what our own work caused."""

    @classmethod
    def of(cls, query: QueryParams) -> Filters:
        return cls(*(query.get(name, "").strip()[:200] for name in cls.__dataclass_fields__))

    @property
    def any(self) -> bool:
        return bool(self.repo or self.state or self.person)

    def address(self, path: str, mark: ListPosition | None = None) -> str:
        before = f"{mark.at!r}~{mark.id}" if mark else ""
        given = {"repo": self.repo, "state": self.state, "person": self.person, "noise": self.noise}
        given["before"] = before
        query = urlencode({name: value for name, value in given.items() if value})
        return f"{path}?{query}" if query else path


@dataclass(frozen=True)
class Front:
    running: list[lists.Recent]
    ended: list[lists.Recent]
    filters: Filters
    empty: set[int]  # the lists (1, 2) that are shown even if they are empty
    first: str
    older: str


class ListPages:
    def __init__(self, gate: Gate, github: GitHubApp) -> None:
        self._gate = gate
        self._github = github

    def routes(self) -> list[BaseRoute]:
        return [Route("/", self._gate.page(self._home)), Route("/deliveries", self._gate.page(self._deliveries))]

    async def _home(self, request: Request, visitor: Visitor) -> Response:
        filters = Filters.of(request.query_params)
        return self._gate.pages.render(
            "home.html",
            title="Sessions",
            visitor=visitor,
            states=[UNDER_WAY, *Outcome],
            filters=filters,
            front=await self.front(visitor, filters),
        )

    async def front(self, visitor: Visitor, filters: Filters) -> Front:
        wanted = await self._wanted(filters, [UNDER_WAY, *Outcome])
        live: list[lists.Recent] = []
        if wanted and not wanted.after and filters.state in ("", UNDER_WAY):
            live, _ = await self._visible(visitor, lists.running, replace(wanted, state=""), _may_read)
        ended: list[lists.Recent] = []
        more = False
        if wanted and filters.state != UNDER_WAY:
            ended, more = await self._visible(visitor, lists.ended, wanted, _may_read)
        older = filters.address("/", ended[-1].mark) if more else ""
        empty = {2} if filters.before else {1, 2}
        if filters.state:
            empty = {1} if filters.state == UNDER_WAY else {2}
        return Front(live, ended, filters, empty, filters.address("/"), older)

    async def rows(self, visitor: Visitor, filters: Filters) -> tuple[list[lists.Recent], list[lists.Recent]]:
        """Return the stored rows without asking who may see them. Never show them: they only tell of changes."""
        wanted = await self._wanted(filters, [UNDER_WAY, *Outcome])
        if wanted is None:
            return [], []
        wanted = replace(wanted, hidden=frozenset(self._gate.access.hidden_from(visitor, _may_read)))
        running = await lists.running(self._gate.store, replace(wanted, state=""), PAGE + 1)
        ended = replace(wanted, state="" if filters.state == UNDER_WAY else filters.state)
        return running, await lists.ended(self._gate.store, ended, PAGE + 1)

    async def _deliveries(self, request: Request, visitor: Visitor) -> Response:
        """Show deliveries only to people who can write: the reasons in them are not for everyone."""
        filters = Filters.of(request.query_params)
        wanted = await self._wanted(filters, list(DeliveryState))
        rows: list[lists.ListedDelivery] = []
        more = False
        if wanted:
            if not filters.noise:
                ours = (await self._github.identity()).bot_login
                wanted = replace(wanted, without=replies.NOISE, unheeded_of=ours)
            rows, more = await self._visible(visitor, lists.delivered, wanted, lambda found: found.may_write)
        return self._gate.pages.render(
            "deliveries.html",
            title="Deliveries",
            visitor=visitor,
            rows=rows,
            states=list(DeliveryState),
            filters=filters,
            github=self._github.web_url,
            noise=replace(filters, noise="" if filters.noise else "1").address("/deliveries"),
            first=filters.address("/deliveries"),
            older=filters.address("/deliveries", rows[-1].mark) if more else "",
        )

    async def _wanted(self, filters: Filters, states: list[str]) -> Wanted | None:
        """Return None if nothing can match. An unknown repository gives no error, so nobody learns which are known."""
        match = _MARK.fullmatch(filters.before)
        if (filters.before and match is None) or (filters.state and filters.state not in states):
            raise UserError(BROKEN)
        after = ListPosition(float(match[1]), match[2]) if match else None
        repo = await repos.named(self._gate.store, filters.repo) if filters.repo else None
        if filters.repo and repo is None:
            return None
        return Wanted(repo, filters.state, filters.person, after)

    async def _visible(
        self, visitor: Visitor, read: Read[R], wanted: Wanted, reaches: Callable[[Permission], bool]
    ) -> tuple[list[R], bool]:
        """Return a page of the rows that this person may see, and whether there are more."""
        hidden = self._gate.access.hidden_from(visitor, reaches)
        rows: list[R] = []
        for _ in range(MOST_ROUNDS):
            found = await read(self._gate.store, replace(wanted, hidden=frozenset(hidden)), PAGE + 1)
            may = await self._gate.access.permissions(visitor, ((one.repo, one.installation_id) for one in found))
            fresh = {repo for repo, permission in may.items() if not reaches(permission)}
            rows = [one for one in found if one.repo_id not in fresh]
            if not fresh:
                break
            hidden |= fresh
        return rows[:PAGE], len(rows) > PAGE


def _may_read(permission: Permission) -> bool:
    return permission is not Permission.NONE
