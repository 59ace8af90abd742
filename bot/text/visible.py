"""Find what a reader of the page can see of a text; the agent does not read the rest."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bot.text.blocks import HEADER, plain, row_cells
from bot.text.markup import Block, BlockMeaning, InlineMark, Piece, blocks, pieces
from bot.text.scanner import BlockForm, scan

FORMULA = "[formula]"
_CODE_OR_FORMULA = re.compile(
    r"(?P<code>(?<![`$])`[^`\n]*+`(?!`))|\$\$[^$]*+\$\$|\$`[^`\n]*+`\$|\$(?!\s)[^$\n]*+(?<!\s)\$(?!\d)"
)
_HIDDEN_BY_FORMULA = re.compile(
    r"""\\(?: (?: [hv]?phantom | m?smash | (?:text|page)?color | (?:math)?[clr]lap | raise | lower | move(?:left|right)
            | style | class | cssId | href | bbox | label | require | g?def | let | (?:re)?newcommand | mmlToken
        )(?![A-Za-z])
        | (?:h?skip|m?kern|mskip|hspace)\*?\s*\{?\s*- )
    | (?<!\\)%""",
    re.VERBOSE,
)
"""Commands that take room but draw nothing, change the colour or define such commands; and comments."""
_NOTE = re.compile(r"(?m)^[ \t>*+-]{0,12}\[\^([^\]\s]{1,100})\]:[^\n]*+(?:\n(?![ \t>]{0,12}\[\^)[^\n]++)*+")
_REFERENCE = re.compile(r"\[\^([^\]\s]{1,100})\](?!:)")
_DEFINED = re.compile(r"\[((?:[^\[\]\\]|\\.)++)\]:", re.DOTALL)
_NAMED = re.compile(r"\]\[((?:[^\[\]\\]|\\.)*+)\]", re.DOTALL)


def drawn(text: str) -> str:
    """Leave out formulas and notes that the page would not show; code stays as it is."""
    if "$" not in text and "[^" not in text:
        return text
    named = {label.lower() for label in _REFERENCE.findall(text)}

    def without_hidden(raw: str) -> str:
        raw = _NOTE.sub(lambda note: note[0] if note[1].lower() in named else "", raw)
        return _CODE_OR_FORMULA.sub(
            lambda one: FORMULA if one["code"] is None and _HIDDEN_BY_FORMULA.search(one[0]) else one[0], raw
        )

    return _in_prose(text, blocks(text), without_hidden)


def _in_prose(text: str, found: Sequence[Block], change: Callable[[str], str]) -> str:
    parts = ((block.kind, text[block.start : block.end]) for block in found)
    return "".join(change(raw) if kind is BlockMeaning.TEXT else raw for kind, raw in parts)


def kept(text: str) -> str:
    """Leave out further cells of a row and names of links; what is no link or table to GitHub stays."""
    if "|" in text:
        text = _without_further_cells(text)
    return _without_names(text) if "][" in text else text


def _without_names(text: str) -> str:
    found = blocks(text)
    unseen = (text[block.start : block.end] for block in found if block.kind is BlockMeaning.UNSEEN)
    known = {_folded(name) for raw in unseen for name in _DEFINED.findall(raw)}
    if not known:
        return text

    def short(match: re.Match[str]) -> str:
        return "]" if _folded(match[1]) in known else match[0]

    return _in_prose(text, found, lambda raw: _NAMED.sub(short, raw))


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def _without_further_cells(text: str) -> str:
    parts: list[str] = []
    at = columns = 0
    for row in (leaf for leaf in scan(text) if leaf.form is BlockForm.ROW):
        _, start, end = row.words[0]
        found = row_cells(text[start:end])
        if row.mark == HEADER:
            columns = len(found)
        elif len(found) > columns:
            parts += (text[at:start], f"| {' | '.join(found[:columns])} |")
            at = end
    return "".join((*parts, text[at:]))


@dataclass(frozen=True)
class Written:
    """The words of a person, and the markup among them that the page does not show."""

    text: str
    unseen: tuple[str, ...]


def visible(text: str) -> str:
    """Return what the page shows of a text that is data to the agent."""
    return plain(_Page(drawn(kept(text)), exact=False).render())


def as_written(text: str) -> Written:
    """Return the words of an instruction as they were written, without what the page hides."""
    page = _Page(text, exact=True)
    shown = plain(page.render())
    return Written(shown, tuple(filter(None, (plain(one).strip() for one in page.unseen))))


_OPEN = re.compile(r"<([A-Za-z][A-Za-z0-9-]*)")
_CLOSE = re.compile(r"</([A-Za-z][A-Za-z0-9-]*)")
_HIDING = re.compile(
    r"""[\s"'/](?:hidden(?=[\s=/>])
        | aria-hidden\s*=\s*["']?true
        | style\s*=\s*["'][^"']*(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0|font-size\s*:\s*0))""",
    re.IGNORECASE | re.VERBOSE,
)
_NEVER_SHOWN = frozenset(
    (
        *("script", "style", "template", "noscript", "iframe", "object", "embed", "head", "title", "svg", "math"),
        *("select", "textarea", "canvas", "audio", "video", "noframes", "noembed", "rp"),
    )
)
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"))
_BREAKS = frozenset(
    (
        *("br", "p", "div", "li", "tr", "table", "ul", "ol", "details", "summary", "hr", "dt", "dd"),
        *("h1", "h2", "h3", "h4", "h5", "h6"),
    )
)
_ENTITY = re.compile(r"&(?:#\d{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
_IMAGE = re.compile(r"!\[(?:[^\[\]]|\[[^\[\]]*+\])*+\](?:\([^()\n]*+(?:\([^()\n]*+\)[^()\n]*+)?\)|\[[^\[\]\n]*+\])?")
_LINK_TITLE = re.compile(r"""(\]\([ \t]*+[^\s()]*+)\s++(?:"[^"]*+"|'[^']*+'|\([^()]*+\))\s*+\)""")
_EMPTY_LINK = re.compile(r"(?<!!)\[\s*+\]\([^()\n]*+\)")
_VALUE = re.compile(r"""(?<!\s)\s++[^\s=<>"'/]++\s*+=\s*+("[^"]*+"|'[^']*+')""")
_SPACE = re.compile(r"\s")
_BARE_WORDS = re.compile(r"""\s[^\s=<>"'/]+(?=[\s/>])""")
_FENCE = re.compile(r"([ \t>*+\-\d.)]*(?:`{3,}|~{3,})[ \t]*)([\w#+.-]{0,30})([^\r\n]*)")
_DRAWN_FENCES = frozenset(("mermaid", "geojson", "topojson", "stl", "math"))


@dataclass
class _Page:
    """Reads a text block by block and keeps what a reader can see."""

    text: str
    exact: bool
    """Keep what the author wrote, tags included, unless it could carry hidden prose."""
    unseen: list[str] = field(default_factory=list)
    _kept: list[str] = field(default_factory=list)
    _skipping: list[str] = field(default_factory=list)
    _last_close: dict[str, int] | None = None

    def render(self) -> str:
        for block in blocks(self.text):
            if not self._block(block):
                break
        return "".join(self._kept)

    def _keep(self, text: str) -> None:
        if not self._skipping:
            self._kept.append(text)

    def _hide(self, text: str) -> None:
        if self.exact and not self._skipping:
            self.unseen.append(text)

    def _block(self, block: Block) -> bool:
        """Read one block; return False if the rest of the page is swallowed."""
        raw = self.text[block.start : block.end]
        if block.kind is BlockMeaning.UNSEEN:
            self._hide(raw)
        elif block.kind is BlockMeaning.CODE:
            self._code(raw)
        else:
            for piece in pieces(self.text, block):
                if not self._piece(piece, block):
                    return False
        return True

    def _code(self, raw: str) -> None:
        match = _FENCE.match(raw)
        if match is None:
            self._keep(raw)
        elif match[2].lower() in _DRAWN_FENCES and not self.exact:  # the page shows a drawing, not its source
            self._keep(f"[{match[2].lower()} drawing]\n")
        else:
            if match[3].strip():
                self._hide(match[3])
            self._keep(match[1] + match[2] + raw[match.end() :])

    def _piece(self, piece: Piece, block: Block) -> bool:
        raw = self.text[piece.start : piece.end]
        if piece.mark is InlineMark.TAG:
            self._tag(raw, piece.start)
        elif piece.mark is InlineMark.TEXT:
            self._keep(self._prose(raw))
        elif piece.mark is InlineMark.CODE:
            self._keep(raw)
        elif piece.unclosed:
            if raw.endswith(("\n", "\r")):
                self._keep("\n")
            return self.exact and block.kind is BlockMeaning.TEXT
        return True

    def _prose(self, raw: str) -> str:
        raw = _ENTITY.sub(_without_hidden_entity, raw)
        if self.exact:
            return _LINK_TITLE.sub(self._without_prose, raw)
        return _EMPTY_LINK.sub("", _LINK_TITLE.sub(r"\1)", _IMAGE.sub("[image]", raw)))

    def _without_prose(self, match: re.Match[str]) -> str:
        """Hide a link's title, which readers of the page do not see, unless it is one word that somebody may be talking
        about."""
        title = match.group()[len(match[1]) : -1].strip()
        if len(title.split()) == 1:
            return match.group()
        self._hide(title)
        return f"{match[1]})"

    def _tag(self, tag: str, at: int) -> None:
        opening, closing = _OPEN.match(tag), _CLOSE.match(tag)
        name = (opening or closing or [tag, ""])[1].lower()
        if self._skipping:
            is_same = name == self._skipping[-1]
            if is_same and opening:
                self._skipping.append(name)
            elif is_same:
                self._skipping.pop()
        elif opening and self._hides(tag, name, at):
            self._skipping.append(name)
        elif self.exact:
            self._keep(self._tamed(tag, name))
        elif name in _BREAKS and self._kept and not self._kept[-1].endswith("\n"):
            self._keep("\n")

    def _hides(self, tag: str, name: str, at: int) -> bool:
        if name in _VOID:
            return False
        if not self.exact:
            return name in _NEVER_SHOWN or _HIDING.search(tag) is not None
        if _HIDING.search(tag) is None:
            return False
        if self._last_close is None:
            self._last_close = {match[1].lower(): match.start() for match in _CLOSE.finditer(self.text)}
        return self._last_close.get(name, -1) > at  # an instruction may speak of a tag without closing it

    def _tamed(self, tag: str, name: str) -> str:
        """Leave out attributes that could be read as sentences: readers of the page do not see them."""
        tame = _VALUE.sub(lambda attribute: "" if _SPACE.search(attribute[1]) else attribute[0], tag)
        if len(_BARE_WORDS.findall(tame)) > 3:
            tame = f"<{name}>"
        if tame != tag:
            self._hide(tag)
        return tame


def _without_hidden_entity(match: re.Match[str]) -> str:
    letters = html.unescape(match.group())
    return match.group() if plain(letters) or letters.isspace() else ""
