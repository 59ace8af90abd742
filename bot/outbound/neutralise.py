"""Make text harmless on GitHub without changing how it reads: mentions, references, images, HTML."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from bot.outbound import prose
from bot.text import markup
from bot.text.blocks import shown
from bot.text.scanner import BlockForm, Leaf

SPLIT = "<!-- -->"
_OURS = r"lt|gt|amp|quot|nbsp|#33|#36|#39|#40|#47|#58|#91|#96"
_TAGS = r"details|summary|sub|sup|br|hr|kbd|b|i|em|strong|del|ins"
_OUR_TAG = rf"</?(?:{_TAGS})(?: open)?[ ]?/?>"
_KEYWORD = r"(?<![A-Za-z0-9])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?![A-Za-z0-9])"
_GAP = rf"(?:[^\w#]|_|{_OUR_TAG}){{0,40}}?"
# What is read on from each of many places has a bound: without one, a flood takes the square of its length.
_NAME = r"[\w.-]{1,100}+"
_LONGEST_ADDRESS = 300
_THREAD = r"(?:issues|pull|pulls|discussions|commit)"

_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`|)\]]+", re.IGNORECASE)
_ENTITY = re.compile(rf"&(?!(?:{_OURS});)(?=#[0-9]{{1,8}};|#[xX][0-9a-fA-F]{{1,7}};|[A-Za-z][A-Za-z0-9]{{1,32}};)")
_MENTION = re.compile(r"(?<![A-Za-z0-9])@(?=[A-Za-z0-9])")
_REFERENCE = re.compile(r"(?<!&)#(?=\d)|(?<=&)#(?=\d)(?!(?:33|36|39|40|47|58|91|96);)|(?<=GH-)(?=\d)", re.IGNORECASE)
_CLOSING = re.compile(rf"{_KEYWORD}{_GAP}(?:{_NAME}/{_NAME}|[\w-]{{1,100}}+)?(#|GH-)(?=\d)(\d+)", re.IGNORECASE)
_KEYWORDS = re.compile(_KEYWORD, re.IGNORECASE)
_THREAD_PATH = re.compile(rf"/{_THREAD}/(?=\d)", re.IGNORECASE)
_BEGINS = re.compile("https?://", re.IGNORECASE)
_LONGEST_URL = 500
_BEFORE_URL = 40
_THREAD_URL = re.compile(rf"(/{_THREAD}/)([0-9a-f])", re.IGNORECASE)
_FOREIGN_HTML = re.compile(rf"(?!{_OUR_TAG})(?!(?<=[@#$-]){SPLIT})<(?=[A-Za-z/!?])", re.IGNORECASE)
_ANY_HTML = re.compile(rf"(?!(?<=[@#$-]){SPLIT})<(?=[A-Za-z/!?])", re.IGNORECASE)
_IMAGE = re.compile(r"!(?=\[)")
_DEFINITION = re.compile(r"(?<=\]):")
_LINK = re.compile(rf"(?<=\])\((?=\s*<?\s*([^\s)>]{{0,{_LONGEST_ADDRESS + 1}}}))")
TASK = re.compile(
    r"(?m)^((?:[^\S\n]|&nbsp;|[>*+#-]|\d{1,9}[.)])*+)(\\?\[|&#91;)([^\S\n]|&nbsp;|[xX])(\\?\]|&#93;)(?=\s|&nbsp;|\Z)"
)
"""A box, or text that may pass for one: as it is written, or as it is shown."""
_MATH = re.compile(r"\$(?=[$`]|\s*\Z)|\$(?!<!)(?=[^\n$]*\\[A-Za-z])")
_SKIP = re.compile(r"\[((?:skip|no) ci|ci skip|skip actions|actions skip)\]|\*\*\*(NO_CI)\*\*\*", re.IGNORECASE)
_HIDING = 80


def foreign_html(text: str) -> str:
    """Escape HTML, except the few tags that our own pages use."""
    return _FOREIGN_HTML.sub("&lt;", text)


def any_html(text: str) -> str:
    return _ANY_HTML.sub("&lt;", text)


def scrubbed(text: str, closes: int | None = None) -> str:
    """Clean text that we composed: nothing in it calls people, closes threads, loads images or carries code."""
    text = foreign_html(_ENTITY.sub("&amp;", text))
    text = _IMAGE.sub("&#33;", _DEFINITION.sub("&#58;", text))
    text = _LINK.sub(lambda match: "(" if _is_harmless(match[1]) else "&#40;", text)
    text = _URL.sub(lambda url: re.sub(r"#(\d)", r"#%3\1", url[0].replace("@", "%40")), _MATH.sub("$" + SPLIT, text))
    text = _CLOSING.sub(lambda match: _unless(match, closes, SPLIT), _closing_urls(text))
    return skip_ci(_MENTION.sub("@" + SPLIT, text))


def untrusted(text: str) -> str:
    """Clean text that others wrote: in addition, no HTML at all, no references, no boxes to tick."""
    text = any_html(_with_drawn_boxes(text))
    text = _URL.sub(lambda url: _THREAD_URL.sub(lambda path: f"{path[1]}%{ord(path[2]):02X}", url[0]), text)
    return _REFERENCE.sub(lambda match: match[0] + SPLIT, scrubbed(text))


def _with_drawn_boxes(text: str) -> str:
    """Another spelling of the bracket would not do: GitHub finds boxes in the rendered text."""
    return TASK.sub(lambda box: box[1] + ("☑" if box[3] in "xX" else "☐"), text)


def scrub_plain_whole(text: str, closes: int | None = None) -> str:
    """Clean titles and commit messages, where Markdown does not apply: a space splits what would act."""
    text = _CLOSING.sub(lambda match: _unless(match, closes, " "), _closing_urls(text))
    return skip_ci(_MENTION.sub("@ ", text))


def skip_ci(text: str) -> str:
    return _SKIP.sub(lambda match: f"({match[1] or match[2]})", text)


def _closing_urls(text: str) -> str:
    """Change addresses of threads near a word that closes them, so that they still lead there but name no thread."""
    words = [match.end() for match in _KEYWORDS.finditer(text)]

    def hidden(match: re.Match[str]) -> str:
        before = text[max(0, match.start() - _LONGEST_URL) : match.start()].replace("<", " ").replace(">", " ")
        url = "" if not before or before[-1].isspace() else before.rsplit(None, 1)[-1]
        begins = [one.start() + match.start() - len(url) for one in _BEGINS.finditer(url)]
        near = bisect_left(words, begins[0] - _BEFORE_URL) if begins else len(words)
        return match[0] + "%3" if near < len(words) and words[near] <= begins[-1] else match[0]

    return _THREAD_PATH.sub(hidden, text) if words else text


def _unless(match: re.Match[str], closes: int | None, split: str) -> str:
    own = re.fullmatch(rf"{_KEYWORD}:? #{closes}", match[0], re.IGNORECASE) if closes is not None else None
    if own:
        return match[0]
    at = match.end(1) - match.start()
    return match[0][:at] + split + match[0][at:]


def _is_harmless(target: str) -> bool:
    """Decide whether a link is a web address that cannot carry data out behind harmless words."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", target)
    if scheme and scheme[1].lower() not in ("http", "https", "mailto"):
        return False
    if re.search(r"&|\\|^//|^[\x00-\x20]", target.partition("?")[0]):
        return False
    return len(target.partition("?")[2]) + len(target.partition("#")[2]) <= _HIDING and len(target) <= _LONGEST_ADDRESS


MARKER = re.compile(r"<!-- forgehand:[A-Za-z0-9_=. :#/-]{0,300} -->[ \t]*\Z")
_FORGED = re.compile(r"<!--(?=\s*forgehand:)", re.IGNORECASE)
_BOTS = r"bors|homu|dependabot|renovate|mergify|jenkins|prow|azp|netlify|codecov|gemini|copilot"
_WORDS = rf"(?:(?:{_BOTS})\b|r[?+]|recheck\b|retest\b|test this\b|ok to test\b)"
_SLASH = r"/(?=[A-Za-z][\w-]*(?:[ \t]|$))"
_COMMAND = re.compile(rf"^([ \t]*)({_SLASH}|(?={_WORDS}))", re.IGNORECASE)
_COMMAND_IN_CODE = re.compile(rf"(?m)^(?={_SLASH}|{_WORDS})", re.IGNORECASE)
_ANY_COMMAND = re.compile(rf"(?m)^[ \t]*(?:{_SLASH}|{_WORDS})", re.IGNORECASE)
_RICH = ("mermaid", "geojson", "topojson", "stl", "math")
_INFO = re.compile(r"[A-Za-z0-9_+#.-]{1,30}\Z")
_OPENING = re.compile(r"((?:[ \t>*+.)\d-]|\[\^[^\]\s]++\]:)*+)(`{3,}|~{3,})[^\n]*\Z")
_FENCES_AND_QUOTES = re.compile(r"`{3,}|~{3,}|^(?:[ \t]*+[/>])++", re.MULTILINE)
_FENCE = re.compile(r"```\w*\s*")
_BEFORE = "x "
Change = Callable[[str], str]


def inert(text: str) -> str:
    """Make markdown of others harmless for a page of ours: it keeps its form and loses its effects."""
    return _markdown(shown(text), untrusted, any_html)


def quoted(text: str) -> str:
    """Do the same, set apart as a quotation, and judged as it stands there."""
    return _markdown(set_apart(shown(text)), untrusted, any_html, set_apart)


def line(text: str) -> str:
    """Put words of others into a line of ours, where they open no block, and no code that words after them would
    end."""
    words = " ".join(shown(text).split())
    made = _markdown(_BEFORE + words, untrusted, any_html).removeprefix(_BEFORE)
    return prose.outside_spans(made, lambda part: part.replace("`", "&#96;")) if "`" in made else made


def block(text: str, language: str = "") -> str:
    """Make a code block that the text cannot leave."""
    body = _COMMAND_IN_CODE.sub(" ", _forged(shown(text)))
    return markup.code(body, language if _is_plain(language) else "")


def whole(text: str, closes: int | None = None) -> str:
    """Clean a composed body. Our marker may stand on its first line alone; `closes` is the one thread it may close."""
    text = shown(text)
    first, separator, rest = text.partition("\n")
    marked = MARKER.match(first) is not None
    changed = _markdown(rest if marked else text, lambda part: scrubbed(part, closes), foreign_html)
    return first.rstrip() + separator + changed if marked else changed


def whole_plain(text: str, closes: int | None = None) -> str:
    return scrub_plain_whole(_forged(shown(text)), closes)


def _markdown(text: str, change: Change, escape: Change, apart: Change = str) -> str:
    """Change the prose and leave code as it is; if it is unsure which is which, change everything."""
    try:
        changed = _outside_code(text, change, escape)
        leaves = prose.blocks(changed)
        if prose.closing(leaves) or any(change(part) != part for part in prose.live_texts(changed, leaves)):
            changed = change(text)
            end = prose.closing(prose.blocks(changed))
            changed = changed if end is None else f"{changed}\n{end}"
        return _forged(_without_commands(changed))
    except prose.TooDeep:  # then there is no code and no quotation, only words
        words = change(_FENCES_AND_QUOTES.sub(" ", text)).split("\n")
        return _forged(apart("\n".join(_COMMAND.sub(_defused, one) for one in words)))


def set_apart(text: str) -> str:
    return "\n".join(f"> {one}".rstrip() for one in text.split("\n"))


def _forged(text: str) -> str:
    """Break forged markers: prose has escaped them already, in code a space makes them other words."""
    return _FORGED.sub("<! --", text)


def _outside_code(text: str, change: Change, escape: Change) -> str:
    # The scanner is shown HTML as it will be: what will be shown as text must not open a block.
    if "\t" in text:
        text = prose.without_tabs(text, prose.blocks(escape(text)))
    leaves = prose.blocks(escape(text))
    lines = text.split("\n")
    out: list[str] = []
    at = 0
    for leaf in leaves:
        out += (change(line) for line in lines[at : leaf.first])
        out += _block(leaf, lines[leaf.first : leaf.last], change)
        at = leaf.last
    if (end := prose.closing(leaves)) is not None:
        out.append(end)
    out += (change(line) for line in lines[at:])
    return "\n".join(out)


def _block(leaf: Leaf, inside: list[str], change: Change) -> list[str]:
    if leaf.form is BlockForm.FENCE:
        opening = _opening(leaf, inside[0], change)
        # GitHub counts the boxes of the source, and takes only such a line for the beginning of code.
        return [opening, *(inside[1:] if _FENCE.fullmatch(opening) else map(_with_drawn_boxes, inside[1:]))]
    if leaf.form is BlockForm.CODE and leaf.within is not None:
        return inside
    if leaf.form is BlockForm.CODE:  # below a list, its indentation alone would make it words of the last item
        return block("\n".join(one[4:] for one in inside)).split("\n")
    words = "\n".join(inside)
    if leaf.form in (BlockForm.HTML, BlockForm.DEFINITION):
        return change(words).split("\n")
    outside = prose.outside_spans_of_cells if leaf.form is BlockForm.ROW else prose.outside_spans
    return outside(words, change).split("\n")


def _opening(leaf: Leaf, line: str, change: Change) -> str:
    opening = _OPENING.match(line)
    if opening is None:
        return change(line)
    language = (leaf.info.split() or [""])[0]
    return change(opening[1]) + opening[2] + (language if _is_plain(language) else "")


def _is_plain(language: str) -> bool:
    return bool(_INFO.match(language)) and language.lower() not in _RICH


def _without_commands(text: str) -> str:
    """Defuse commands of other bots, which read the raw lines, also those in code."""
    if not _ANY_COMMAND.search(text):
        return text
    fences = (leaf for leaf in prose.blocks(text) if leaf.form is BlockForm.FENCE)
    code = {at for leaf in fences for at in range(leaf.first + 1, leaf.last)}
    return "\n".join(
        _COMMAND_IN_CODE.sub(" ", line) if at in code else _COMMAND.sub(_defused, line)
        for at, line in enumerate(text.split("\n"))
    )


def _defused(match: re.Match[str]) -> str:
    return match[1] + ("&#47;" if match[2] else "&nbsp;")
