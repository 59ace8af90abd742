"""What the API takes and gives. These types decode the requests, and the OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MOST_WORDS = 20_000
Words = Annotated[str, Meta(max_length=MOST_WORDS)]
RepositoryName = Annotated[str, Meta(max_length=200, pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")]
ThreadNumber = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Dollars = Annotated[float, Meta(ge=0.01, le=100_000)]
ModelName = Annotated[str, Meta(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$")]
BranchName = Annotated[str, Meta(max_length=200, pattern=r"^[A-Za-z0-9_][A-Za-z0-9/_.#+-]*$")]
ApprovalName = Annotated[
    str, Meta(max_length=40, pattern=r"^([a-z0-9]{8}-[0-9]{1,5}(-[0-9]{1,5}|-fork)?|[0-9a-f]{12,40})$")
]
Kind = Literal["run", "ask", "plan", "review"]
Code = Literal[
    "bad_request", "no_token", "forbidden", "refused", "not_found", "method_not_allowed", "too_slow", "conflict",
    "too_large", "invalid", "too_many_requests", "broken", "unavailable",
]  # fmt: skip


class SessionStart(Struct, forbid_unknown_fields=True):
    """Start a turn on an issue or pull request. A thread has one session; a further start is its next turn."""

    repository: RepositoryName
    number: ThreadNumber
    prompt: Words = ""
    """What to do; without words, the thread itself says it."""
    kind: Kind = "run"
    model: ModelName | None = None
    base: BranchName | None = None
    budget_usd: Dollars | None = None
    """For this turn. The token's own budget may leave less."""


class SessionWords(Struct, forbid_unknown_fields=True):
    """Words for the agent at work; if none is at work, they start the next turn."""

    text: Annotated[str, Meta(min_length=1, max_length=MOST_WORDS, pattern=r"\S")]
    kind: Literal["run", "ask"] = "run"
    """`ask` asks beside the work, which goes on without a change."""


class ApprovalWords(Struct, forbid_unknown_fields=True):
    """A yes or a no to exactly what an approval showed."""

    approval: ApprovalName
    answer: Literal["approve", "deny"]
    scope: Literal["once", "session"] = "once"
    text: Words = ""
    """An edited plan, or words for the agent."""


class Accepted(Struct):
    """What became of a request."""

    state: Literal["done", "waiting"]
    """`waiting`: it is stored and will be handled. Send it again with the same key to learn what became of it."""
    session: str | None = None
    turn: int | None = None
    said: str = ""


class TurnAnswer(Struct):
    n: int
    kind: str
    state: Literal["queued", "running", "done"]
    step: str
    outcome: str | None
    detail: str
    prompt: str
    requester: str
    token: str
    """The name of the API's token that asked for it; empty: a person did on GitHub."""
    created_at: float
    started_at: float | None
    finished_at: float | None
    commit: str | None


class ApprovalAsked(Struct):
    """An approval that waits for an answer."""

    id: str
    kind: str
    turn: int
    asked_at: float
    asks: str
    """What people were shown."""


class SessionAnswer(Struct):
    id: str
    repository: str
    number: int
    thread_url: str
    page_url: str | None
    branch: str | None
    pull_number: int | None
    pull_url: str | None
    state: Literal["queued", "running", "done"]
    outcome: str | None
    spent_usd: float
    turns: list[TurnAnswer]
    approvals: list[ApprovalAsked]


class EntryAnswer(Struct):
    """An entry of the transcript. A later event with the same id replaces it: a call gets its result."""

    id: str
    turn: int
    at: float
    kind: str
    title: str
    about: str
    tool: str
    ok: bool | None
    text: str
    result: str
    diff: list[tuple[str, str]]


class Problem(Struct):
    code: Code
    message: str


class ErrorAnswer(Struct):
    error: Problem
