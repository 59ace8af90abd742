"""The alert rules and the dashboard ask only for figures that Forgehand shows, by labels that these have."""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from bot.simulation.anthropic import Say, Script
from bot.web import metrics
from tests.world import World

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = re.compile(r"\bforgehand_\w+")
SELECTED = re.compile(r"(forgehand_\w+)\{([^}]*)\}")
GROUPED = re.compile(r"\b(?:by|without) ?\(([^)]*)\)")
SHOWN = re.compile(r"^(forgehand_\w+)(?:\{([^}]*)\})? ", re.MULTILINE)
SEVERITIES = {"info", "warning", "critical"}
FROM_PROMETHEUS = {"instance", "job", "le"}
Known = dict[str, set[str]]
Expressions = list[tuple[str, str]]  # (what asks, the expression)


def alerts() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text("utf-8"))
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana/forgehand.json").read_text("utf-8"))
    return found


def asked(rules: dict[str, Any], board: dict[str, Any]) -> Expressions:
    listed = [(rule["alert"], rule["expr"]) for group in rules["groups"] for rule in group["rules"]]
    return listed + [(panel["title"], one["expr"]) for panel in board["panels"] for one in panel["targets"]]


def problems(known: Known, expressions: Expressions) -> Iterator[str]:
    labels = set().union(*known.values()) | FROM_PROMETHEUS
    for who, text in expressions:
        if any(text.count(left) != text.count(right) for left, right in ("()", "{}", "[]")):
            yield f"{who}: a bracket is open"
        yield from (f"{who}: there is no {name}" for name in NAME.findall(text) if name not in known)
        for name, selected in SELECTED.findall(text):
            given = set(re.findall(r"(\w+)=", selected))
            yield from (f"{who}: {name} has no label {one}" for one in given - known.get(name, set()))
        grouped = {one.strip() for listed in GROUPED.findall(text) for one in listed.split(",")}
        yield from (f"{who}: nothing has a label {one}" for one in grouped - labels)


@pytest.fixture
async def known(world: World) -> Known:
    """The figures of a service that has worked, and those that only replicas have."""
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot(FORGEHAND_METRICS_TOKEN="canary") as service:
        world.say("/claude look around")
        assert await world.outcome() == "no_change"
        async with httpx.AsyncClient(base_url=service.url) as client:
            text = (await client.get("/metrics", headers={"authorization": "Bearer canary"})).text
    found: Known = {}
    for name, labels in SHOWN.findall(text):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    listed = re.findall(r"^# TYPE (forgehand_\w+) ", text, re.MULTILINE)
    labelled = re.findall(r'_by\(\s*"(forgehand_\w+)", [^,]+, "(\w+)"', inspect.getsource(metrics))
    for name, label in labelled:  # one without a sample yet shows none of its labels
        for one in {name, f"{name}_total"} & {*listed}:
            found.setdefault(one, set()).add(label)
    among = re.findall(r'"(forgehand_\w+)"', inspect.getsource(metrics._among))
    return found | {name: set() for name in among}


async def test_every_figure_and_label_exists(known: Known) -> None:
    assert len(known) > 30
    assert list(problems(known, asked(alerts(), dashboard()))) == []


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("there is no forgehand_turn", lambda text: text.replace("forgehand_turns", "forgehand_turn")),
        ("has no label status", lambda text: text.replace('{state="failed"}', '{status="failed"}')),
        ("nothing has a label outcomes", lambda text: text.replace("by (outcome)", "by (outcomes)")),
        ("a bracket is open", lambda text: text.replace("max(", "max((")),
    ],
)
async def test_a_wrong_expression_is_found(known: Known, words: str, change: Callable[[str], str]) -> None:
    expressions = [(who, change(text)) for who, text in asked(alerts(), dashboard())]
    assert any(words in one for one in problems(known, expressions))


def complaints(rules: dict[str, Any]) -> Iterator[str]:
    names = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    yield from (f"{name} is there twice" for name in names if names.count(name) > 1)
    for group in rules["groups"]:
        for rule in group["rules"]:
            if not rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}:
                yield f"{rule['alert']} has a key that Prometheus does not know"
            if rule["labels"].get("severity") not in SEVERITIES:
                yield f"{rule['alert']} has no severity"
            if not re.fullmatch(r"\d+[smh]", rule.get("for", "1m")):
                yield f"{rule['alert']} waits for no time"
            if {"summary", "description"} != rule["annotations"].keys():
                yield f"{rule['alert']} does not say what to do"


def test_each_alert_says_how_bad_it_is_and_what_to_do() -> None:
    assert list(complaints(alerts())) == []
    broken = copy.deepcopy(alerts())
    broken["groups"][0]["rules"][0] |= {"for": "soon", "labels": {}, "annotations": {}, "expression": "1"}
    assert len(list(complaints(broken))) == 4


def test_the_dashboard_fits_its_grid() -> None:
    board = dashboard()
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
