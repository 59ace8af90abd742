"""The levers without a turn: what the stream says of models and context, and what money buys."""

from __future__ import annotations

import json

import pytest

from bot.live import sections
from bot.live.state import LiveState
from bot.models import SessionId
from bot.sessions.money.budget import pace
from bot.settings import ModelSettings
from bot.store.conversation import ANSWER_KIND, STREAM, StoredEvent
from bot.web.pages.conversation import Conversation
from bot.words import on_models
from sandbox.agents.claude import Claude
from sandbox.agents.events import (
    AgentEvent,
    AgentNoted,
    ContextCompacted,
    ModelAnswered,
    ModelSwitched,
    SideAnswered,
)
from tests.unit.test_claude_stream import STREAMS

MODEL = ModelSettings("opus", "https://api.example.test", None, None)


def line(kind: str, **more: object) -> str:
    return json.dumps({"type": kind, **more})


def answer(model: str, tokens: int, **more: object) -> str:
    usage = {"input_tokens": 4, "cache_read_input_tokens": tokens - 4, "output_tokens": 1}
    text = [{"type": "text", "text": "So."}]
    return line("assistant", message={"id": f"m{tokens}", "model": model, "content": text, "usage": usage}, **more)


def fed(*lines: str) -> LiveState:
    decoder, state = Claude().decoder(), LiveState()
    for one in lines:
        for event in decoder.feed(one):
            state.apply(event, 1.0)
    return state


def test_the_meter_follows_a_recorded_compaction() -> None:
    decoder = Claude().decoder()
    lines = (STREAMS / "compact.jsonl").read_text(encoding="utf-8").splitlines()
    events = [event for one in lines for event in decoder.feed(one)]
    kinds = [one for one in events if isinstance(one, ModelAnswered | ContextCompacted)]
    assert [one.tokens if isinstance(one, ModelAnswered) else one for one in kinds] == [
        *(11_699, 985_391, ContextCompacted(985_454, 2_613), 11_924, 12_128)
    ]
    assert {one.window for one in kinds if isinstance(one, ModelAnswered)} == {1_000_000}


def test_a_switch_counts_once_the_fallback_has_answered() -> None:
    begun = line("system", subtype="init", session_id="s", model="claude-sonnet-4-5[1m]")
    switch = line(
        "system",
        subtype="model_fallback",
        trigger="overloaded",
        original_model="claude-sonnet-4-5[1m]",
        fallback_model="claude-haiku-4-5",
    )
    first = answer("claude-sonnet-4-5-20250929", 100_000)
    assert fed(begun, first, switch).switch is None, "a refused fallback says nothing"
    state = fed(begun, first, answer("claude-sonnet-4-5", 9, parent_tool_use_id="t"))
    assert state.context == ModelAnswered("claude-sonnet-4-5[1m]", 100_000, 1_000_000)
    state = fed(begun, first, switch, answer("claude-haiku-4-5-20251001", 50_000))
    assert state.switch == ModelSwitched("claude-sonnet-4-5[1m]", "claude-haiku-4-5", "overloaded")
    assert state.context == ModelAnswered("claude-haiku-4-5", 50_000, 200_000)
    assert fed(begun, switch, answer("claude-haiku-4-5", 50_000), first).model == "claude-sonnet-4-5[1m]"


def test_the_page_shows_switches_compactions_and_answers() -> None:
    talk = Conversation(Claude().decoder)
    switch = line(
        "system", subtype="model_fallback", trigger="overloaded", original_model="a", fallback_model="claude-haiku-4-5"
    )
    compaction = line("system", subtype="compact_boundary", compact_metadata={"pre_tokens": 9000, "post_tokens": 10})
    told = line(ANSWER_KIND, asked_by="alice", question='why "note"?', answer="Because.")
    for seq, (kind, row) in enumerate([(STREAM, switch), (STREAM, compaction), (ANSWER_KIND, told)], 1):
        talk.feed(StoredEvent(SessionId("s0000001"), seq, 1, kind, row, 1.0))
    assert [(one.kind, one.title, one.content and one.content.text) for one in talk.entries.values()] == [
        ("note", "", "a is overloaded, so claude-haiku-4-5 goes on."),
        ("note", "", on_models.compacted(9000, 10)),
        ("heard", "alice", 'why "note"?'),
        ("said", "", "Because."),
    ]


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ({"response": "So.", "synthetic": False}, SideAnswered("q", "So.", ok=True)),
        ({"response": "(API error: 529)", "synthetic": True}, SideAnswered("q", "(API error: 529)", ok=False)),
        ({"still_queued": []}, AgentNoted("control_response")),
        (7, AgentNoted("control_response")),
    ],
)
def test_what_a_side_question_comes_to(response: object, answer: AgentEvent) -> None:
    given = {"subtype": "success", "request_id": "q", "response": response}
    assert Claude().decoder().feed(line("control_response", response=given)) == [answer]
    failed = line("control_response", response={"subtype": "error", "request_id": "q", "error": "cancelled"})
    assert Claude().decoder().feed(failed) == [SideAnswered("q", "", ok=False)]


@pytest.mark.parametrize(
    ("usage", "model"),
    [(None, "claude-opus-5-5"), ({"input_tokens": -7}, "claude-opus-5-5"), ({"input_tokens": 10**12}, "x"), ({}, 7)],
)
def test_a_strange_usage_moves_nothing(usage: object, model: object) -> None:
    text = [{"type": "text", "text": "So."}]
    state = fed(line("assistant", message={"model": model, "content": text, "usage": usage}))
    assert (state.context, state.said) == (None, "So.")


@pytest.mark.parametrize(
    ("tokens", "window", "compactions", "words"),
    [
        (431_000, 1_000_000, 0, "context 43% of 1 M"),
        (86_000, 200_000, 1, "context 43% of 200 k, compacted once"),
        (250_000, 200_000, 2, "context 100% of 200 k, compacted 2 times"),
        (86_400, 0, 0, "context 86 k tokens"),
    ],
)
def test_the_meters_words(tokens: int, window: int, compactions: int, words: str) -> None:
    assert sections.fullness(ModelAnswered("m", tokens, window), compactions) == words


@pytest.mark.parametrize(
    ("usd", "models", "tokens"),
    [
        (5.0, ["opus"], 200_000),
        (5.0, ["claude-fable-5-2"], 100_000),
        (5.0, ["haiku"], 1_000_000),
        (5.0, ["haiku", "claude-fable-5-2"], 100_000),
        (0.40, ["opus"], 20_000),
        (0.39, ["opus"], None),
        (0.0, ["opus"], None),
        (5.0, ["opus", "claude-haiku-4-5"], None),
        (5.0, ["claude-sonnet-4-5[1m]"], None),
        (5.0, ["of-the-operator"], None),
    ],
)
def test_what_money_buys(usd: float, models: list[str], tokens: int | None) -> None:
    assert pace(MODEL, usd, models) == tokens
