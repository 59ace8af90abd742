"""Holds the structure of the product within its bounds; `python -m tests.figures --names` names what breaks one."""

from __future__ import annotations

import pytest

from tests import figures
from tests.figures import Module

MOST_TINY = 243
MOST_NOQAS = 50


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return figures.product()


def test_a_class_name_has_one_home(modules: list[Module]) -> None:
    assert not figures.names_taken_twice(modules)


def test_few_tiny_functions_have_one_caller(modules: list[Module]) -> None:
    assert len(figures.tiny_with_one_caller(modules)) <= MOST_TINY


def test_the_linter_is_rarely_switched_off() -> None:
    assert len(figures.noqas()) <= MOST_NOQAS
