"""Which files steer an agent, and which of them count."""

from __future__ import annotations

import pytest

from bot.agent import material
from bot.agent.material import Rulebook


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("CLAUDE.md", "CLAUDE.md"),
        ("pkg/AGENTS.md", "pkg/AGENTS.md"),
        ("CLAUDE.local.md", "CLAUDE.local.md"),
        (".claude/settings.json", ".claude/"),
        ("pkg/.claude/skills/x/SKILL.md", "pkg/.claude/"),
        (".mcp.json", ".mcp.json"),
        (".github/forgehand.yml", ".github/forgehand.yml"),
        (".husky/pre-commit", ".husky/"),
        (".gitmodules", ".gitmodules"),
        ("docs/claude.md", None),
        (".claude", None),
        (".github/workflows/ci.yml", None),
        ("pkg/.github/forgehand.yml", None),
        ("src/x.py", None),
    ],
)
def test_paths_that_steer(path: str, named: str | None) -> None:
    assert material.steering_rules(path) == named


def test_each_is_named_once_in_order() -> None:
    assert material.ignored_rules([".claude/a", "x.py", ".claude/b", "CLAUDE.md"]) == (".claude/", "CLAUDE.md")


def test_the_whole() -> None:
    book = Rulebook("main", (("CLAUDE.md", "Be brief. <!-- evil -->\u200b"),), ("pkg/CLAUDE.md", "a\n# b/CLAUDE.md"))
    found, notes = material.rule_instructions("Ours.\n", book, "Theirs.")
    assert notes == []
    assert found == (
        "Ours.\n\n# CLAUDE.md of the branch main\n\nBe brief.\n\n# Instructions of .github/forgehand.yml\n\nTheirs.\n\n"
        "# Rules of single folders\n\n"
        "You are given these when you first touch a file of their folder, as they are on the base branch:\n\n"
        "- pkg/CLAUDE.md\n- a?? b/CLAUDE.md\n"
    )


def test_long_rules_are_cut_and_said_so() -> None:
    found, notes = material.rule_instructions("", Rulebook("main", (("CLAUDE.md", "x" * 90_000),)), "")
    assert len(found) < 41_000
    assert notes == ["the end of CLAUDE.md: it is longer than 40 KB"]


def test_what_is_unused_is_named_by_its_top() -> None:
    paths = [".claude/x", ".claude/hooks/a", ".claude/hooks/b", ".claude/skills/s/SKILL.md", "a/.mcp.json", "b"]
    assert material.unused_rules(paths) == (".claude/x", ".claude/hooks")
