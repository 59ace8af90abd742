"""The keys of a repository's config: how to read and check each value, and its meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from bot.agent.findings import Severity
from bot.commands.options import EFFORTS, take
from bot.errors import CommandError
from bot.repo_config import mcp, notify
from bot.repo_config.wrong import Wrong
from bot.text.markup import shown

NAMED = "must not name {}: a session never reaches it directly"
UNTIL_VERIFIED = "until_verified"
MAX_LINE = 2_000
MAX_LABEL = 50
MAX_LIST = 100
MAX_COUNT = 1000
MAX_INSTRUCTIONS = 20_000
_HOST = re.compile(r"(?:\*\.)?(?!-)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+\Z")
_SERVICE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z")
_NEVER = ("github.com", "githubusercontent.com", "api.anthropic.com", "e2b.app", "e2b.dev")
"""GitHub, the model's provider and E2B's cloud: only Forgehand itself talks to them."""
_NAME = re.compile(r"[A-Za-z0-9][\w./@:\[\]-]{0,99}\Z")
_TOOL = re.compile(r"[A-Za-z][\w-]{0,99}(?:\([^\n]{1,300}\))?\Z")
_BRANCH = re.compile(r"[\w.@{][\w./@{}+-]{0,150}\Z")


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Wrong("must be text")
    if len(value) > MAX_LINE or not all(letter.isprintable() or letter in "\n\t" for letter in value):
        raise Wrong(f"must be plain text of at most {MAX_LINE} characters")
    return value.strip()


def _name(value: Any) -> str:
    text = _text(value)
    if not _NAME.match(text):
        raise Wrong("must be a name of letters, digits and `. / @ : - _`")
    return text


def _yes_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong("must be true or false")
    return value


def _draft(value: Any) -> Any:
    if not isinstance(value, bool) and value != UNTIL_VERIFIED:
        raise Wrong(f"must be true or false, or {UNTIL_VERIFIED}")
    return value


def _labels(value: Any) -> tuple[str, ...]:
    found = _texts(value)
    if any(len(text) > MAX_LABEL or "\n" in text for text in found):
        raise Wrong(f"must be a list of names of labels, of at most {MAX_LABEL} characters each")
    return found


def _label(default: str) -> Callable[[Any], str | None]:
    def read(value: Any) -> str | None:
        if isinstance(value, bool):
            return default if value else None
        text = _text(value)
        if len(text) > MAX_LABEL or "\n" in text:
            raise Wrong("must be the name of a label, or true or false")
        return text

    return read


def _texts(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise Wrong("must be a list of texts")
    if len(items) > MAX_LIST:
        raise Wrong(f"must be a list of at most {MAX_LIST}")
    try:
        return tuple(_text(item) for item in items)
    except Wrong:
        raise Wrong(f"must be a list of texts of at most {MAX_LINE} characters") from None


def _host(text: str) -> str:
    host = text.lower().rstrip(".")
    if not _HOST.match(host) or host.rsplit(".", 1)[1].isdigit():
        raise Wrong("must be a list of host names such as `files.example.com` or `*.example.com`")
    if never := covered(host, _NEVER):
        raise Wrong(NAMED.format(never))
    return host


def _service(text: str) -> str:
    if not _SERVICE.fullmatch(text):
        raise Wrong("must be a list of names in lower case, as the account's settings show them")
    return text


def covered(host: str, never: Iterable[str]) -> str | None:
    """Return the first host of `never` that `host` would open: itself, one above it, or one that its `*.` includes."""
    bare = host.removeprefix("*.")
    for one in never:
        if bare == one or bare.endswith(f".{one}") or (host.startswith("*.") and one.endswith(f".{bare}")):
            return one
    return None


def may_be_opened(host: str) -> bool:
    try:
        return not host.startswith("*") and _host(host) == host
    except Wrong:
        return False


def _each(read: Callable[[str], str]) -> Callable[[Any], tuple[str, ...]]:
    return lambda value: tuple(read(text) for text in _texts(value))


def _dollars(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 100_000:
        raise Wrong("must be an amount in US dollars above zero")
    return float(value)


def _whole(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_COUNT:
            raise Wrong(f"must be a whole number from {least} to {MAX_COUNT}")
        return int(value)

    return read


def _option(name: str, value: Any) -> Any:
    """Accept the same words as after the option of a command."""
    try:
        return getattr(take(f"--{name}={value}")[1], {"timeout": "timeout_seconds"}.get(name, name))
    except CommandError:
        return None


def _timeout(value: Any) -> float:
    fits = isinstance(value, str | int) and not isinstance(value, bool)
    seconds = _option("timeout", value) if fits and len(str(value).split()) == 1 else None
    if seconds is None:
        raise Wrong("must be a time of at most a day, such as `30m` or `1h30m`")
    return float(seconds)


def _base(value: Any) -> str:
    found = _option("base", _text(value)) if len(_text(value).split()) == 1 else None
    if found is None:
        raise Wrong("must be the name of a branch")
    return str(found)


def _branch(value: Any) -> str:
    text = _text(value)
    bare = text.replace("{thread}", "1").replace("{session}", "a")
    if "{session}" not in text or not _BRANCH.match(text) or set(bare) & set("{}") or _option("base", bare) != bare:
        raise Wrong("must be a branch's name that holds `{session}`, such as `forgehand/{thread}-{session}`")
    return text


def _instructions(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_INSTRUCTIONS:
        raise Wrong(f"must be text of at most {MAX_INSTRUCTIONS} characters")
    return value.strip()


def _tool(text: str) -> str:
    if not _TOOL.match(text):
        raise Wrong("must be a list of tools such as `WebFetch` or `Bash(npm test *)`")
    return text


Json = dict[str, Any]
_STRING: Json = {"type": "string", "minLength": 1}
_LIST: Json = {"anyOf": [_STRING, {"type": "array", "items": _STRING, "maxItems": MAX_LIST}]}
_COUNT: Json = {"type": "integer", "minimum": 0, "maximum": MAX_COUNT}
_DOLLARS: Json = {"type": "number", "exclusiveMinimum": 0}
_INSTRUCTIONS: Json = {"type": "string", "maxLength": MAX_INSTRUCTIONS}
_BY_PATH: Json = {"type": "object", "additionalProperties": _LIST, "maxProperties": MAX_LIST}
_BOOLEAN: Json = {"type": "boolean"}
_LABEL: Json = {"anyOf": [_BOOLEAN, {"type": "string", "minLength": 1, "maxLength": 50}]}


def _severity(value: Any) -> Severity:
    if value not in list(Severity):
        raise Wrong(f"must be one of {', '.join(Severity)}")
    return Severity(value)


@dataclass(frozen=True)
class ForPaths:
    """Words about the files that a pattern of paths matches."""

    pattern: str
    words: str

    def __str__(self) -> str:
        return f"{self.pattern}: {self.words}"


def _for_paths(value: Any) -> tuple[ForPaths, ...]:
    """Read a mapping of patterns to one text or several."""
    if not isinstance(value, dict) or not all(isinstance(pattern, str) for pattern in value):
        raise Wrong("must hold lines of a path and words, such as `src/**: words`")
    found = [ForPaths(_text(pattern), words) for pattern, texts in value.items() for words in _texts(texts)]
    if len(found) > MAX_LIST:
        raise Wrong(f"must hold at most {MAX_LIST} texts")
    return tuple(found)


@dataclass(frozen=True)
class PathRules:
    """What the config says about the files that a pattern of paths matches."""

    pattern: str
    setup: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    budget: float | None = None
    instructions: str = ""
    review: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.pattern}: {', '.join(name for name in PATH_KEYS if getattr(self, name))}"

    def over(self, below: PathRules) -> PathRules:
        """Lay it over the rules of another config for the same pattern: its own values count, but the lower budget."""
        values = {name: getattr(self, name) or getattr(below, name) for name in PATH_KEYS}
        budgets = [one.budget for one in (self, below) if one.budget is not None]
        return PathRules(self.pattern, **values | {"budget": min(budgets, default=None)})

    def silent(self) -> PathRules | None:
        """Return it without its words for agents; None if it has nothing else."""
        found = replace(self, instructions="", review=())
        return found if any(getattr(found, name) for name in PATH_KEYS) else None


@dataclass(frozen=True)
class Key:
    read: Callable[[Any], Any]
    schema: Json
    what: str


def _switch(what: str) -> Key:
    return Key(_yes_no, _BOOLEAN, what)


def _choice(*allowed: str, what: str) -> Key:
    def read(value: Any) -> str:
        if value not in allowed:
            raise Wrong(f"must be one of {', '.join(allowed)}")
        return str(value)

    return Key(read, {"enum": list(allowed)}, what)


PATH_KEYS: dict[str, Key] = {
    "setup": Key(_texts, _LIST, "commands that prepare the sandbox, after the root's"),
    "checks": Key(_texts, _LIST, "commands that verify a commit that changes such a file, after the root's"),
    "budget": Key(_dollars, _DOLLARS, "dollars a session starts with; it can only lower the root's"),
    "instructions": Key(_instructions, _INSTRUCTIONS, "instructions for work on such files"),
    "review": Key(_texts, _LIST, "instructions for reviews of such files"),
}


def _by_path(value: Any) -> tuple[PathRules, ...]:
    if not isinstance(value, dict) or not all(isinstance(pattern, str) for pattern in value):
        raise Wrong("must hold lines of a path and its keys, such as `services/pay/**: {checks: make test}`")
    if len(value) > MAX_LIST:
        raise Wrong(f"must hold at most {MAX_LIST} paths")
    return tuple(_path_rules(pattern, keys) for pattern, keys in value.items())


def _path_rules(pattern: str, keys: Any) -> PathRules:
    named, known = shown(pattern, 60), ", ".join(PATH_KEYS)
    if not (parts := _text(pattern).strip("/").split("/"))[0] or ".." in parts or "\n" in pattern:
        raise Wrong(f"holds {named}, which is no path from the root of the repository")
    if not isinstance(keys, dict) or not keys:
        raise Wrong(f"must hold keys for {named}: {known}")
    if unknown := [name for name in keys if name not in PATH_KEYS]:
        raise Wrong(f"has no key {shown(str(unknown[0]), 60)} for {named}; known there: {known}")
    found: dict[str, Any] = {}
    for name, value in keys.items():
        try:
            found[name] = PATH_KEYS[name].read(value)
        except Wrong as wrong:
            raise Wrong(f"for {named}: `{name}` {wrong}") from None
    return PathRules(_text(pattern), **found)


KEYS: dict[str, Key] = {
    "model": Key(_name, _STRING, "the model, unless a command names another"),
    "fallback": Key(
        _name, _STRING, "the model that goes on when the first is overloaded or not available, at its own price"
    ),
    "budget": Key(_dollars, _DOLLARS, "dollars a session starts with; people can add more with `continue +3`"),
    "ask_above": Key(_dollars, _DOLLARS, "dollars; a turn whose estimate reaches beyond them waits for someone's yes"),
    "timeout": Key(_timeout, {"type": ["string", "integer"]}, "how long a turn may work, such as 30m"),
    "effort": _choice(
        *EFFORTS, what="how hard the model thinks, unless a command says so; more effort costs more and takes longer"
    ),
    "pace": _switch("the model learns how many tokens its money buys, and paces its work by that"),
    "permission": _choice(
        *("auto", "ask", "plan"),
        what="auto: the agent may do anything in its sandbox; ask: it asks in the thread before it uses tools not in "
        "`tools.allowed`; plan: work starts with a plan that someone approves",
    ),
    "tools.allowed": Key(_each(_tool), _LIST, "tools the agent may use without asking when `permission` is ask"),
    "tools.denied": Key(_each(_tool), _LIST, "tools the agent never gets"),
    "subagents.most": Key(_whole(0), _COUNT, "how many sub-agents a turn may start, up to the operator's limit"),
    "subagents.at_once": Key(
        _whole(1), _COUNT | {"minimum": 1}, "how many sub-agents may work at once, up to the operator's limit"
    ),
    "triggers.label": Key(_label("claude"), _LABEL, "the label that starts work; true: `claude`"),
    "triggers.issue_opened": _switch("a new issue by someone with write access starts work"),
    "triggers.review_team": Key(_name, _STRING, "Forgehand reviews when someone requests a review from this team"),
    "triggers.review_user": Key(_name, _STRING, "Forgehand reviews when someone requests a review from this user"),
    "triggers.review_label": Key(
        _label("claude-review"), _LABEL, "the label that asks for a review; true: `claude-review`"
    ),
    "triggers.review_opened": _switch("Forgehand reviews a pull request when it is opened or marked ready"),
    "triggers.review_pushed": _switch(
        "Forgehand reviews a reviewed pull request again when someone with write access pushes to it"
    ),
    "triggers.review_fixes": _switch(
        "Forgehand reviews a pull request again after its own push that was to fix findings"
    ),
    "triggers.ci_fix": _switch("Forgehand fixes checks that fail because of its own pull requests"),
    "review.approve": _switch("a review may approve"),
    "review.request_changes": _switch("a review may request changes, which blocks the merge if reviews are required"),
    "review.threshold": Key(
        _severity, {"enum": list(Severity)}, "the mildest findings that a review posts; it only counts milder ones"
    ),
    "review.ignore": Key(_texts, _LIST, "paths that a review leaves out"),
    "review.dismissed": Key(
        _for_paths, _BY_PATH, "what is no bug, by path: a review does not report it (beside `not a bug`)"
    ),
    "base": Key(_base, _STRING, "the branch that work starts from and goes to"),
    "branch": Key(_branch, _STRING, "the name of our branches; must contain `{session}` and may contain `{thread}`"),
    "draft": Key(
        _draft,
        {"enum": [True, False, UNTIL_VERIFIED]},
        "open pull requests as drafts; until_verified: only if not all `checks` passed",
    ),
    "pull.closes": _switch("merging a pull request closes its issue"),
    "pull.labels": Key(_labels, _LIST, "labels for our pull requests, if the repository has them"),
    "pull.request_review": _switch("request a review from the person who asked for the work"),
    "pull.template": _switch("fill in the repository's pull request template"),
    "setup": Key(_texts, _LIST, "commands that prepare the sandbox before the agent starts"),
    "checks": Key(_texts, _LIST, "commands that verify the work"),
    "egress": Key(_each(_host), _LIST, "hosts a session may reach"),
    "mcp": Key(
        mcp.read,
        mcp.SCHEMA,
        "MCP servers of the account, each with the tools that are open here; or a `command` that runs in the sandbox",
    ),
    "submodules": _switch("submodules come into the sandbox, if they are repositories of the same installation"),
    "lfs": _switch("files of Git LFS come into the sandbox with their contents, and go back to it when they change"),
    "registries": Key(_each(_service), _LIST, "the account's package registries that setup, agent and checks may read"),
    "notify": Key(
        notify.read, notify.SCHEMA, "which of the account's receivers hear that turns end, ask or run out of money"
    ),
    "push.blocked": Key(_texts, _LIST, "paths that no push may change"),
    "push.sensitive": Key(_texts, _LIST, "paths whose changes the pull request points out"),
    "paths": Key(
        _by_path,
        {
            "type": "object",
            "maxProperties": MAX_LIST,
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "minProperties": 1,
                "properties": {name: {**key.schema, "description": key.what} for name, key in PATH_KEYS.items()},
            },
        },
        f"more for work on some paths, such as a folder of a monorepo: {', '.join(PATH_KEYS)}",
    ),
    "read_outsiders": _switch("the agent also reads comments by people without write access, as data"),
    "dashboard": _switch(
        "one issue shows what runs and waits here; to close it switches it off, to reopen it switches it on"
    ),
    "commits": _choice("git", "verified", what="git: the host makes commits; verified: GitHub makes and signs them"),
    "template": Key(_name, _STRING, "the template for E2B's sandboxes"),
    "instructions": Key(_instructions, _INSTRUCTIONS, "instructions the agent gets in every turn"),
}
"""Every key by its full name, for reading, explaining and the published schema."""
