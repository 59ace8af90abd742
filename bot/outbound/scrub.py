"""What in prose reaches beyond the page: mentions, references, closing keywords, images, HTML; and its inert form.

The inert forms look the same to a reader: an empty HTML comment splits a mention (`@<!-- -->name`), a character
reference stands for a sign that Markdown would act upon. Each form passes unchanged a second time.
"""

from __future__ import annotations

import re
from bisect import bisect_left

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


def scrub_whole(text: str, closes: int | None = None) -> str:
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
    return _REFERENCE.sub(lambda match: match[0] + SPLIT, scrub_whole(text))


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
