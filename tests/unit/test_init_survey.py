"""What `init` finds in repositories of many kinds, and the file that it makes of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot import repo_config, survey
from bot.proposal import starter, trials
from bot.proposal.trials import CommandTrial
from bot.proposal.verification import CheckedCommand
from bot.repo_config import RepoConfig
from bot.repo_config.values import KEYS

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data/surveys.yml").read_text(encoding="utf-8")
)
PYTHON = {
    "pyproject.toml": "[project]\nname='a'\ndependencies=['x']\n[tool.pytest.ini_options]\n[tool.ruff]\n",
    "tests/test_a.py": "",
}
NODE = {
    "package.json": '{"scripts": {"test": "jest", "lint": "eslint ."}, "devDependencies": {"jest": "1"}}',
    "package-lock.json": "",
}


def tried(
    files: Mapping[str, str], fails: Callable[[str], bool] = lambda _: False, tail: str = "", asked: Sequence[str] = ()
) -> list[CommandTrial]:
    async def run(command: str, setup: bool) -> tuple[CheckedCommand, Sequence[str]]:
        code = int(fails(command))
        return CheckedCommand(command, code, seconds=1.0, tail=tail, setup=setup), asked if code else ()

    found = survey.candidates(files, {path: files[path] for path in survey.wanted(files)})
    return asyncio.run(trials.try_all(found, run))


@pytest.mark.quick("bot.survey")
@pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])
def test_init_finds_the_commands_of(case: dict[str, Any]) -> None:
    found = tried(case["files"])
    config = repo_config.parse(starter.config(found, "here"))
    assert (list(config.setup), list(config.checks)) == (case["setup"], case["checks"])


def test_the_table_of_repositories_is_long() -> None:
    assert len(CASES) >= 25


def test_init_tries_python_without_what_could_not_be_installed() -> None:
    found = tried(PYTHON, lambda command: "pip" in command or "pytest" in command, asked=["pypi.org"])
    assert starter.commands(found, setup=False) == ("python3 -m unittest discover -s tests", "ruff check .")
    assert found[0].hosts == ("pypi.org", "files.pythonhosted.org")


def test_init_does_not_try_what_needs_packages_that_are_missing() -> None:
    found = tried(NODE, lambda command: command == "npm ci", tail="npm error code ENOTFOUND")
    assert [one.check.exit_code for one in found] == [1, None, None]
    assert found[0].hosts == ("registry.npmjs.org",) and "`npm ci`" in found[1].check.why_not


def test_init_tries_a_bounded_number_of_commands() -> None:
    lines = "\n".join(f"      - run: pytest -q tests/test_{at}.py" for at in range(500))
    workflow = f"jobs:\n  a:\n    steps:\n{lines}\n"
    files = {f".github/workflows/{at}.yml": workflow for at in range(20)} | {
        f"d{at}/Cargo.toml": "" for at in range(99)
    }
    found = tried(files, lambda _: True)
    assert len(found) <= survey.MOST_CANDIDATES and sum(one.check.was_run for one in found) <= trials.MOST_TRIED


@pytest.mark.parametrize(
    ("tail", "counts"),
    [
        ("Ran 0 tests in 0.000s\n\nOK\n", False),
        ("Ran 3 tests in 0.000s\n\nOK\n", True),
        ("collected 0 items\n", False),
        ("running 0 tests\n\ntest result: ok.\n", False),
        ("running 4 tests\n\nrunning 0 tests\n\ntest result: ok.\n", True),
        ("", True),
    ],
)
def test_init_counts_a_check_only_if_it_ran_something(tail: str, counts: bool) -> None:
    [found] = tried({"Makefile": "test:\n\ttrue\n"}, tail=tail)
    assert found.passed is counts
    assert ("ran no test" in starter.config([found], "here")) is not counts


def test_init_stores_its_trials() -> None:
    found = tried(NODE, lambda command: "lint" in command, tail="x", asked=["a.example"])
    again = trials.load(trials.dump(found))
    assert starter.config(again, "here") == starter.config(found, "here")


def test_init_lets_the_second_trial_of_a_command_count() -> None:
    first = tried(NODE)
    second = [
        CommandTrial(CheckedCommand("npm test", 1), "", ""),
        CommandTrial(CheckedCommand("npm run lint", 0), "", ""),
    ]
    found = trials.confirmed(first, second)
    assert starter.commands(found, setup=False) == ("npm run lint",)
    assert starter.commands(found, setup=True) == ("npm ci",)


def test_the_proposed_file_explains_every_key() -> None:
    text = starter.config([], "here")
    assert repo_config.parse(text) == RepoConfig()
    assert starter.EXAMPLES.keys() <= KEYS.keys()
    joined = re.sub(r"\n#? *## ", " ", text)
    schema = repo_config.schema()["properties"]
    for name, key in KEYS.items():
        section, _, inner = name.rpartition(".")
        assert inner in (schema[section]["properties"] if section else schema)
        assert re.search(rf"^#?{'  ' * bool(section)}{inner}:", text, re.MULTILINE), name
        assert name in ("setup", "checks") or key.what in joined, name


def test_all_that_the_proposed_file_shows_is_valid() -> None:
    text = starter.config(tried(NODE, lambda command: command == "npm ci", asked=["a.example"]), "here")
    shown = re.sub(r"^#", "", text, flags=re.MULTILINE)
    found = repo_config.parse(shown)
    assert found.budget == 5 and found.egress == ("a.example",) and found.branch == RepoConfig().branch


@pytest.mark.parametrize(
    "tail",
    ["a\nb: [\n- c", "x\x85checks: [evil]", "x\u2028setup: [evil]\u2029", "\r\nchecks: [evil]\r", "\x1b[31m\x00 '"],
)
def test_no_output_leaves_the_comment_that_holds_it(tail: str) -> None:
    [found] = tried({"Makefile": "test:\n\ttrue\n"}, lambda _: True, tail=tail)
    assert repo_config.parse(starter.config([found], "here")) == RepoConfig()


@pytest.mark.parametrize(
    "command", ["make test: x", "make test # x", 'make "test"', "make 'te\\st'", "make tést", "true"]
)
def test_every_command_is_quoted_as_yaml_needs_it(command: str) -> None:
    found = CommandTrial(CheckedCommand(command, 0), "Makefile", "tests")
    assert repo_config.parse(starter.config([found], "here")).checks == (command,)


def test_init_reads_few_files_and_only_plain_folders() -> None:
    paths = [f"{folder}/{name}" for folder in ("a", "b", "c d", "e\nf", "-g", "..") for name in ("go.mod", "README.md")]
    paths += [f".github/workflows/{at}.yml" for at in range(100)] + ["package.json", "x" * 5000]
    found = survey.wanted(paths)
    assert "package.json" in found and len(found) <= survey.MOST_FILES
    assert not [path for path in found if path.startswith(("c d", "e\n", "-g", ".."))]


def test_blanks_around_a_commands_words_change_nothing_in_the_proposed_file() -> None:
    """A file that reads back otherwise than it was meant ends the turn."""
    done = tried({"noxfile.py": "session.run('pytest', '\"-k\", 'a')\n"})
    assert any(one.check.command.endswith('pytest "-k",') for one in done)
    starter.config(done, "on a commit")
