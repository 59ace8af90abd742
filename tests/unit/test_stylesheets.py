"""The colours of the pages: text can be read on whatever it stands on, and a field has an edge, also in the dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "bot"
PAGES = ROOT / "web/pages/static/forgehand.css"
DEMO = ROOT / "simulation/pages/static/watch.css"
TEXT, SHAPE = 4.5, 3.0
"""What WCAG's level AA asks for."""


def colours(file: Path, dark: bool) -> dict[str, str]:
    first, second = re.findall(r":root \{(.*?)\}", file.read_text(encoding="utf-8"), re.DOTALL)
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6}|\d+%)", first))
    return {**found, **dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6}|\d+%)", second))} if dark else found


def parts(colour: str) -> list[float]:
    digits = colour.removeprefix("#")
    wide = "".join(2 * one for one in digits) if len(digits) == 3 else digits
    return [int(wide[at : at + 2], 16) / 255 for at in (0, 2, 4)]


def light(of: list[float]) -> float:
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in of)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: list[float], other: list[float]) -> float:
    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_and_edges_stand_out(dark: bool) -> None:
    of = colours(PAGES, dark)
    paper, field, share = parts(of["paper"]), parts(of["field"]), int(of["tint"].rstrip("%")) / 100
    for name in ("ink", "soft", "act", "good", "bad", "warning"):
        assert min(contrast(parts(of[name]), one) for one in (paper, field)) >= TEXT, name
    for name in ("good", "bad"):  # on a ground of their own colour, as lines of a diff and what is said above a page
        tint = [share * one + (1 - share) * other for one, other in zip(parts(of[name]), paper, strict=True)]
        assert contrast(parts(of[name]), tint) >= TEXT, name
    assert contrast(parts(of["on-act"]), parts(of["act"])) >= TEXT
    assert min(contrast(parts(of["edge"]), one) for one in (paper, field)) >= SHAPE, "what can be filled in"
    assert contrast(parts(of["act"]), paper) >= SHAPE, "what has the focus"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_demo_can_be_read_too(dark: bool) -> None:
    of = colours(DEMO, dark)
    for name in ("text", "dim", "link", "bad"):
        for ground in ("ground", "panel", "bot"):
            if (name, ground) != ("bad", "bot"):
                assert contrast(parts(of[name]), parts(of[ground])) >= TEXT, (name, ground)
    for ground in ("open", "draft"):
        assert contrast(parts("#fff"), parts(of[ground])) >= TEXT, ground


def test_every_colour_that_is_used_is_there() -> None:
    for file in (PAGES, DEMO):
        text = file.read_text(encoding="utf-8")
        assert set(re.findall(r"var\(--([a-z-]+)\)", text)) <= set(re.findall(r"--([a-z-]+):", text)), file.name
