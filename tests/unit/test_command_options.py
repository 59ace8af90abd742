"""Options of a command, and what the person is told whose command is not quite one."""

from __future__ import annotations

import importlib
from pkgutil import iter_modules

import pytest

from bot import commands
from bot.commands import Command, CommandForm
from bot.commands.options import Options
from bot.errors import CommandError
from bot.handlers import commands as folder
from bot.handlers.commands.continuation import Continuation
from bot.handlers.table import TABLE
from tests.unit.parsed import parse


@pytest.mark.parametrize(
    ("body", "options", "prompt"),
    [
        ("/claude --budget 5 fix", Options(budget_usd=5), "fix"),
        ("/claude --budget=$0.50 fix", Options(budget_usd=0.5), "fix"),
        ("/claude fix --budget 5", Options(budget_usd=5), "fix"),
        ("/claude fix —budget 5", Options(budget_usd=5), "fix"),
        ("/claude fix --budget 5\nand more", Options(budget_usd=5), "fix\nand more"),
        ("/claude --timeout 30m fix", Options(timeout_seconds=1800), "fix"),
        ("/claude --timeout 90s fix", Options(timeout_seconds=90), "fix"),
        ("/claude --timeout 1h30m fix", Options(timeout_seconds=5400), "fix"),
        ("/claude --timeout 45 fix", Options(timeout_seconds=2700), "fix"),
        ("/claude --base release/2.x fix", Options(base="release/2.x"), "fix"),
        ("/claude --turns 20 fix", Options(turns=20), "fix"),
        ("/claude --model claude-opus-5-5 fix", Options(model="claude-opus-5-5"), "fix"),
        ("/claude fix --model opus --turns 3", Options(model="opus", turns=3), "fix"),
        ("/claude --turns 3 fix --model opus", Options(model="opus", turns=3), "fix"),
        ("/claude --turns 3\nfix", Options(turns=3), "fix"),
        ("/claude fix this --budget 0.5 please", Options(budget_usd=0.5), "fix this please"),
        ("/claude fix --budget=2, then --turns 3 the rest", Options(budget_usd=2, turns=3), "fix then the rest"),
        ("/claude fix it —queue, please", Options(queue=True), "fix it please"),
        ("/claude fix `a --budget` --budget 3 or so", Options(budget_usd=3), "fix `a --budget` or so"),
    ],
)
def test_options(body: str, options: Options, prompt: str) -> None:
    assert parse(body) == Command("run", prompt, options)


def test_options_around_a_verb() -> None:
    assert parse("/claude --turns 3 ask --budget 2 how? --model opus") == Command(
        "ask", "how?", Options(model="opus", budget_usd=2, turns=3)
    )
    assert parse("/claude retry --budget 8") == Command("retry", options=Options(budget_usd=8))
    assert parse("/claude continue --turns 4 on") == Continuation("continue", "on", Options(turns=4))
    assert parse("/claude continue +3 --turns 4 on") == Continuation("continue", "on", Options(turns=4), extra_usd=3.0)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("/claude --budget lots fix", "`--budget` takes an amount in US dollars above zero"),
        ("/claude --budget 0 fix", "above zero"),
        ("/claude --budget -1 fix", "above zero"),
        ("/claude --budget nan fix", "above zero"),
        ("/claude --budget 1e9 fix", "above zero"),
        ("/claude --budget", "needs a value"),
        ("/claude fix --budget lots", "put it in backticks"),
        ("/claude --timeout soon fix", "`--timeout` takes a time"),
        ("/claude --timeout 25h fix", "at most a day"),
        ("/claude --timeout 0m fix", "`--timeout` takes a time"),
        ("/claude --turns 0 fix", "whole number"),
        ("/claude --turns 1.5 fix", "whole number"),
        ("/claude --turns ٣ fix", "whole number"),
        ("/claude --base ../x fix", "cannot be the name of a branch"),
        ("/claude --base -x fix", "cannot be the name of a branch"),
        ("/claude --base a.lock fix", "cannot be the name of a branch"),
        ("/claude --model `x` fix", "not the name of a model"),
        ("/claude --modle x fix", "I don't know the option `--modle`"),
        ("/claude --turns 3 --turns 4 fix", "twice"),
        ("/claude stop --budget 3", "takes no options"),
        ("/claude ask", "What is the question?"),
        ("/claude continue +x", "is not an amount"),
        ("/claude stpo", "Did you mean `/claude stop`?"),
        ("/claude stopp!", "Did you mean `/claude stop`?"),
        ("/claude kill", "Did you mean `/claude stop`?"),
        ("/claude try again", "Did you mean `/claude retry`?"),
        ("/claude stop --force", "`/claude stop` has no option `--force`."),
        ("/claude status --json", "has no option `--json`"),
        ("/claude fix it --bugdet 5", "Did you mean `--budget 5`? (If this belongs to the task itself"),
        ("/claude fix it --time-out=30m", "Did you mean `--timeout 30m`?"),
        ("/claude fix --budgt 0.5 this please", "Did you mean `--budget 5`?"),
        ("/claude add --color to the CLI", "I don't know the option `--color`. I know `--model NAME`"),
        ("/claude fix --queue=yes this", "takes no value"),
        ("/claude fix this --budget --queue", "`--budget` needs a value"),
        ("/claude add a --queue option to the CLI", "for the task, put it in backticks"),
        ("/claude add --model flags to the CLI", "Is `--model` meant for me"),
        ("/claude rename --turns to --time", "whole number from 1 to 9999, not `to`. (If this belongs"),
        ("/claude fix it --queu", "Did you mean `--queue`?"),
        ("/claude hlep", "Did you mean `/claude help`?"),
        ("/claude stauts", "Did you mean `/claude status`?"),
        ("/claude contine", "Did you mean `/claude continue`?"),
        ("/claude aprove", "Did you mean `/claude approve`?"),
        ("/claude cancel", "Did you mean `/claude stop`?"),
        ("/claude Stop CI.", "Did you mean `/claude stop ci`?"),
        ("/claude fix CI, please", "Did you mean `/claude fix ci`?"),
        ("/claude approve the plan", "Did you mean `/claude approve`?"),
        ("/claude resolve please", "Did you mean `/claude resolve`?"),
        ("/claude approve ab12cd34", "is not an approval ID"),
        ("/claude approve https://github.com/o/r/commit/0123456789abcdef", "is not an approval ID"),
        ("/claude deny ab12cd34-", "is not an approval ID"),
        ("/claude one\n/claude two", "2 commands"),
        ("/claude one\n\ntext\n@forge two", "2 commands"),
    ],
)
def test_mistakes_are_explained(body: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse(body)
    assert words in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_the_word_is_configurable() -> None:
    assert parse("/bot fix", word="/bot") == Command("run", "fix")
    assert parse("/claude fix", word="/bot") is None
    assert parse("@ fix", app_slug="") is None
    with pytest.raises(CommandError, match=r"`/bot stop`"):
        parse("/bot stpo", word="/bot")


def test_every_command_has_its_line_in_the_one_list() -> None:
    lines = [importlib.import_module(f"{folder.__name__}.{one.name}").FEATURE for one in iter_modules(folder.__path__)]
    assert len(lines) > 15
    assert [one for one in TABLE if one not in lines] == [next(one for one in TABLE if one.word == "help")]
    assert [one for one in lines if one not in TABLE] == []
    assert len({one.word for one in TABLE}) == len(TABLE)


def test_every_line_of_the_list_is_a_command() -> None:
    """As `help` shows it, with words where the line has dots."""
    for line in TABLE:
        usage = line.usage.replace("…", "the merge conflicts" if line.word == "resolve" else "words")
        command = parse(f"/claude {usage}")
        assert command is not None and command.word == line.word, usage


def test_a_word_with_a_hyphen_is_a_command_of_its_own() -> None:
    """It must not run as work that is paid for."""
    rename = CommandForm[Command]("rename-branch", "rename-branch …", "names the branch anew", text=True)
    recount = CommandForm[Command]("re-count", "re-count", "counts again", polite=True)
    forms = (*TABLE, rename, recount)
    assert commands.parse("/claude rename-branch fix/total", forms) == Command("rename-branch", "fix/total")
    assert commands.parse("/claude Rename-Branch\nfix/total", forms) == Command("rename-branch", "fix/total")
    assert commands.parse("/claude re-count, please", forms) == Command("re-count")
    assert commands.parse("/claude re-count the stars", forms) == Command("run", "re-count the stars")
    with pytest.raises(CommandError, match="Did you mean `/claude rename-branch`"):
        commands.parse("/claude rename-brunch", forms)
    with pytest.raises(CommandError, match="`/claude re-count` has no option `--all`"):
        commands.parse("/claude re-count --all", forms)


def test_an_error_does_not_let_the_comment_break_out() -> None:
    with pytest.raises(CommandError, match=r"^`\?@everyone\?` is not"):
        parse("/claude --model `@everyone` fix")
