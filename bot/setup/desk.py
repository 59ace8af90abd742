"""The requests of the set-up page: each one asks at the door first, and each form must be ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.checkup import NOWHERE, Level
from bot.checkup import manifest as manifests
from bot.errors import BotError, UserError
from bot.registration import Registered
from bot.setup.bench import SetupState
from bot.setup.door import Door
from bot.web.pages import COMMON, Pages, forms, origin, static_routes

Fields = Mapping[str, str]
NOTHING: Fields = MappingProxyType({})
FAILING = (
    "Some checks are bad, so sessions would fail. Follow what they say and finish then, or tick the box to finish "
    "all the same."
)
EMPTY = {"name": "Forgehand", "organisation": "", "app_id": "", "client_id": ""}
Act = Callable[[Request, Fields], Awaitable[Response]]


class SetUpDesk:
    def __init__(self, door: Door, bench: SetupState, on_app: Callable[[Registered], None]) -> None:
        self.finished = asyncio.Event()
        self._door = door
        self._bench = bench
        self._on_app = on_app
        self._pages = Pages()
        self._looking = asyncio.Lock()
        self._failing: int | None = None
        """How many checks were bad at the last look; None: nobody has looked since something changed."""

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", RedirectResponse("/setup", 303), methods=["GET"]),
            Route("/setup", self._show),
            Route("/setup/open", self._open, methods=["POST"]),
            Route("/setup/app", self._form(self._ask_github), methods=["POST"]),
            Route("/setup/created", self._created),
            Route("/setup/existing", self._form(self._existing), methods=["POST"]),
            Route("/setup/key", self._form(self._key), methods=["POST"]),
            Route("/setup/check", self._check),
            Route("/setup/findings", self._findings),
            Route("/setup/finish", self._form(self._finish), methods=["POST"]),
            *static_routes(),
        ]

    async def _show(self, request: Request) -> Response:
        return await self._page(request) if self._door.is_open_to(request) else self._door_page(request)

    async def _open(self, request: Request) -> Response:
        try:
            fields = await forms.read(request)
        except UserError as error:
            return self._door_page(request, str(error), 400)
        if not self._door.is_ours(request, fields.get("csrf", "")):
            return self._door_page(request, "This form has expired. Please enter the token again.", 403)
        visit = self._door.open(fields.get("token", ""))
        if visit is None:
            wrong = "This token is wrong or was already used. Start `forgehand setup` again to get a new one."
            return self._door_page(request, wrong, 403)
        response = RedirectResponse("/setup", 303)
        self._door.mark(request, response, visit)
        return response

    def _form(self, act: Act) -> Callable[[Request], Awaitable[Response]]:
        """Wrap a form behind the door: check that it is ours, and show a mistake above its page."""

        async def answer(request: Request) -> Response:
            if not self._door.is_open_to(request):
                return self._door_page(request, status=403)
            fields: dict[str, str] = {}
            try:
                fields = await forms.read(request)
                if not self._door.is_ours(request, fields.pop("csrf", "")):
                    return await self._page(request, wrong="This form has expired. Please try again.", status=403)
                return await act(request, fields)
            except BotError as error:
                pasting = request.url.path.endswith("/existing")
                return await self._page(request, wrong=str(error), pasting=pasting, status=422, typed=fields)

        return answer

    async def _ask_github(self, request: Request, fields: Fields) -> Response:
        public_url, organisation = self._bench.address(fields.get("public_url", "")), fields.get("organisation", "")
        state = self._door.new_state()
        self._bench.remember(state, public_url)
        path = f"organizations/{quote(organisation, safe='')}/settings" if organisation else "settings"
        filled = manifests.read().filled(
            name=fields.get("name", "") or "Forgehand",
            base_url=origin.base(request),
            hook_url=f"{public_url}/webhook" if public_url else NOWHERE,
            public_url=public_url,
        )
        github = self._bench.github_url
        return self._pages.render(
            "setup_github.html",
            forms_go_to=(github,),
            title="Confirm it on GitHub",
            action=f"{github}/{path}/apps/new?{urlencode({'state': state})}",
            manifest=json.dumps(filled),
            host=urlsplit(github).netloc,
        )

    async def _created(self, request: Request) -> Response:
        """Answer the way back from GitHub with a link, not a redirect: the cookie does not come from another site."""
        state = request.query_params.get("state", "")
        if not self._door.came_back(state):
            return self._said("This link from GitHub is not ours, or was already used. Please start again.", bad=True)
        try:
            app = await self._bench.create(state, request.query_params.get("code", ""))
        except BotError as error:
            words = (
                f"GitHub did not return the App's credentials: {error} If the App exists, delete it and start again."
            )
            return self._said(words, bad=True)
        self._on_app(app)
        self._failing = None
        return self._said(f"GitHub created {app.slug}, and its keys are stored.", install=_install(app))

    async def _existing(self, request: Request, fields: Fields) -> Response:
        app = await self._bench.take_existing(fields)
        self._on_app(app)
        self._failing = None
        return await self._page(request, said=f"{app.slug} is stored.")

    async def _key(self, request: Request, fields: Fields) -> Response:
        return await self._page(request, said=await self._bench.store_key(fields.get("api_key", "")))

    async def _check(self, request: Request) -> Response:
        if not self._door.is_open_to(request):
            return self._door_page(request, status=403)
        try:
            found = await self._looked()
        except BotError as error:
            return await self._page(request, wrong=str(error), status=422)
        return self._pages.render("setup_check.html", title="Does everything work?", **found)

    async def _findings(self, request: Request) -> Response:
        if not self._door.is_open_to(request):
            return PlainTextResponse("This page is no longer open.\n", 403, COMMON)
        try:
            found = await self._looked()
        except BotError as error:
            return PlainTextResponse(f"{error}\n", 422, COMMON)
        return HTMLResponse(self._pages.fragment("setup_findings.html", **found), headers=COMMON)

    async def _looked(self) -> dict[str, Any]:
        """Run one check-up at a time, because each makes a sandbox."""
        async with self._looking:
            findings = await self._bench.check()
        self._failing = sum(one.level is Level.BAD for one in findings)
        return {"findings": findings, "amiss": sum(one.level is not Level.GOOD for one in findings)}

    async def _finish(self, request: Request, fields: Fields) -> Response:
        app = await self._bench.app()
        if app is None:
            raise UserError("There is no App yet.")
        if fields.get("anyway") != "yes" and self._failing != 0:
            await self._looked()  # somebody may have fixed it
            if self._failing:
                raise UserError(FAILING)
        self.finished.set()
        return self._pages.render("setup_done.html", title="Set up Forgehand", app=app, command=self._bench.command)

    def _door_page(self, request: Request, wrong: str = "", status: int = 200) -> Response:
        visit = self._door.visit(request)
        page = self._pages.render(
            "setup_door.html", status=status, title="Set up Forgehand", wrong=wrong, csrf=self._door.csrf(visit)
        )
        self._door.mark(request, page, visit)
        return page

    async def _page(
        self,
        request: Request,
        *,
        wrong: str = "",
        said: str = "",
        pasting: bool = False,
        status: int = 200,
        typed: Fields = NOTHING,
    ) -> Response:
        """Render the page; `typed` fills a refused form in again, except for secrets."""
        app = await self._bench.app()
        return self._pages.render(
            "setup.html",
            status=status,
            title="Set up Forgehand",
            wrong=wrong,
            said=said,
            pasting=pasting,
            app=app,
            install_url=_install(app) if app else "",
            permissions=manifests.read().permissions,
            reasons=manifests.read().reasons,
            typed={**EMPTY, "public_url": self._bench.public_url, **typed},
            key=await self._bench.key(),
            csrf=self._door.csrf(self._door.visit(request)),
        )

    def _said(self, words: str, *, bad: bool = False, going_on: bool = True, install: str = "") -> Response:
        return self._pages.render(
            "setup_said.html",
            status=400 if bad else 200,
            title="Set up Forgehand",
            words=words,
            mood="bad" if bad else "good",
            next="/setup" if going_on else "",
            install_url=install,
        )


def _install(app: Registered) -> str:
    return f"{app.page_url}/installations/new"
