"""`python -m tests.figures [--names]`: what the house measures of its own structure, without the stand-ins.

Names taken twice, kinds compared outside their registry, tiny private functions with one caller, fragments for
docstrings, `noqa`s, lines. `tests/test_figures.py` holds the bounds.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import language

ROOT = Path(__file__).parents[1]
STAND_INS = ROOT / "bot" / "simulation"
TINY = 6
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def product() -> list[Module]:
    """Every module of `bot` and `sandbox` except the stand-ins."""
    return [
        Module(path, text := path.read_text(encoding="utf-8"), ast.parse(text))
        for top in ("bot", "sandbox")
        for path in sorted((ROOT / top).rglob("*.py"))
        if STAND_INS not in path.parents
    ]


def names_taken_twice(modules: list[Module]) -> dict[str, list[str]]:
    """Public class names with more than one home."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    return {name: where for name, where in sorted(homes.items()) if len(where) > 1}


def tiny_with_one_caller(modules: list[Module]) -> list[str]:
    """Private functions of six lines or fewer that their module names once."""
    found = []
    for module in modules:
        used = Counter(_used(module.tree))
        found += [
            f"{module.name}: {function.name}"
            for function in _functions(module.tree)
            if function.name.startswith("_")
            and not function.name.startswith("__")
            and used[function.name] == 1
            and (function.end_lineno or 0) - function.lineno < TINY
        ]
    return found


def noqas() -> list[str]:
    """Lines of the product and its tests that switch the linter off."""
    return [
        f"{path.relative_to(ROOT).as_posix()}:{number}"
        for top in ("bot", "sandbox", "tests")
        for path in sorted((ROOT / top).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "  # no" + "qa" in line
    ]


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the structure of the product.")
    parser.add_argument("--names", action="store_true", help="name what is counted")
    named = parser.parse_args().names
    modules = product()
    twice, tiny, off = names_taken_twice(modules), tiny_with_one_caller(modules), noqas()
    begun, docstrings = language.fragments()
    for words, found in (
        ("class names taken twice", [f"{name}: {', '.join(where)}" for name, where in twice.items()]),
        (f"private functions with one caller and {TINY} lines or fewer", tiny),
        ("noqas in bot, sandbox and tests", off),
    ):
        print(f"{len(found):6} {words}")
        if named:
            print(*(f"         {one}" for one in found), sep="\n")
    print(
        f"{begun:6} of {docstrings} docstrings of functions begin as a fragment (`python -m tests.language` names them)"
    )
    print(f"{len(modules):6} modules, {sum(len(one.text.splitlines()) for one in modules)} lines")


if __name__ == "__main__":
    main()
