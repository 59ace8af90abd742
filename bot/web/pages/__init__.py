"""Pages for people: templates, one stylesheet, and the headers that keep a page to what it is."""

from bot.web.pages.frame import COMMON, Pages, static_routes

__all__ = ["COMMON", "Pages", "static_routes"]
