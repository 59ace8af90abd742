"""Recognises words that ask for no work: thanks, greetings, orders that only people may carry out. Pure."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 80
"""A longer text asks for something."""
_EDGES = re.compile(r"^[^\w+?/$]+|[^\w+?]+$")
_FILLERS = re.compile(r"^(?:(?:ok(?:ay)?|oh|ah|yes|and|hey|hi)[ ,.!]+)+(?=\w)|\s+(?:please|pls|now|again)$")
_CLAUSES = re.compile(r"[,.!;:]+\s*|\s+and\s+")
_THANKS = re.compile(
    r"""(?:(?:many|much|big|a\ thousand|no)\ )?(?:thanks?|thx|thnx|tx|ty|tysm|cheers|kudos)(?:\ (?:you|u|again))?
        (?:[ ,]+(?:a\ lot|so\ much|very\ much|a\ bunch|a\ ton|man|mate|all|everyone|claude|bot|forgehand
                  |for\ (?:the|your|this|that|all)\ ?[\w ]{0,30}|that['’]?s\ [\w ]{0,20}|it\ works?[\w ]{0,10}))*
    |(?:(?:very|really|so|that['’]s|this\ is|looks?|sounds|all)\ )?
        (?:nice|good|great|perfect|awesome|amazing|brilliant|excellent|lovely|beautiful|cool|wow|neat|super|fantastic)
        (?:\ (?:work|job|stuff|one|fix|catch|to\ me))?
    |well\ done|love\ (?:it|this)|i\ love\ (?:it|this)|you\ rock|you['’]re\ (?:the\ best|welcome|great)
    |(?:(?:it|this|that)\ )?(?:works|worked)(?:\ (?:now|for\ me|great|fine|perfectly))?
    |appreciated|much\ appreciated|i\ appreciate\ (?:it|this|that)|got\ it|understood|noted|makes\ sense|fair\ enough
    |sorry|my\ bad|oops|never\ thought\ so|haha+|lol|hurray|yay|congrats|congratulations|good\ bot|bravo
    |danke(?:\ schön|\ dir|\ sehr)?|vielen\ dank|merci(?:\ beaucoup)?|gracias|muchas\ gracias|grazie(?:\ mille)?
    |obrigad[oa]|muito\ obrigad[oa]|dank\ je(?:\ wel)?|dankjewel|bedankt|tak|tack|takk|kiitos|dzięki|dziękuję|děkuji
    |спасибо|дякую|ありがとう(?:ございます)?|谢谢|謝謝|감사합니다|teşekkürler|धन्यवाद|شكرا|תודה
    """,
    re.VERBOSE,
)
_CHEERS = re.compile(r"(?:\s|\+1|:[a-z_+0-9]{2,30}:|[^\w\s?]){1,20}")
_THING = r"(?:(?:the|this|that|my|your) )?(?:issue|bug|ticket|prs?|pull(?: request)?|branch|comment|it|this|that)"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_HINTS = (
    (
        _any(
            r"(?:merge|squash|close|reopen|lock|unlock|pin|unpin|transfer|delete|subscribe|unsubscribe)"
            rf"(?: {_THING})?(?: now)?",
            rf"(?:assign|unassign|mention|cc|tag|label|notify)(?: {_THING})?(?: (?:to|as|with))?"
            r"(?: @?[\w/-]{1,40})?",
            rf"approve {_THING}",
            r"ping @?[\w/-]{1,40}",
            "merge (?:and|then) close",
        ),
        "That stays with people: I never merge, close, label or delete anything. `{ours} resolve` merges the base "
        "branch into a pull request's, and `{ours} review` reviews it.",
    ),
    (
        _any(
            r"(?:set |raise |increase |add )?(?:the )?budget(?: to| of)?[ :=]*\$?(\d{1,6}(?:\.\d{1,2})?) ?\$?"
            "(?: dollars| usd)?"
        ),
        "Did you mean `{ours} continue +{0}`, which adds {0} dollars to the session? Beside a request, `--budget {0}` "
        "limits its turn.",
    ),
    (
        _any(r"(?:the )?(?:budget|money|prices?|spent|spending|spend|usage|bill|tokens?|costs)\??"),
        "Did you mean `{ours} cost`?",
    ),
    (
        _any("version", r"what version(?: are you| is this)?\??", "--version"),
        "Only the operator needs my version, and finds it with `forgehand --version`. `{ours} help` lists what I can "
        "do.",
    ),
    (
        _any(
            r"(?:hi|hello|hey|hola|hallo|salut|ciao|yo|good (?:morning|afternoon|evening|day)|ping|pong|test(?:ing)?)"
            r"(?: (?:there|all|claude|bot|forgehand|123))?",
            r"are you (?:there|alive|ok|awake|working)\??",
            r"(?:you|anyone|anybody) there\??",
            r"is this (?:on|thing on|working)\??",
        ),
        "I am here. Say what I should do, such as `{ours} fix this`; `{ours} help` lists the commands.",
    ),
    (
        _any(
            r"what (?:can|do) (?:you|i|this)(?: do| say| use)?\??",
            r"how (?:do|can) (?:i|you|this) (?:use (?:this|you|it)|work)\??",
            r"how does (?:this|it) work\??",
            r"(?:who|what) (?:are|is) (?:you|this)\??",
            r"(?:list |the )?commands\??",
            r"options|settings|config|menu|usage\?|man|info|about|manual|docs|documentation|\?+",
        ),
        "Did you mean `{ours} help`?",
    ),
    (
        _any(
            r"never ?mind|nvm|(?:forget|ignore) (?:it|that|this|me)|scratch that|not now|later|pause|hm+",
            r"wait(?: a (?:moment|minute|second|sec))?|hold on|one (?:moment|sec|second|minute)",
        ),
        "Nothing was started. `{ours} stop` ends what runs or waits on this thread.",
    ),
    (
        _any(
            r"(?:show (?:me )?)?(?:the )?(?:logs?|output|link|url|session|page|progress|eta)",
            r"how long\??|(?:done|ready|finished)\?",
        ),
        "Did you mean `{ours} status`? The live comment shows the progress, and links to the session if others can "
        "reach it.",
    ),
    (
        _any(r"restart|reboot|reset|clear|new|log ?in|log ?out|sign in|install|upgrade|compact|exit|resume\?"),
        "I have no such command. `{ours} help` lists what I can do; for work, say a few words more.",
    ),
)


def is_thanks(said: str) -> bool:
    """Decide whether it only thanks, praises or apologises."""
    if len(said) > LONGEST:
        return False
    words = _bare(said)
    if _CHEERS.fullmatch(said.strip()):
        return bool(words) or any(unicodedata.category(sign) in ("So", "Sk") for sign in said)
    clauses = [one for one in _CLAUSES.split(_FILLERS.sub("", words)) if one]
    return all(_THANKS.fullmatch(_bare(one)) for one in clauses) if clauses else False


def hint(said: str, ours: str) -> str | None:
    """Say what to write instead of words that no agent can carry out; None if they may be work."""
    if len(said) > LONGEST:
        return None
    words = _bare(said)
    if not words:
        return f"What should I do? `{ours} fix this`, for example; `{ours} help` lists the commands." if said else None
    for pattern, sentence in _HINTS:
        found = pattern.fullmatch(words) or pattern.fullmatch(_FILLERS.sub("", words))
        if found:
            return sentence.format(*filter(None, found.groups()), ours=ours)
    return None


def _bare(said: str) -> str:
    words = " ".join(unicodedata.normalize("NFC", said).lower().split())
    return "" if not any(sign.isalnum() or sign == "?" for sign in words) else _EDGES.sub("", words)
