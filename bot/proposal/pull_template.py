"""A repository's own template for pull requests, with what we know put where it asks for it; pure.

Its headings are looked through for what they ask; whatever is not ours to say, boxes to tick above all, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.text.scanner import BlockForm, margin, scan

PLACES = tuple(
    f"{folder}pull_request_template{ending}" for folder in (".github/", "", "docs/") for ending in (".md", ".txt", "")
)
"""Where GitHub looks for it, whatever the case of the letters."""
MAX_TEMPLATE = 20_000
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_ASKS = {
    "done": re.compile(r"summar|descri|what\b|change|overview|purpose|detail|about", re.IGNORECASE),
    "link": re.compile(r"issue|ticket|relate|fixes|closes|resolves|reference", re.IGNORECASE),
    "verified": re.compile(r"\btest|verif|how .*(?:checked|validated)", re.IGNORECASE),
}
_TEMPLATE_REFERENCE = re.compile(
    r"[-*>\s]*+(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?|relates? to|issue|ref(?:s|erences)?)\b[\s:*]*+"
    r"#[\s(\[<{]*+(?:issue|ticket|number|id|nr|no|[xn_.\s-])*+[\s)\]>}*.]*+",
    re.IGNORECASE,
)
"""A line that waits for the number of an issue and has none, such as `Fixes # (issue)`."""
_NOT_OURS = re.compile(r"\btype\b|checklist|screenshot|breaking|before (?:you|submit)|risk|deploy|todo", re.IGNORECASE)


@dataclass
class _Section:
    heading: str = ""
    lines: list[str] = field(default_factory=list)

    def text(self, ours: str) -> str:
        """Puts our words first; the template's own lines, which are its prompts and boxes, stay below."""
        rest = re.sub(r"\n{3,}", "\n\n", "\n".join(self.lines)).strip("\n")
        return "\n\n".join(part for part in (self.heading.strip(), ours, rest) if part.strip())


@dataclass(frozen=True)
class Filled:
    text: str
    taken: frozenset[str]


def find(paths: tuple[str, ...]) -> str | None:
    """The one that GitHub would offer."""
    known = {path.lower(): path for path in reversed(paths)}
    return next((known[place] for place in PLACES if place in known), None)


def fill(template: str, ours: dict[str, str]) -> Filled:
    """`ours`: `done`, `link` and `verified`, as markdown that cannot act."""
    sections = _sections(_plain(template))
    taken: dict[str, _Section] = {}
    for what, asks in _ASKS.items():
        for section in sections:
            is_free = all(section is not one for one in taken.values())
            if is_free and asks.search(section.heading) and not _NOT_OURS.search(section.heading):
                taken[what] = section
                break
    said = {id(section): ours[what] for what, section in taken.items()}
    links = _link(sections, None if "link" in taken else ours["link"])
    parts = [section.text(said.get(id(section), "")) for section in sections]
    return Filled(_balanced("\n\n".join(part for part in parts if part)), frozenset(taken) | links)


def _link(sections: Sequence[_Section], link: str | None) -> frozenset[str]:
    """Lines that wait for an issue's number get our link, once: none of them is left dangling."""
    given = False
    for section in sections:
        found = [at for at, line in enumerate(section.lines) if _TEMPLATE_REFERENCE.fullmatch(line)]
        for at in found:
            section.lines[at] = link if link is not None and not given else ""
            given = True
    return frozenset({"link"} if given and link is not None else ())


def _plain(template: str) -> str:
    """Leaves out what only its authors read: in our hands a comment would become text."""
    text = template[:MAX_TEMPLATE].replace("\r\n", "\n").removeprefix("\ufeff")
    return _COMMENT.sub("", _FRONT_MATTER.sub("", text))


def _sections(text: str) -> list[_Section]:
    leaves = scan(text)
    headings = {
        leaf.first for leaf in leaves if leaf.form is BlockForm.HEADING and leaf.within is None and leaf.mark[0] == "#"
    }
    found = [_Section()]
    for at, line in enumerate(text.split("\n")):
        if at in headings:
            found.append(_Section(line))
        else:
            found[-1].lines.append(line)
    if leaves and leaves[-1].runs_on:  # else what follows the template would be code
        found[-1].lines.append(margin(leaves[-1].within) + leaves[-1].mark)
    return found


def _balanced(text: str) -> str:
    """Closes what it unfolds, so that nothing of ours hides in it."""
    opened = len(re.findall(r"<details\b", text, re.IGNORECASE)) - len(re.findall(r"</details>", text, re.IGNORECASE))
    return text + "\n\n</details>" * max(0, opened)
