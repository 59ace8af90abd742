"""Pages for people, settings, commands and files say the same: what one names, the others know."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.main import get_command

from bot import repo_config, settings
from bot.cli.main import app
from bot.commands.options import USAGE
from bot.errors import SettingsError
from bot.repo_config.values import KEYS
from bot.settings import names
from bot.simulation.scenarios.plays import PLAYS
from tests import command_table
from tests.world.settings_read import CLOUD, known, needed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECURITY = (ROOT / ".github/SECURITY.md").read_text(encoding="utf-8")
USING = (ROOT / "docs/using.md").read_text(encoding="utf-8")
OPERATOR = (ROOT / "docs/operator.md").read_text(encoding="utf-8")
FOR_PEOPLE = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
FOR_ALL = [*FOR_PEOPLE, ".github/CONTRIBUTING.md", ".github/SECURITY.md"]
EVERY = [*FOR_ALL, "bot/README.md", "sandbox/README.md", "deploy/kubernetes/secrets/README.md", "CHANGELOG.md"]
WIDTH = 120
WORKFLOW_PAGE = re.compile(r"\.\./\.\./actions/(workflows/\w+\.yml)(?:/badge\.svg)?\Z")
"""What GitHub serves beside the files: the runs of a workflow, and its badge."""
SETTING = re.compile(r"`((?:FORGEHAND|ANTHROPIC|CLAUDE_CODE|E2B)_[A-Z0-9_]+)`")


def section(heading: str, text: str = README) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section called {heading}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def prose(text: str) -> list[str]:
    """The lines without what stands in blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).splitlines()


def test_every_setting_that_is_read_is_in_the_operators_guide_and_the_reverse() -> None:
    documented = {name for name in SETTING.findall(OPERATOR) if not name.endswith("_FILE")}
    assert documented == known()


def test_the_names_by_which_mistyped_ones_are_told_are_those_that_are_read() -> None:
    assert {name for name in known() if name.startswith("FORGEHAND_")} == names.NAMES


@pytest.mark.parametrize("name", EVERY)
def test_no_page_names_a_setting_that_is_not_there(name: str) -> None:
    named = {one.removesuffix("_FILE") for one in re.findall(r"\bFORGEHAND_[A-Z0-9_]*[A-Z0-9]\b", page(name))}
    assert named <= known() | {"FORGEHAND_TESTS", "FORGEHAND_TESTS_ON", "FORGEHAND_TESTS_ROUND"}


def test_the_defaults_that_are_documented_are_those_that_hold() -> None:
    """To set one to its default changes nothing."""
    checked = 0
    for cells in rows(OPERATOR):
        if len(cells) != 3 or "`" not in cells[1] or not SETTING.findall(cells[0]):
            continue
        names, defaults = SETTING.findall(cells[0]), re.findall(r"`([^`]+)`", cells[1])
        assert len(names) == len(defaults), cells[0]
        for name, default in zip(names, defaults, strict=True):
            given = default.replace("~", "/nowhere")
            base = {**needed(), **CLOUD} if "E2B" in name else needed()
            assert settings.read({**base, name: given}) == settings.read(base), f"{name} is not {default}"
            checked += 1
    assert checked > 10


def test_what_is_called_needed_is_needed() -> None:
    first = section("Settings", OPERATOR)
    named = SETTING.findall("".join(cells[0] for cells in rows(first) if len(cells) == 2))
    mandatory = needed().keys() - {"HOME"}
    assert mandatory <= {*named}
    for name in mandatory:
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
    assert set(re.findall(r"`forgehand ([a-z]+)", section("Command line", OPERATOR))) == known
    for name in EVERY:
        named = set(re.findall(r"(?:^|`|… |/bin/)forgehand ([a-z]+)", page(name), re.MULTILINE))
        assert named <= known, name


@pytest.mark.parametrize("group", ["sessions", "deliveries", "sandbox", "keys", "config", "db"])
def test_each_command_of_a_group_is_documented(group: str) -> None:
    commands = get_command(app).commands[group].commands  # type: ignore[attr-defined]
    row = next(cells[1] for cells in rows(OPERATOR) if cells[0].startswith(f"`forgehand {group}`"))
    told = row if "#" not in row else OPERATOR
    assert [name for name in commands if not re.search(rf"`(?:forgehand {group} |{group} )?{name}\b", told)] == []


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
    named = set(re.findall(r"--[a-z][a-z-]+", section("On a folder, without GitHub", USING)))
    assert known - {"--help", "--config"} == named


def test_the_plays_of_the_demo() -> None:
    named = [cells[0].strip("`") for cells in rows(section("Try it")) if len(cells) == 2]
    assert named[1:] == list(PLAYS)


def test_the_commands_of_a_comment() -> None:
    """`python -m tests.command_table` writes them."""
    text = section("Commands in a comment")
    assert f"|---|---|\n{command_table.rows()}\n" in text
    assert set(re.findall(r"--[a-z][a-z-]*", text)) == {usage.split()[0] for usage in USAGE.values()}


def test_the_keys_of_a_repositorys_config() -> None:
    cells = [cells[0] for cells in rows(section("What a repository decides", USING))]
    named = {key for cell in cells for key in re.findall(r"`([a-z_.]+)`", cell)}
    assert named == set(KEYS)


def test_the_config_in_the_readme_is_sound() -> None:
    [example] = re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert repo_config.parse(example.encode()).checks


def anchors(text: str) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", "\n".join(prose(text)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", EVERY)
def test_links_lead_somewhere(name: str) -> None:
    path = ROOT / name
    for link, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page(name)):
        if "://" in link:
            continue
        target = path.parent / WORKFLOW_PAGE.sub(r".github/\1", link) if link else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), f"{link}#{anchor}"


@pytest.mark.parametrize("name", FOR_ALL)
def test_files_that_are_named_are_there(name: str) -> None:
    named = re.findall(r"`((?:bot|sandbox|tests|docs|\.github|\.ci)/[\w./]*)(?:::\w+)?`", page(name))
    assert [one for one in named if one != repo_config.PATH and not (ROOT / one).exists()] == []


@pytest.mark.parametrize("name", ["bot/README.md", "docs/decisions.md", "docs/glossary.md", "sandbox/README.md"])
def test_rooms_and_modules_that_are_named_are_there(name: str) -> None:
    """As the map names them, without `bot/` and `.py`."""
    named = set(re.findall(r"(?<=[` ])((?!refs/)[a-z_]+(?:/[a-z_]+)+)(?=[/` ;:,]|$)", page(name), re.MULTILINE))
    places = {
        one: [ROOT / room / f"{one}{end}" for room in ("", "bot", "sandbox") for end in ("", ".py")] for one in named
    }
    assert [one for one, found in places.items() if not any(path.exists() for path in found)] == []


@pytest.mark.parametrize("name", FOR_ALL)
def test_lines_are_no_wider_than_code(name: str) -> None:
    """Tables cannot be broken, nor can a link or a test's name."""
    wide = [line for line in prose(page(name)) if len(line) > WIDTH and " " in line.strip() and line[0] != "|"]
    assert [line for line in wide if not re.search(r"\S{60}", line)] == []


def test_the_readme_is_short() -> None:
    """Without the table of all commands, which is folded."""
    assert len(re.sub(r"<details>.*?</details>", "", README, flags=re.DOTALL).splitlines()) <= 160


def test_the_drawing_reads_in_light_and_dark_and_fetches_nothing() -> None:
    text = (ROOT / "docs/how-it-works.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img" and root.find("{http://www.w3.org/2000/svg}title") is not None
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"href|url\((?!#)|@import", text)


def test_the_pictures_are_small_and_one_moves() -> None:
    assert (ROOT / ".github/session-page.webp").stat().st_size < 100_000
    picture = (ROOT / ".github/live-comment.webp").read_bytes()
    assert b"ANIM" in picture[:64] and len(picture) < 300_000


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
