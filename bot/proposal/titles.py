"""Finds the title of a change: the agent's if it reads like a maintainer's, else the issue's or the request's. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.text.blocks import plain
from bot.text.visible import visible


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READ = 20_000
SENTENCES = 4
"""An agent that gives no title says what it did in its first sentences, or not at all."""
SHORTEST_CUT = 24
_FORM = re.compile(
    r"^[^\S\n]*[#*_>]*[ ]?[*_]*Title[*_]*[ ]?:[*_]*[ \t]+(\S[^\n]*)(?:\n|\Z)", re.IGNORECASE | re.MULTILINE
)
_LABEL = re.compile(
    r"\A\s*[#*_]*[ ]?(?:Summary|Description)[*_]*[ ]?:?[*_]*[ \t]*(?:\n|(?<=:)|(?<=: )|(?<=\*) )", re.IGNORECASE
)
_ASIDE = re.compile(r"\s\(\[[^\]\n]{0,300}\]\([^)\n]{0,500}\)\)")
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,500}\)")
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_LEADING = re.compile(r"^(?:[^\w`\"'(\[@$<]|_)+|^\d{1,3}[.)]\s+")
_CODE = re.compile(r"`[^`\n]*`")
_MENTION = re.compile(r"(?<![\w/.+-])@(?=[A-Za-z0-9])")
_TAGGED = re.compile(
    r"^(?:\[[^\]\n]{1,24}\]\s*"
    r"|(?:bug(?: report)?|feat(?:ure)?(?: request)?|enhancement|request|issue|question|regression|task|docs?|chore|fix)"
    r"\s?(?:\([^)\n]{0,40}\))?!?\s?(?::|\s[-–—])\s+)",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^(?:(?:hi|hello|hey)(?: (?:there|all|team))?[,!. ]+"
    r"|(?:please|pls|kindly|just|also|now|then|and)[, ]+"
    r"|(?:can|could|would|will) (?:you|we|someone|somebody)(?: please)? "
    r"|(?:we|you|i|it)(?: would| really)? (?:should|must|needs? to|have to|want (?:you )?to|like to) "
    r"|(?:we|i)'d like (?:you )?to "
    r"|(?:need|needs|want|should) to |should |let's |let us "
    r"|it would be (?:nice|great|good|useful|helpful)(?: if (?:you|we) could| to) )",
    re.IGNORECASE,
)
_FAREWELL = re.compile(r"[\s,.!]*\b(?:please|pls|thanks|thank you|thx|asap)[\s!.]*$", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?:])(?:[*_]{1,2})?\s+(?=[^a-z])|\n+")
_SUBJECT = re.compile(
    r"^(?:(?:I|We)(?:'ve|’ve| have| also| now| just)*"
    r"|This (?:PR|pull request|commit|change|patch)(?: also| now)?) (?=[a-z])"
)
_TURN = re.compile(r",? (?:but|so|and)(?= (?:I|we)(?:'ve|’ve)? )")
"""Where a sentence comes to what was done: "I could not reproduce it, but I hardened the reader"."""
_OBJECT = r"(?= (?:a|an|the|its?|them|this|that|these|those|all|each|every|both|some|more)\b| `)"
_NEXT_VERB = re.compile(rf"(,? and (?:then |also )?|, )([a-z]{{3,20}}){_OBJECT}")
_POINTS_BACK = re.compile(
    r"\S+ (?:it|this|that|them|these|those)(?: (?:all|by|in|so|with|for|and|to|as|at|on|now|too)\b|[,.;]|\Z)"
)
"""Only the sentence before says what "Fix it by …" is about."""
_WRAPPED = re.compile(r"([\"'`“‘])([^\"'`“”‘’]{6,300})[\"'`”’]")
_NUMBER = re.compile(r"#\d+")
_CHATTER = re.compile(
    r"^(?:i|i['’]\w+|we|we['’]\w+|it|its|it['’]s|this|that|these|those|here|there|all|everything|nothing|done|ok|okay"
    r"|sure|great|perfect|sorry|unfortunately|now|let|looks?|summary|title|no|yes|as|you|your|the|my|so|finally"
    r"|success\w*|fixed|finished|resumed|tests? (?:now )?pass\w*|changes?|what|why|how|work|none|n/a|tbd|todo)"
    r"(?=[\s,.:!]|$)",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"\b(?:is|are|was|were|does|did|(?:is|are|does|do|can)n?['’]t|do not|cannot|fails?|failed|breaks?|broken"
    r"|crash(?:es|ed)?|returns|throws|raises|shows|gives|hangs|wrong|missing|has|have)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:] | – | — | so that | such that | because | which | instead of | rather than | \(")
_REDACTED = re.compile(r"\[redacted|\*\*\*", re.IGNORECASE)
_CLEAR = _words(
    """
    accept add adapt adjust align allow announce apply assert attach avoid bound bring bump centralise centralize
    choose clamp clarify clean collapse combine compute configure consolidate convert correct count cover create cut
    deduplicate defer define delete deprecate derive describe detect disable distinguish document drop emit enable
    enforce ensure escape exclude expand explain expose extend extract fix flatten follow forbid forward generate
    give guard handle harden hide ignore implement improve include increase inline insert install introduce keep let
    limit localise localize lower make mark migrate mock modernise modernize move name normalise normalize omit open
    optimise optimize parse pass permit prefer prepare preserve prevent propagate protect prove provide publish
    quote raise rebuild reduce refactor refuse regenerate register reject relax rely remember remove rename render
    reorder repair replace resolve respect restore restrict reuse rewrite sanitise sanitize send separate serve
    shorten simplify skip speed split strip suggest swap switch take tell tighten tolerate translate treat trim
    truncate unify update upgrade use validate warn widen write
    """
)
"""Verbs that begin a title and are hardly ever a noun there."""
_DOUBTFUL = _words(
    """
    build cache catch change check cast close copy display draw exit export fall filter format get group import
    index link list load lock log look map match mention order pin point port print process put query rank read
    record release report request reset return revert round route run save scale search select set share show sign
    sort start stop store stream style support sync test throw time track turn type work wrap
    """
)
"""These begin a title too, but may be a noun: "Import fails on Windows"."""
_NO_CHANGE = frozenset(
    ("check", "look", "print", "read", "report", "request", "run", "search", "show", "start", "test", "time", "work")
)
"""What an agent says that it did, though it is no change: "Ran the tests"."""
_EMPTY = ("change", "update")
"""With the name of a file alone, these say nothing."""
_IRREGULAR = {
    "brought": "bring", "built": "build", "caught": "catch", "chose": "choose", "cut": "cut", "drew": "draw",
    "gave": "give", "hid": "hide", "kept": "keep", "let": "let", "made": "make", "put": "put", "rebuilt": "rebuild",
    "rewrote": "rewrite", "rewritten": "rewrite", "sent": "send", "set": "set", "split": "split", "sped": "speed",
    "threw": "throw", "told": "tell", "took": "take", "wrote": "write",
}  # fmt: skip
_GENERIC = _words(
    """
    a all an and any asked bug bugs care change changes ci code comment error everything failing feature file files
    fix fixes here in is issue issues it its mentioned minor needed now of on please problem problems reported
    repository request requested same some something stuff suggested task test tests that the them these thing things
    this those to up what with work you
    """
)
"""Words that say nothing about the change."""
_QUOTED = 'Resolve "{}"'
_FOLLOWED = 'Follow up on "{}"'


@dataclass(frozen=True)
class TitleSources:
    """Everything that a title may be made of."""

    said: str = ""
    """The agent's own title."""
    words: str = ""
    """The agent's last words, without the title."""
    thread: str = ""
    """The title of the issue or pull request."""
    request: str = ""
    follows: bool = False
    """The thread's title names earlier work, not this change."""


def parted(words: str) -> tuple[str, str]:
    """Divide the agent's last words into the title that its form has, or nothing, and the summary."""
    found = _FORM.search(words[:READ])
    if found is None:
        return "", words
    before, after = words[: found.start()].strip(), words[found.end() :]
    if "```" in before:  # then the line may be part of a program
        return "", words
    summary = _LABEL.sub("", after, count=1).strip("\n") if before == "" else f"{before}\n\n{after.strip()}"
    return found[1].strip(), summary.strip()


def title(sources: TitleSources, limit: int) -> str | None:
    """Choose the best title; None if nothing says what the change is."""
    thread = _one_line(_untagged(visible(sources.thread[:READ])))
    quote = _FOLLOWED if sources.follows else _QUOTED
    own = "" if sources.follows else _demand(thread)
    asked = next((text for one in _sentences(sources.request, 2) if (text := _demand(_one_line(one)))), "")
    found = _checked(sources.said) or own or _deed(sources.words) or asked
    if found:
        return _fitted(_capital(found), limit)
    if _is_telling(thread):
        return quote.format(_fitted(thread.replace('"', "'"), limit - len(quote) + 2))
    return None


def _checked(said: str) -> str:
    """Return the agent's own title, if it is one: no chatter, question, mention, secret or empty phrase."""
    text = _one_line(visible(said[:READ]))
    if (wrapped := _WRAPPED.fullmatch(text)) and " " in wrapped[2]:
        text = wrapped[2]
    if len(text) < 4 or text.endswith("?") or _REDACTED.search(text) or _MENTION.search(_CODE.sub("", text)):
        return ""
    text = _imperative(_SUBJECT.sub("", text), doubtful=True) or text
    return "" if _CHATTER.match(text) or not _is_telling(text) else text


def _deed(words: str) -> str:
    """Find the sentence in which an agent without a title says what it changed."""
    for sentence in _sentences(words, SENTENCES):
        text = _one_line(sentence).partition("; ")[0]
        if text.endswith("?") or _REDACTED.search(text) or _MENTION.search(_CODE.sub("", text)):
            continue
        done = next(filter(None, (_done(part) for part in (text, *_TURN.split(text, maxsplit=1)[1:]))), "")
        verb = done.split(" ", 1)[0]
        if (
            done
            and not _POINTS_BACK.match(done)
            and verb not in _NO_CHANGE
            and _is_telling(_CODE.sub("", done) if verb in _EMPTY else done)
        ):
            return done
    return ""


def _done(text: str) -> str:
    text = text.lstrip()
    return _imperative(_SUBJECT.sub("", text), doubtful=not _STATES.search(_CODE.sub("", text)))


def _demand(text: str) -> str:
    """Return words that ask for something as an imperative; empty if they describe a state, or say nothing."""
    text = _FAREWELL.sub("", text)
    while (shorter := _POLITE.sub("", text)) != text:
        text = shorter
    text = text.rstrip(" ?.!")
    first = text.split(" ", 1)[0].lower()
    second = text.split(" ")[1].lower() if " " in text else ""
    doubtful = first in _DOUBTFUL and not _STATES.search(text) and second not in ("for", "in", "on", "to")
    is_noun = second == "of" or _STATES.fullmatch(second)
    if (
        is_noun
        or (first not in _CLEAR and not doubtful)
        or not _is_telling(text)
        or _MENTION.search(_CODE.sub("", text))
    ):
        return ""
    return text


def _sentences(words: str, most: int) -> Iterator[str]:
    text = visible(words[:READ])
    for sentence in [one for one in _SENTENCE.split(text[: 4 * READ // 10]) if one and one.strip()][:most]:
        if sentence.lstrip().startswith(("```", "|", ">")):
            return
        yield sentence


def _one_line(text: str) -> str:
    """Take the markdown off the first line; only code stays marked."""
    first = next((line for line in plain(text).splitlines() if line.strip()), "")
    spans = _CODE.findall(first)
    bare = _EMPHASIS.sub("", unlinked(_ASIDE.sub("", _CODE.sub("\0", first)))).replace("`", "")
    left = iter(spans)
    bare = re.sub("\0", lambda _: next(left, ""), bare)
    return " ".join(_LEADING.sub("", bare.strip()).split()).rstrip(" .:;,!*_#—–-")


def unlinked(text: str) -> str:
    """Leave a link's words and drop its address: nobody clicks in a commit's message."""
    return _LINK.sub(r"\1", text)


def _untagged(text: str) -> str:
    text = text.strip()
    while (shorter := _TAGGED.sub("", text)) != text:
        text = shorter
    return text


def _imperative(text: str, *, doubtful: bool) -> str:
    """Give the verbs themselves: "Added a flag and documented it" becomes "Add a flag and document it"; empty if it
    does not begin with one."""
    first, _, rest = text.partition(" ")
    verb = _verb(first.lower(), doubtful=doubtful)
    if not verb and first.lower().endswith("ing") and re.match(_OBJECT, f" {rest}") and not _STATES.search(rest):
        verb = next((one for one in _stems(first.lower()[:-3]) if one in _CLEAR), "")
    if not verb or not rest:
        return ""
    return f"{verb} {rest}" if verb == first.lower() else f"{verb} {_next_verbs(rest)}"


def _next_verbs(rest: str) -> str:
    """Do the same for the verbs that follow the first one in the past tense, each before its object."""
    return _NEXT_VERB.sub(lambda at: f"{at[1]}{_past(at[2]) or at[2]}", rest)


def _stems(word: str) -> tuple[str, ...]:
    """Undo an ending: `fix`, `remov` + e, `dropp` - p."""
    return (word, f"{word}e", word[:-1]) if word[-1:] == word[-2:-1] else (word, f"{word}e")


def _past(word: str) -> str:
    """Return the verb of a word in the past tense; empty for another word."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    past = [word[:-1], word[:-2], f"{word[:-3]}y", word[:-3]] if word.endswith("ed") else []
    return next((one for one in past if one in _CLEAR | _DOUBTFUL), "")


def _verb(word: str, *, doubtful: bool) -> str:
    if word in _CLEAR or (doubtful and word in _DOUBTFUL):
        return word
    third = [word[:-1], word[:-2], f"{word[:-3]}y"] if word.endswith("s") else []
    return _past(word) or next((one for one in third if one in _CLEAR), "")


def _is_telling(text: str) -> bool:
    """Decide whether the words after the first say what it is about; a script without blanks is one word."""
    words = re.findall(r"[^\W_]+", _NUMBER.sub("", text.lower()))
    if len(words) < 2:
        return len(text) >= 6 and not text.isascii()
    return any(word not in _GENERIC for word in words[1:]) and len(text) >= 6


def _capital(text: str) -> str:
    first = text.split(" ", 1)[0]
    return text[0].upper() + text[1:] if first.isalpha() and first.islower() else text


def _fitted(text: str, limit: int) -> str:
    """Cut at a clause if that leaves a title, else at a word, with a sign that it is cut."""
    if len(text) <= limit:
        return text
    ends = [match.start() for match in _CLAUSE.finditer(text) if SHORTEST_CUT <= match.start() <= limit]
    ends = [end for end in ends if text[:end].count("`") % 2 == 0 and text[:end].count('"') % 2 == 0]
    if ends:
        return text[: ends[-1]]
    short = text[: limit - 1]
    at = short.rfind(" ")
    short = (short[:at] if at > limit // 2 else short).rstrip()
    return (short if short.count("`") % 2 == 0 else short.replace("`", "")) + "…"
