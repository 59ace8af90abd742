"""Kinds of turns: each has its module, and nothing outside of the registry compares one."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from bot.kinds import TRAITS
from bot.sessions import kinds
from bot.sessions.kinds import KINDS
from tests.unit.turns import TURN

ROOT = Path(__file__).parents[2]
REGISTRY = (ROOT / "bot/kinds", ROOT / "bot/sessions/kinds")
ASKED = {"kind", "asked_as"}
"""What holds the name of a kind."""
IN_SQL = re.compile(rf"\bkind\s*(?:=|<>|!=|IN)\s*\(?\s*'(?:{'|'.join(TRAITS)})'")


def product() -> Iterator[Path]:
    for file in sorted((ROOT / "bot").rglob("*.py")):
        if not any(file.is_relative_to(folder) for folder in REGISTRY) and "simulation" not in file.parts:
            yield file


def _text(node: ast.AST) -> Iterator[str]:
    return (one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _reads_kind(node: ast.AST) -> bool:
    attributes = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return bool((attributes | names) & ASKED)


def tables(tree: ast.AST) -> Iterator[str]:
    """Names of collections that hold kinds and nothing else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
            node.value, ast.Tuple | ast.List | ast.Set | ast.Dict
        ):
            held = node.value.keys if isinstance(node.value, ast.Dict) else node.value.elts
            names = [one.value if isinstance(one, ast.Constant) else None for one in held]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if names and all(name in TRAITS for name in names):
                yield from (one.id for one in targets if isinstance(one, ast.Name))


def compared(tree: ast.AST, known: Collection[str] = ()) -> Iterator[tuple[int, str]]:
    """Comparisons with the name of a kind or a table of them, matches on one, and looks into such a table."""
    known = {*known, *tables(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.Subscript | ast.Call) and _reads_kind(node):
            holds = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} & known
            if holds or (isinstance(node, ast.Compare) and set(_text(node)) & TRAITS.keys()):
                yield node.lineno, ast.unparse(node)
        elif (
            isinstance(node, ast.Match)
            and _reads_kind(node.subject)
            and any(set(_text(one)) & TRAITS.keys() for one in node.cases)
        ):
            yield node.lineno, f"match {ast.unparse(node.subject)}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (match := IN_SQL.search(node.value)):
            yield node.lineno, match[0]


def test_no_kind_is_compared_outside_of_the_registry() -> None:
    trees = {file.relative_to(ROOT): ast.parse(file.read_text(encoding="utf-8")) for file in product()}
    known = {name for tree in trees.values() for name in tables(tree)}
    found = [f"{file}:{line}: {words}" for file, tree in trees.items() for line, words in compared(tree, known)]
    assert found == [], "ask the traits of the kind (bot/kinds), or its way through the steps (bot/sessions/kinds)"


@pytest.mark.parametrize(
    "code",
    [
        "turn.kind == 'undo'",
        "turn.kind not in ('ask', 'plan')",
        "FREE = ('undo', 'release')\nturn.kind in FREE",
        "_VERBS: set[str] = {'ask'}\nlast.asked_as in _VERBS",
        "'review' != kind",
        "WAYS = {'undo': 1, 'adopt': 2}\nWAYS[turn.kind]",
        "WAYS = {'undo': 1}\nWAYS.get(turn.asked_as, 1)",
        "match turn.kind:\n    case 'ask':\n        pass",
    ],
)
def test_a_comparison_is_seen(code: str) -> None:
    assert list(compared(ast.parse(code)))


@pytest.mark.parametrize("code", ["turn.traits.reads", "TRAITS[wish.kind].is_free", "one.kind is Kind.PLAN"])
def test_what_asks_the_traits_is_none(code: str) -> None:
    assert not list(compared(ast.parse(code)))


def test_each_kind_is_a_module_of_its_name_with_one_way_through_the_steps() -> None:
    modules = {file.stem for file in (ROOT / "bot/kinds").glob("*.py")} - {"__init__", "shape"}
    assert modules == set(TRAITS) == set(KINDS)
    acting = {file.stem for file in (ROOT / "bot/sessions/kinds").glob("*.py")} - {"__init__", "base"}
    assert acting <= modules
    assert all(one.traits is TRAITS[name] for name, one in KINDS.items())


@pytest.mark.quick("bot.kinds", "bot.sessions.kinds")
@pytest.mark.parametrize("name", TRAITS)
def test_an_agent_has_a_task_and_what_is_free_has_no_agent(name: str) -> None:
    traits = kinds.of(TURN.having(kind=name)).traits
    assert bool(traits.task) is not traits.is_free
