"""How a page is rendered and sent: escaped, without script or style in it, from no foreign host, never cached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from bot.web.pages.wording import FILTERS

FOLDER = Path(__file__).parent
COMMON = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with `no-referrer` browsers hide where a form came from, from us too
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Pages:
    """Templates extend `base.html`, which wants a `title`. To make one takes a third of a second: all are compiled."""

    def __init__(self) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(FILTERS)
        for name in self._templates.list_templates(extensions=["html"]):
            self._templates.get_template(name)

    def fragment(self, template: str, **values: object) -> Markup:
        """A part of a page, escaped like one: it may be put into another as it is."""
        return Markup(self._templates.get_template(template).render(**values))  # noqa: S704 - see above

    def render(
        self, template: str, *, status: int = 200, forms_go_to: Sequence[str] = (), **values: object
    ) -> HTMLResponse:
        """`forms_go_to`: origins beside our own that a form of this page may be sent to."""
        text = self.fragment(template, **values)
        return HTMLResponse(text, status, headers={**COMMON, "Content-Security-Policy": _policy(forms_go_to)})


def _policy(forms_go_to: Sequence[str]) -> str:
    return "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            " ".join(["form-action 'self'", *forms_go_to]),
        ]
    )


def static_routes() -> list[BaseRoute]:
    return [Mount("/static", StaticFiles(directory=FOLDER / "static"), name="static")]
