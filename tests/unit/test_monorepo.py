"""Folders of a repository: imports of rules, what a call touches, what words name, how settings by path add up."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from bot import repo_config
from bot.agent import folder_rules
from bot.agent.folder_rules import RuleFile
from bot.errors import BadRepoConfig, CommandError
from bot.proposal.push_policy import matches
from bot.sessions import folders
from bot.sessions.reviews import scope
from sandbox.runner import folder_rules as script
from sandbox.runner.folder_rules import touches

WORK = "/work"
TREE = ("services/pay/pay.py", "services/pay/CLAUDE.md", "services/web/web.py", "docs/a.md", "x.py")
KNOWN = folders.CommitFolders(TREE)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See @a.md and @./b/c.md.", [("pkg/a.md",), ("pkg/b/c.md.", "pkg/b/c.md")]),
        ("@../top.md @a\\ b.md @x.md#part", [("top.md",), ("pkg/a b.md",), ("pkg/x.md",)]),
        ("`@a.md` ``@b.md`` x@c.md <!-- @d.md -->", []),
        ("```\n@a.md\n```\n\n    @b.md\n", []),
        ("@~/x.md @/etc/passwd @../../x @.git/config @../.git/x", []),
    ],
)
def test_imports_are_paths_in_prose_that_stay_inside(text: str, found: list[tuple[str, ...]]) -> None:
    assert list(folder_rules.read("pkg/CLAUDE.md", text.encode()).imports) == found


def test_imports_end_at_cycles_depth_and_number() -> None:
    deep = {f"{n}": RuleFile(f"{n}", f"rule {n}", ((f"{n + 1}",), ("0",))) for n in range(9)}
    found, notes = folder_rules.expanded("0", deep)
    assert [one.path for _, one in found] == ["0", "1", "2", "3", "4", "5"]
    assert notes == ["what 0 imports more than 5 deep"]
    wide = {"0": RuleFile("0", "", tuple((f"w{n}",) for n in range(99)))} | {
        f"w{n}": RuleFile(f"w{n}", "") for n in range(99)
    }
    found, notes = folder_rules.expanded("0", wide)
    assert len(found) == folder_rules.MOST_IMPORTS + 1 and notes == ["what 0 imports beyond the first 30"]


def test_words_for_a_folder_are_bounded() -> None:
    big = [("", RuleFile("a/CLAUDE.md", "long " * 9_000)), ("a/CLAUDE.md", RuleFile("b.md", "never"))]
    text = folder_rules.words(big, "main", 5_000)
    assert len(text) <= 5_000 and text.startswith("# a/CLAUDE.md of the branch main\n\nlong") and "never" not in text


@pytest.mark.parametrize(
    ("call", "is_touched"),
    [
        ({"file_path": "/work/services/pay/pay.py"}, True),
        ({"file_path": "services/pay/pay.py"}, True),
        ({"path": "/work/services/pay"}, True),
        ({"file_path": "/work/services/payment/x"}, False),
        ({"file_path": "/elsewhere/services/pay/x"}, False),
        ({"file_path": "/work/services/pay/../web/x"}, False),
        ({"command": "cat services/pay/pay.py"}, True),
        ({"command": "cd ./services/pay"}, True),
        ({"command": "ls /work/services/pay;"}, True),
        ({"command": "ls 'services/pay' | wc"}, True),
        ({"command": "cat services/payment/x other/services/pay/x services/pay.md"}, False),
        ({"command": "echo services"}, False),
        ({}, False),
    ],
)
def test_a_call_touches_a_folder(call: dict[str, str], is_touched: bool) -> None:
    assert touches("services/pay", {"tool_input": call, "cwd": WORK}, WORK) is is_touched


def test_a_call_touches_where_it_stands_and_one_word_needs_a_slash() -> None:
    assert touches("services/pay", {"tool_input": {"command": "make"}, "cwd": f"{WORK}/services/pay/src"}, WORK)
    assert touches("services/pay", {"tool_input": {"command": "cat pay/x"}, "cwd": f"{WORK}/services"}, WORK)
    assert touches("docs", {"tool_input": {"command": "cat docs/x"}, "cwd": WORK}, WORK)
    assert touches("docs", {"tool_input": {"command": "cd docs && ls"}, "cwd": WORK}, WORK)
    assert not touches("docs", {"tool_input": {"command": "git commit -m 'docs: x'"}, "cwd": WORK}, WORK)


def test_each_agent_is_told_once_and_again_after_its_memory_was_summarised(tmp_path: Path) -> None:
    rules = tmp_path / "context" / "rules"
    rules.mkdir(parents=True)
    (rules / "001.md").write_text("PAY-RULE")
    listed = tmp_path / "folder-rules.json"
    listed.write_text(
        json.dumps(
            {"work": WORK, "told": "told-1", "folders": [{"folder": "services/pay", "file": "001.md", "known": False}]}
        )
    )

    def told(event: str = "PostToolUse", **more: str) -> str:
        call = {"hook_event_name": event, "cwd": WORK, "tool_input": {"command": "cat services/pay/x"}, **more}
        argv = [sys.executable, "-I", "-S", script.__file__, str(listed)]
        return subprocess.run(argv, input=json.dumps(call), capture_output=True, text=True, check=True).stdout

    assert "PAY-RULE" in told() and told() == ""
    assert "PAY-RULE" in told(agent_id="a/../b") and told(agent_id="a/../b") == ""
    listed.write_text(listed.read_text().replace("false", "true"))
    assert told() == "" and "PAY-RULE" in told(agent_id="sub"), "the agent itself has it in its prompt"
    listed.write_text(listed.read_text().replace("true", "false"))
    assert told("PreCompact") == "" and "PAY-RULE" in told() and told(agent_id="a/../b") == ""


def test_words_name_files_and_folders_that_are_there() -> None:
    words = "In `services/pay/pay.py:3` and services/web/new.py, not https://x.test/docs/a.md, and/or a/b. See docs/."
    found = folders.named_in(words, set(TREE), KNOWN)
    assert found == ["services/pay/pay.py", f"services/web/{folders.ANYTHING}", f"docs/{folders.ANYTHING}"]
    marked = {"services", "services/pay", "docs"}
    assert folders.homes([*found, "x.py"], marked) == ("docs", "services/pay")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("services/pai", "Did you mean `services/pay`?"),
        ("Services/Pay", "Did you mean `services/pay`?"),
        ("pay", "Did you mean `services/pay`?"),
        ("nothing/like/it", "Name one that is there"),
        ("services/pay/pay.py", "`--in services/pay`"),
        ("x.py", "leave `--in` out"),
    ],
)
def test_an_unknown_folder_is_refused_with_what_may_be_meant(asked: str, said: str) -> None:
    with pytest.raises(CommandError) as refused:
        folders.asked_for(asked, set(TREE), KNOWN)
    assert said in str(refused.value)


CONFIG = """\
setup: [root]
checks: [all, same]
budget: 5
instructions: Everywhere.
paths:
  services/**: {setup: [services], checks: [same, s], budget: 7, instructions: In services.}
  services/pay/**: {setup: [pay], budget: 2, instructions: In pay.}
  "*.sql": {checks: [lint], instructions: In SQL.}
"""


def test_all_paths_that_match_add_up_in_the_order_of_the_file_and_a_budget_only_falls() -> None:
    config = repo_config.parse(CONFIG)
    at = folders.patterns_for(config, [f"services/pay/{folders.ANYTHING}"])
    assert at == ("services/**", "services/pay/**")
    found = config.with_paths(at)
    assert (found.setup, found.checks, found.budget) == (("root", "services", "pay"), ("all", "same", "s"), 2)
    assert config.with_paths(()) is config
    assert folders.patterns_for(config, ["db/x.sql"]) == ("*.sql",)
    words = folders.instructions(config, at)
    assert words.startswith("Everywhere.\n\nFor `services/**`:\n\nIn services.\n\nFor `services/pay/**`:")
    assert words.endswith("Only if you touch such a path:\n\n- `*.sql`: In SQL.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{a/**: {chekcs: [x]}}", "has no key `chekcs` for `a/**`; known there: setup, checks"),
        ("{a/**: {budget: -1}}", "for `a/**`: `budget` must be an amount"),
        ("{../a: {checks: x}}", "is no path from the root"),
        ("{a/**: make}", "must hold keys for `a/**`"),
        ("{a: {checks: x}, a: {checks: y}}", "holds a key twice"),
        ("{a: {checks: x, checks: y}}", "holds a key twice"),
        ("[a]", "must hold lines of a path"),
    ],
)
def test_a_mistake_in_paths_is_named(text: str, said: str) -> None:
    with pytest.raises(BadRepoConfig) as wrong:
        repo_config.parse(f"paths: {text}\n")
    assert said in str(wrong.value) and "line 1" in str(wrong.value)


def test_a_small_tree_with_endless_folders_takes_little_time_and_memory() -> None:
    deep = [f"b{n}/{'a/' * 2_000}x" for n in range(2_000)]
    tracemalloc.start()
    began = time.monotonic()
    known = folders.CommitFolders(deep)
    assert "b7/a/a" in known and "b7/a/b" not in known and "b" not in known and f"b7{'/a' * 2_000}" in known
    assert folders.homes(deep, {"b1", "b2/a"}) == ("b1", "b2/a")
    config = repo_config.parse("paths: {'*.sql': {budget: 1}, b1/**: {budget: 2}}\n")
    assert len(folders.patterns_for(config, deep)) == 2, "those are more than we look at"
    rules = repo_config.parse("review: {dismissed: {'*.sql': Fine.}}\npaths: {'*.sql': {review: Look.}}\n")
    assert "Fine." in (said := scope.rules(rules, deep)) and "Look." in said
    with pytest.raises(CommandError):
        folders.asked_for("b7/aa", (), known)
    assert tracemalloc.get_traced_memory()[1] < 100 << 20 and time.monotonic() - began < 20
    tracemalloc.stop()
    assert list(folders.CommitFolders(["a/b/c", "a/b/d", "a-b/x", "a/e/f/g", "top"])) == [
        *("a-b", "a", "a/b", "a/e", "a/e/f"),
    ]


def test_no_pattern_takes_long() -> None:
    began = time.monotonic()
    assert not matches("a/" * 800 + "b", "**/a/" * 300 + "c")
    assert not matches("a", "[" * 9_000 + "/]!") and matches("a[b", "a[b") and matches("ab", "a[b]")
    assert not matches("a" * 4_000, "*a" * 900 + "b")
    assert time.monotonic() - began < 5
