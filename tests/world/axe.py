"""Judges a page for people who use it without a mouse or without seeing it, with axe-core in the browser itself."""

from __future__ import annotations

from importlib.resources import files

from playwright.async_api import Page

GRAVE = ("serious", "critical")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = """tags => axe.run(document, {runOnly: tags, resultTypes: ["violations"]}).then(found => found.violations.map(
    one => ({id: one.id, impact: one.impact, nodes: one.nodes.slice(0, 3).map(node => node.html + node.failureSummary)})
))"""


async def grave_faults(page: Page) -> list[str]:
    """List what axe finds serious or critical, contrast included."""
    await page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = await page.evaluate(_RUN, TAGS)
    return [f"{one['id']} ({one['impact']}): {one['nodes']}" for one in found if one["impact"] in GRAVE]
