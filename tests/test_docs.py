"""README, SECURITY, settings and commands say the same: what one names, the others know."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from bot import settings
from bot.cli.main import app
from bot.command_options import USAGE
from bot.commands import FORMS
from bot.errors import SettingsError
from bot.simulation.scenarios.plays import PLAYS
from tests.settings_read import CLOUD, known, needed

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECURITY = (ROOT / ".github/SECURITY.md").read_text(encoding="utf-8")
SETTING = re.compile(r"`((?:FORGEHAND|ANTHROPIC|CLAUDE_CODE|E2B)_[A-Z0-9_]+)`")


def section(heading: str, text: str = README) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section called {heading}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_setting_that_is_read_is_in_the_readme_and_the_reverse() -> None:
    documented = {name for name in SETTING.findall(README) if not name.endswith("_FILE")}
    assert documented == known()


def test_the_defaults_in_the_readme_are_those_that_hold() -> None:
    """To set one to its default changes nothing."""
    checked = 0
    for cells in rows(section("Serve")):
        if len(cells) != 3 or "`" not in cells[1]:
            continue
        names, defaults = SETTING.findall(cells[0]), re.findall(r"`([^`]+)`", cells[1])
        assert len(names) == len(defaults), cells[0]
        for name, default in zip(names, defaults, strict=True):
            given = default.replace("~", "/nowhere")
            base = {**needed(), **CLOUD} if "E2B" in name else needed()
            assert settings.read({**base, name: given}) == settings.read(base), f"{name} is not {default}"
            checked += 1
    assert checked > 10


def test_what_the_readme_calls_needed_is_needed() -> None:
    first = section("Serve").split("```sh")[0]
    for name in SETTING.findall("".join(cells[0] for cells in rows(first) if len(cells) == 2)):
        if name not in needed():
            continue
        rest = {other: value for other, value in needed().items() if other != name}
        if name == "ANTHROPIC_API_KEY":
            with pytest.raises(SettingsError, match=name):
                settings.require_credential(settings.read(rest).model)
            continue
        with pytest.raises(SettingsError, match=name):
            settings.read(rest)


def test_the_commands_of_the_command_line() -> None:
    group = get_command(app)
    known = set(group.commands)  # type: ignore[attr-defined]
    named = set(re.findall(r"`(?:[A-Z_]+=… )?forgehand ([a-z]+)", README))
    named |= set(re.findall(r"^(?:\S+=… |.*/bin/)?forgehand ([a-z]+)", README, re.MULTILINE))
    named |= set(re.findall(r"/forgehand ([a-z]+)", README))
    assert named == known


def test_no_sentence_sends_people_to_a_command_that_is_not_there() -> None:
    group = get_command(app)
    for file in (ROOT / "bot").rglob("*.py"):
        for named, _, inner in re.findall(r"`forgehand ([a-z]+)(( [a-z]+)?)", file.read_text(encoding="utf-8")):
            command = group.commands.get(named)  # type: ignore[attr-defined]
            assert command is not None, f"{file.name} names forgehand {named}"
            assert not hasattr(command, "commands") or not inner or inner.strip() in command.commands, file.name


def test_the_options_of_execute() -> None:
    execute = get_command(app).commands["execute"]  # type: ignore[attr-defined]
    known = {option for parameter in execute.params for option in parameter.opts if option.startswith("--")}
    named = set(re.findall(r"--[a-z][a-z-]+", section("Run it on a folder, without GitHub")))
    assert known - {"--help", "--config"} == named


def test_the_plays_of_the_demo() -> None:
    named = [cells[0].strip("`") for cells in rows(section("Try it")) if len(cells) == 2]
    assert named[1:] == list(PLAYS)


def test_the_commands_of_a_comment() -> None:
    text = section("Commands in a comment")
    named = {word for cell in (cells[0] for cells in rows(text)) for word in re.findall(r"`/claude (\w+)", cell)}
    ready = {form.word.split()[0] if form.word else "fix" for form in FORMS if form.ready}
    assert all(f"`/claude {form.word}" in text for form in FORMS if form.ready)
    assert named == ready
    assert set(re.findall(r"--[a-z]+", text)) == {usage.split()[0] for usage in USAGE.values()}


@pytest.mark.parametrize("page", ["README.md", "bot/README.md", "sandbox/README.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert missing == []


def test_the_picture_is_small() -> None:
    assert (ROOT / ".github/live-comment.png").stat().st_size < 250_000


def test_every_promise_names_a_test_that_exists() -> None:
    promises = [line for line in SECURITY.splitlines() if re.match(r"\d+\. ", line)]
    blocks = re.split(r"^\d+\. ", section("What it promises", SECURITY), flags=re.MULTILINE)[1:]
    assert len(blocks) == len(promises) > 5
    for block in blocks:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", block)
        assert tests, f"no test stands behind: {block}"
        for file, name in tests:
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{name}"


def test_ci_runs_the_command_of_the_readme() -> None:
    marked = re.search(r"^<!-- tests -->\n```sh\n(.*?)\n```$", README, re.MULTILINE | re.DOTALL)
    assert marked is not None
    assert "\n" not in marked[1]
    assert marked[1].startswith("python3 ") and marked[1].endswith("-m tests"), "as .ci/run looks for it"
