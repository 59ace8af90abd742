"""Pages for people: templates, one stylesheet, and the headers that keep a page to what it is."""

from bot.web.pages.frame import Pages, static_routes

__all__ = ["Pages", "static_routes"]
