"""Makes text harmless on GitHub without changing how it reads: mentions, references, images, HTML."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from bot.outbound import prose
from bot.text.blocks import shown
from bot.text.scanner import BlockForm, Leaf
from bot.words import quoting

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
"""A box, or what somebody may take for one: in the text as it is written, or as it is shown."""
_MATH = re.compile(r"\$(?=[$`]|\s*\Z)|\$(?!<!)(?=[^\n$]*\\[A-Za-z])")
_SKIP = re.compile(r"\[((?:skip|no) ci|ci skip|skip actions|actions skip)\]|\*\*\*(NO_CI)\*\*\*", re.IGNORECASE)
_HIDING = 80


def foreign_html(text: str) -> str:
    """HTML that is not of the few tags that our own pages use."""
    return _FOREIGN_HTML.sub("&lt;", text)


def any_html(text: str) -> str:
    return _ANY_HTML.sub("&lt;", text)


def scrubbed(text: str, closes: int | None = None) -> str:
    """For text that we composed: nothing in it calls people, closes threads, loads images or carries code."""
    text = foreign_html(_ENTITY.sub("&amp;", text))
    text = _IMAGE.sub("&#33;", _DEFINITION.sub("&#58;", text))
    text = _MATH.sub("$" + SPLIT, _links(text))
    text = _closing(_in_urls(text), closes)
    return skip_ci(_MENTION.sub("@" + SPLIT, text))


def untrusted(text: str) -> str:
    """For text that others wrote: besides, no HTML at all, no references, no boxes to tick."""
    text = any_html(TASK.sub(_shown_box, text))
    text = _URL.sub(lambda match: _THREAD_URL.sub(_percent, match[0]), text)
    return _REFERENCE.sub(lambda match: match[0] + SPLIT, scrubbed(text))


def _shown_box(match: re.Match[str]) -> str:
    """The same to look at. A bracket in another spelling would not do: GitHub has found boxes in the rendered text."""
    return match[1] + ("☑" if match[3] in "xX" else "☐")


def scrub_plain_whole(text: str, closes: int | None = None) -> str:
    """For titles and commit messages, where Markdown does not apply: a space splits what would act."""
    text = _CLOSING.sub(lambda match: _unless(match, closes, " "), _closing_urls(text))
    return skip_ci(_MENTION.sub("@ ", text))


def skip_ci(text: str) -> str:
    return _SKIP.sub(lambda match: f"({match[1] or match[2]})", text)


def _in_urls(text: str) -> str:
    return _URL.sub(lambda match: _url(match[0]), text)


def _url(url: str) -> str:
    """The same address, in which no mention or reference can be seen."""
    return re.sub(r"#(\d)", r"#%3\1", url.replace("@", "%40"))


def _percent(match: re.Match[str]) -> str:
    return f"{match[1]}%{ord(match[2]):02X}"


def _closing_urls(text: str) -> str:
    """Addresses of threads near a word that closes them: the same address, in which no thread can be seen."""
    words = [match.end() for match in _KEYWORDS.finditer(text)]

    def hidden(match: re.Match[str]) -> str:
        url = _before(text, match.start())
        begins = [one.start() + match.start() - len(url) for one in _BEGINS.finditer(url)]
        near = bisect_left(words, begins[0] - _BEFORE_URL) if begins else len(words)
        return match[0] + "%3" if near < len(words) and words[near] <= begins[-1] else match[0]

    return _THREAD_PATH.sub(hidden, text) if words else text


def _before(text: str, end: int) -> str:
    """What stands there without a gap."""
    piece = text[max(0, end - _LONGEST_URL) : end].replace("<", " ").replace(">", " ")
    return "" if not piece or piece[-1].isspace() else piece.rsplit(None, 1)[-1]


def _closing(text: str, closes: int | None) -> str:
    text = _closing_urls(text)
    return _CLOSING.sub(lambda match: _unless(match, closes, SPLIT), text)


def _unless(match: re.Match[str], closes: int | None, split: str) -> str:
    """The thread that the work is for may be closed by it."""
    own = re.fullmatch(rf"{_KEYWORD}:? #{closes}", match[0], re.IGNORECASE) if closes is not None else None
    if own:
        return match[0]
    at = match.end(1) - match.start()
    return match[0][:at] + split + match[0][at:]


def _links(text: str) -> str:
    """A link that is no web address, or whose address can carry data out behind harmless words, becomes text."""
    return _LINK.sub(lambda match: "(" if _is_harmless(match[1]) else "&#40;", text)


def _is_harmless(target: str) -> bool:
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
_BEFORE = "x "
Change = Callable[[str], str]


def inert(text: str) -> str:
    """Markdown that others wrote, to stand in a page of ours: it keeps its form and loses its effects."""
    return _markdown(shown(text), untrusted, any_html)


def quoted(text: str) -> str:
    """The same set apart as a quotation, and judged as it stands there."""
    return _markdown(set_apart(shown(text)), untrusted, any_html, set_apart)


def line(text: str) -> str:
    """Words of others within a line of ours, where they open no block, and no code that words after them would end."""
    words = " ".join(shown(text).split())
    made = _markdown(_BEFORE + words, untrusted, any_html).removeprefix(_BEFORE)
    return prose.outside_spans(made, _without_ticks) if "`" in made else made


def block(text: str, language: str = "") -> str:
    """Text as a code block that it cannot leave."""
    body = _COMMAND_IN_CODE.sub(" ", _forged(shown(text)))
    return quoting.code(body, language if _is_plain(language) else "")


def whole(text: str, closes: int | None = None) -> str:
    """A composed body. Our marker may stand on its first line alone; `closes` is the one thread it may close."""
    text = shown(text)
    first, separator, rest = text.partition("\n")
    marked = MARKER.match(first) is not None
    changed = _markdown(rest if marked else text, lambda part: scrubbed(part, closes), foreign_html)
    return first.rstrip() + separator + changed if marked else changed


def whole_plain(text: str, closes: int | None = None) -> str:
    return scrub_plain_whole(_forged(shown(text)), closes)


def _markdown(text: str, change: Change, escape: Change, apart: Change = str) -> str:
    """Change the prose and leave code as it is; where that cannot be done surely, change everything."""
    try:
        changed = _outside_code(text, change, escape)
        leaves = prose.blocks(changed)
        if prose.closing(leaves) or any(change(part) != part for part in prose.live_texts(changed, leaves)):
            changed = _closed(change(text))
        return _forged(_without_commands(changed))
    except prose.TooDeep:
        return _forged(apart(_as_words(text, change)))


def _without_ticks(text: str) -> str:
    return text.replace("`", "&#96;")


def set_apart(text: str) -> str:
    return "\n".join(f"> {one}".rstrip() for one in text.split("\n"))


def _as_words(text: str, change: Change) -> str:
    """Without any code or quotation in it."""
    lines = change(_FENCES_AND_QUOTES.sub(" ", text)).split("\n")
    return "\n".join(_COMMAND.sub(_defused, line) for line in lines)


def _forged(text: str) -> str:
    """Our marker where it is not ours: in prose it is escaped already, in code a space makes it another word."""
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
        return [_opening(leaf, inside[0], change), *inside[1:]]
    if leaf.form is BlockForm.CODE:
        return inside if leaf.within is not None else _fenced(inside)
    words = "\n".join(inside)
    if leaf.form in (BlockForm.HTML, BlockForm.DEFINITION):
        return change(words).split("\n")
    outside = prose.outside_spans_of_cells if leaf.form is BlockForm.ROW else prose.outside_spans
    return outside(words, change).split("\n")


def _fenced(inside: list[str]) -> list[str]:
    """Below a list, what is code by its indentation alone would be words of its last item."""
    return block("\n".join(one[4:] for one in inside)).split("\n")


def _opening(leaf: Leaf, line: str, change: Change) -> str:
    """A fence's first line: its info string without what is hidden in it or makes GitHub draw."""
    opening = _OPENING.match(line)
    if opening is None:
        return change(line)
    language = (leaf.info.split() or [""])[0]
    return change(opening[1]) + opening[2] + (language if _is_plain(language) else "")


def _is_plain(language: str) -> bool:
    return bool(_INFO.match(language)) and language.lower() not in _RICH


def _closed(text: str) -> str:
    end = prose.closing(prose.blocks(text))
    return text if end is None else f"{text}\n{end}"


def _without_commands(text: str) -> str:
    """Other bots read the raw lines, also those in code, where a space must do."""
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
