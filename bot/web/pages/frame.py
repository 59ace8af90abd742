"""Renders a page: escaped, without inline script or style, with nothing from other hosts, never cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    "Referrer-Policy": "same-origin",  # with `no-referrer`, browsers would hide a form's origin from us too
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)


PUBLIC = {**COMMON, "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow, noarchive"}
PUBLIC_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)


class Pages:
    """Compiles all templates, which takes a third of a second. They extend `base.html`, which needs a `title`."""

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
        """Render a part of a page; it is escaped, and may be put into another as it is."""
        return Markup(self._templates.get_template(template).render(**values))  # noqa: S704 - see above

    def render(
        self, template: str, *, status: int = 200, forms_go_to: Sequence[str] = (), **values: object
    ) -> HTMLResponse:
        """`forms_go_to` lists other origins to which a form of this page may be sent."""
        policy = " ".join([POLICY, *forms_go_to])
        text = self.fragment(template, **values)
        return HTMLResponse(text, status, headers={**COMMON, "Content-Security-Policy": policy})

    def public(self, template: str, values: Mapping[str, object], *, status: int = 200) -> HTMLResponse:
        """Render a page for strangers: no script, no form, nothing for search engines, and no word of its address."""
        headers = {**PUBLIC, "Content-Security-Policy": PUBLIC_POLICY}
        return HTMLResponse(self.fragment(template, **values), status, headers=headers)


def static_routes() -> list[BaseRoute]:
    return [Mount("/static", StaticFiles(directory=FOLDER / "static"), name="static")]
