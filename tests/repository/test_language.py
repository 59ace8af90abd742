"""What people and engineers read is plain English; `tests.language` finds what is not."""

from __future__ import annotations

import pytest

from tests import language
from tests.language import Text

FRAGMENTS = 0.03
"""Never to be raised."""


def marks(words: str, *, docstring: bool = False) -> set[str]:
    return {one.mark for one in language.find([Text("a.md", 1, words, docstring)])}


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("hanging", "Of a change for which nobody waits in particular."),
        ("hanging", "All is well. Where others have pushed meanwhile, it is put on top."),
        ("hanging", "To set one to its default changes nothing."),
        ("forbidden", "The checks run anew."),
        ("forbidden", "The latest release gets the mends."),
        ("forbidden", "The agent is told to wrap up."),
        ("forbidden", "It shows nothing to who cannot read."),
        ("double no", "Nothing is pushed that does not pass."),
        ("long", "word " * 36),
    ],
)
def test_a_hard_sentence_is_marked(mark: str, words: str) -> None:
    assert mark in marks(words)


@pytest.mark.parametrize(
    "words",
    [
        "Forgehand fixes the checks again in a separate sandbox.",
        "To upgrade: back up, install the new version, start it.",
        "What do you want to get done?",
        "If there is none, it is ordinary work.",
        "word " * 35,
    ],
)
def test_a_plain_sentence_is_not_marked(words: str) -> None:
    assert marks(words) == set()


def test_a_docstring_that_begins_as_a_fragment_is_marked() -> None:
    assert "fragment" in marks("Whether a change is worth an edit.", docstring=True)
    assert marks("Decide whether a change is worth an edit.", docstring=True) == set()


def test_documents_and_templates_have_no_word_that_nobody_uses() -> None:
    texts = list(language.documents())
    assert {"README.md", "docs/using.md", "bot/web/pages/templates/setup.html"} <= {one.file for one in texts}
    found = [one for one in language.find(texts) if one.mark == "forbidden"]
    assert found == []


def test_fewer_docstrings_begin_as_a_fragment() -> None:
    begun, total = language.fragments()
    assert total > 100
    assert begun / total <= FRAGMENTS
