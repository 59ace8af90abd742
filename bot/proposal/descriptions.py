"""Write commit messages and pull requests, also into the repository's own template."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bot.kinds import TRAITS
from bot.kinds.shape import AgentReading, P, Titled
from bot.models import TokenUsage, TurnKey
from bot.outbound import neutralise
from bot.proposal import titles, verification
from bot.proposal.titles import TitleSources
from bot.text.blocks import plain
from bot.text.markup import shown
from bot.text.scanner import BlockForm, margin, scan
from bot.text.visible import visible
from bot.words import on_money

PLACES = tuple(
    f"{folder}pull_request_template{ending}" for folder in (".github/", "", "docs/") for ending in (".md", ".txt", "")
)
"""The places where GitHub looks for a template, whatever the case of the letters."""
MAX_TEMPLATE = 20_000
MAX_SUBJECT = 72
MAX_TITLE = 120
MAX_MESSAGE = 4_000
MAX_SUMMARY = 1_500
MAX_ASKED = 2_000
MAX_DONE = 12_000
MAX_FILES = 50
MOST_HEARD, MAX_HEARD = 10, 400
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
"""Matches a line that waits for the number of an issue, such as `Fixes # (issue)`."""
_NOT_OURS = re.compile(r"\btype\b|checklist|screenshot|breaking|before (?:you|submit)|risk|deploy|todo", re.IGNORECASE)


@dataclass
class _Section:
    heading: str = ""
    lines: list[str] = field(default_factory=list)

    def text(self, ours: str) -> str:
        """Put our words first; the template's own lines, which are its prompts and boxes, stay below."""
        rest = re.sub(r"\n{3,}", "\n\n", "\n".join(self.lines)).strip("\n")
        return "\n\n".join(part for part in (self.heading.strip(), ours, rest) if part.strip())


@dataclass(frozen=True)
class Filled:
    text: str
    taken: frozenset[str]


def find_template(paths: tuple[str, ...]) -> str | None:
    known = {path.lower(): path for path in reversed(paths)}
    return next((known[place] for place in PLACES if place in known), None)


def fill_template(template: str, ours: dict[str, str]) -> Filled:
    """`ours`: `done`, `link` and `verified`, as markdown that cannot act."""
    text = template[:MAX_TEMPLATE].replace("\r\n", "\n").removeprefix("\ufeff")
    # A comment is read only by the template's authors: in our hands it would become text.
    sections = _sections(_COMMENT.sub("", _FRONT_MATTER.sub("", text)))
    taken: dict[str, _Section] = {}
    free = [section for section in sections if not _NOT_OURS.search(section.heading)]
    for what, asks in _ASKS.items():
        if (section := next((one for one in free if asks.search(one.heading)), None)) is not None:
            taken[what] = section
            free = [one for one in free if one is not section]
    said = {id(section): ours[what] for what, section in taken.items()}
    links = _link(sections, None if "link" in taken else ours["link"])
    text = "\n\n".join(filter(None, (section.text(said.get(id(section), "")) for section in sections)))
    opened = len(re.findall(r"<details\b", text, re.IGNORECASE)) - len(re.findall(r"</details>", text, re.IGNORECASE))
    return Filled(text + "\n\n</details>" * max(0, opened), frozenset(taken) | links)  # nothing of ours hides in a fold


def _link(sections: Sequence[_Section], link: str | None) -> frozenset[str]:
    """Put our link on one line that waits for an issue's number, and empty the others."""
    given = False
    for section in sections:
        found = [at for at, line in enumerate(section.lines) if _TEMPLATE_REFERENCE.fullmatch(line)]
        for at in found:
            section.lines[at] = link if link is not None and not given else ""
            given = True
    return frozenset({"link"} if given and link is not None else ())


def _sections(text: str) -> list[_Section]:
    leaves = scan(text)
    titles = (leaf for leaf in leaves if leaf.form is BlockForm.HEADING and leaf.mark[0] == "#")
    headings = {leaf.first for leaf in titles if leaf.within is None}
    found = [_Section()]
    for at, line in enumerate(text.split("\n")):
        if at in headings:
            found.append(_Section(line))
        else:
            found[-1].lines.append(line)
    if leaves and leaves[-1].runs_on:  # else what follows the template would be code
        found[-1].lines.append(margin(leaves[-1].within) + leaves[-1].mark)
    return found


class AskedTurn(Protocol):
    """The part of a turn that these texts need."""

    @property
    def key(self) -> TurnKey: ...
    @property
    def kind(self) -> str: ...
    @property
    def prompt(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def requester(self) -> str: ...
    @property
    def requester_id(self) -> int: ...
    @property
    def model(self) -> str: ...
    @property
    def agent_result(self) -> str | None: ...
    @property
    def mending(self) -> int | None: ...
    def part(self, of: type[P], /) -> P: ...


class Spent(Protocol):
    @property
    def usd(self) -> float: ...
    @property
    def unconfirmed_usd(self) -> float: ...
    @property
    def usage(self) -> TokenUsage: ...


Inert = Callable[[str], str]
FIXED = "Fix the failing checks"
_DISCUSSIONS = re.compile(r"^D\d{1,3}(?: \((?:open|done)\))?:.*\Z", re.MULTILINE | re.DOTALL)
"""Answers to discussions of the diff are posted there."""
_SKIP = re.compile(r"\[\s*(?:skip\s+(?:ci|actions)|(?:ci|no|actions)\s+skip|no\s+ci)\s*\]", re.IGNORECASE)
_SKIP_TRAILER = re.compile(r"^([^\S\n]*)skip-checks(\s*):", re.IGNORECASE | re.MULTILINE)
_TRAILER = re.compile(r"^([^\S\n]*)([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+)[ \t]*:", re.MULTILINE)
_REFERENCE = re.compile(r"(?<![\w&])(?:[\w.-]{1,100}/[\w.-]{1,100})?#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
_ISSUE_URL = re.compile(r"https?://[^\s/]+/([\w.-]+/[\w.-]+)/(?:issues|pull|discussions)/(\d+)", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w/.+-])@(?=[A-Za-z0-9])")
_SLASH_COMMAND = re.compile(r"^([^\S\n]*)/(?=[a-z])", re.MULTILINE)


def title(turn: AskedTurn, limit: int = MAX_SUBJECT) -> str:
    """Write the subject of the commit, or the title of the pull request."""
    read = turn.part(AgentReading)
    given, words, fix = turn.part(Titled).title, turn.agent_result or "", TRAITS[turn.kind].mends_checks
    sources = TitleSources(given, words, "" if fix else read.thread_title, turn.prompt, read.follows)
    return calm_title(sources, limit) or (FIXED if fix else f"Changes for #{turn.number}")


def calm_title(sources: TitleSources, limit: int = MAX_SUBJECT) -> str:
    """Choose a title in which nothing closes, mentions or skips; empty if nothing says what the change is."""
    return _cut(_calm(titles.title(sources, limit) or ""), limit)


def commit_message(turn: AskedTurn, *, noreply_host: str) -> str:
    """Write subject, summary, request and trailers; nothing in it closes, mentions, skips or signs for anybody."""
    said = _DISCUSSIONS.sub("", visible((turn.agent_result or "")[:MAX_DONE]))
    done = _cut(_calm(titles.unlinked(said)).strip(), MAX_SUMMARY)
    asked = _cut(_calm(visible(turn.prompt)).strip(), MAX_MESSAGE)
    origin = f"For #{turn.number}. Asked for in these words:\n\n{asked}" if asked else f"For #{turn.number}."
    return "\n\n".join(filter(None, (title(turn), done, origin, _trailers(turn, noreply_host))))


def merge_message(turn: AskedTurn, base: str, conflicts: Sequence[str], *, noreply_host: str) -> str:
    """Describe a merge of the base branch; it names the files that git could not merge by itself."""
    head = _cut(f"Merge {_calm(base)} into the work on number {turn.number}", MAX_SUBJECT)
    rows = "".join(f"\n- {_calm(path)}" for path in conflicts[:MAX_FILES])
    solved = _cut(f"Conflicts, solved by the agent:\n{rows}", MAX_MESSAGE) if conflicts else ""
    return "\n\n".join(filter(None, (head, solved, _trailers(turn, noreply_host))))


def _trailers(turn: AskedTurn, noreply_host: str) -> str:
    person = re.sub(r"[^A-Za-z0-9_-]", "", turn.requester)
    return (
        f"Forgehand-Session: {turn.key.session}, turn {turn.key.n}\n"
        f"Co-authored-by: {person} <{turn.requester_id}+{person}@{noreply_host}>"
    )


def undo_message(turn: AskedTurn, undone: TurnKey, sha: str) -> str:
    person = re.sub(r"[^A-Za-z0-9_-]", "", turn.requester)
    return (
        f"Take back what turn {undone.n} did\n\nThis reverts commit {sha}, for {person}.\n\n"
        f"Forgehand-Session: {turn.key.session}, turn {turn.key.n}"
    )


@dataclass(frozen=True)
class Extras:
    report: Sequence[str] = ()
    """Notable changes, as markdown that cannot act."""
    template: str | None = None
    closes: bool = False
    command: str = "/claude"
    declared: bool = False
    """The repository's config names checks."""
    comment_url: str = ""
    """The live comment."""
    session_url: str = ""
    """The session's page; empty if others cannot reach our pages."""
    trial: tuple[str, str, str] | None = None
    """A check that the agent saw fail first and pass in the end: the command, and the places of both on the page."""
    heard: Sequence[tuple[str, str]] = ()
    """What people said while it worked, each with its author."""
    models: Sequence[str] = ()
    """The models that worked, if a fallback took part."""


def pull_body(  # noqa: PLR0913 - each part of the body, by name
    turn: AskedTurn,
    *,
    number: int,
    files: Sequence[dict[str, Any]],
    verified: Sequence[dict[str, Any]],
    seconds: float,
    cost: Spent,
    extras: Extras | None = None,
    inert: Inert = plain,
    quoted: Inert = neutralise.set_apart,
    block: Inert = plain,
) -> str:
    """Write what was asked, done and verified, and what it took. `inert` makes texts of others harmless markdown,
    `quoted` also sets them apart, `block` makes them code that they cannot leave."""
    # Cut first: making it inert also closes what the cut leaves open, so that what follows stays outside of it.
    extras = extras or Extras()
    asked = quoted(_cut(visible(turn.prompt).strip() or "(what the thread asks for)", MAX_ASKED))
    done = inert(_cut((turn.agent_result or "").strip(), MAX_DONE)) or "The agent left no summary."
    ours = {
        "link": f"{'Closes' if extras.closes else 'For'} #{number}",
        "done": done,
        "verified": verification.words(verified, block, mended=turn.mending is not None)
        if verified
        else verification.without_checks(extras.command, declared=extras.declared),
    }
    heading = verification.heading(verified)
    # A heading of the template's does not say whose words these are.
    signed = {"done": f"**The agent says:**\n\n{done}", "verified": f"**{heading}:** {ours['verified']}"}
    filled = fill_template(extras.template or "", ours | signed)
    left = {name: text for name, text in ours.items() if name not in filled.taken}
    parts = (
        _links(left.get("link", ""), extras),
        "" if "done" in left else filled.text,
        f"### Asked by {shown(turn.requester, 60)}\n\n{asked}",
        _heard(extras.heard, quoted),
        f"### Done, as the agent says\n\n{done}" if "done" in left else "",
        _trial(extras),
        filled.text if "done" in left else "",
        "### Look closely at\n\n" + "\n".join(f"- {line}" for line in extras.report) if extras.report else "",
        _files(files),
        f"### {heading}\n\n{left['verified']}" if "verified" in left else "",
        _footer(turn, seconds, cost, extras.models or [turn.model]),
    )
    return "\n\n".join(filter(None, parts))


def _files(files: Sequence[dict[str, Any]]) -> str:
    if not files:
        return ""
    rows = []
    for file in files[:MAX_FILES]:
        delta = "(binary)" if file.get("added") is None else f"+{file['added']} −{file['removed']}"
        rows.append(f"- {shown(str(file['path']), 200)} {delta}")
    if len(files) > MAX_FILES:
        rows.append(f"- and {len(files) - MAX_FILES} more")
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    return f"<details><summary>{count} changed</summary>\n\n" + "\n".join(rows) + "\n\n</details>"


def _links(link: str, extras: Extras) -> str:
    comment = f"[live comment]({extras.comment_url})" if extras.comment_url else ""
    session = f"[session]({extras.session_url})" if extras.session_url else ""
    return " · ".join(filter(None, (link, comment, session)))


def _heard(heard: Sequence[tuple[str, str]], quoted: Inert) -> str:
    rows = [f"While it worked, {shown(who, 60)} said:\n\n{quoted(_cut(said, MAX_HEARD))}" for who, said in heard]
    if len(rows) > MOST_HEARD:
        rows = [*rows[:MOST_HEARD], f"And {len(rows) - MOST_HEARD} more."]
    return "\n\n".join(rows)


def _trial(extras: Extras) -> str:
    """Lead to the calls in which the agent saw a check fail, and pass later."""
    if extras.trial is None:
        return ""
    command, *places = extras.trial
    failed, passed = "failed", "passed"
    if extras.session_url:
        failed, passed = (
            f"[{word}]({extras.session_url}?at={place}#{place})"
            for word, place in zip((failed, passed), places, strict=True)
        )
    return f"In the agent's sandbox, {shown(command, 200)} {failed} at first and {passed} in the end."


def _footer(turn: AskedTurn, seconds: float, cost: Spent, models: Sequence[str]) -> str:
    usage = cost.usage
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    minutes, rest = divmod(max(0, int(seconds)), 60)
    took = f"{minutes} min {rest} s" if minutes else f"{rest} s"
    spent = on_money.spent(cost.usd, cost.unconfirmed_usd)
    return (
        f"<sub>{took} · {spent} · {tokens:,} tokens · {' and '.join(shown(model, 60) for model in models)} · "
        f"session {turn.key.session}, turn {turn.key.n}</sub>"
    )


def _calm(text: str) -> str:
    """Take the order out of words that GitHub and CI read as one in a commit message."""
    text = plain(text).replace("\r", "")
    text = _SKIP.sub(lambda match: match.group().strip("[]").strip(), text)
    text = _SKIP_TRAILER.sub(r"\1skip checks\2 -", text)
    text = _ISSUE_URL.sub(r"number \2 of \1", text)
    text = _REFERENCE.sub("number ", text)
    text = _TRAILER.sub(r"\1\2 -", text)
    return _SLASH_COMMAND.sub(r"\1", _MENTION.sub("", text))


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    short = text[: limit - 1]
    at = max(short.rfind(" "), short.rfind("\n"))
    return (short[:at] if at > limit // 2 else short).rstrip() + "…"
