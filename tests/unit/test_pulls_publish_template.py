"""A repository's template for pull requests: ours goes where it asks for it, the rest stays as it is."""

from __future__ import annotations

import pytest

from bot.proposal.descriptions import fill_template, find_template

OURS = {"done": "DONE", "link": "For #3", "verified": "CHECKED"}
TEMPLATE = """---
name: x
---
<!-- Thank you! Read CONTRIBUTING.md -->
Thanks for helping.

## Description

<!-- what and why -->

## Type of change

- [ ] Bug fix
- [x] Feature

## Related issues

Closes #

## How has this been tested?

- [ ] Unit tests

## Checklist

- [ ] I have read the rules
"""


def test_each_part_goes_into_its_section_and_boxes_stay() -> None:
    filled = fill_template(TEMPLATE, OURS)
    assert filled.taken == {"done", "link", "verified"}
    assert filled.text == (
        "Thanks for helping.\n\n"
        "## Description\n\nDONE\n\n"
        "## Type of change\n\n- [ ] Bug fix\n- [x] Feature\n\n"
        "## Related issues\n\nFor #3\n\n"
        "## How has this been tested?\n\nCHECKED\n\n- [ ] Unit tests\n\n"
        "## Checklist\n\n- [ ] I have read the rules"
    )


@pytest.mark.parametrize(
    ("template", "taken", "text"),
    [
        ("", set(), ""),
        ("Just words.", set(), "Just words."),
        ("# Checklist\n- [ ] tests", set(), "# Checklist\n\n- [ ] tests"),
        ("```\n# Summary\n```", set(), "```\n# Summary\n```"),
        ("# Summary\n```sh\nrun", {"done"}, "# Summary\n\nDONE\n\n```sh\nrun\n```"),
        ("# What?\n<details>\nmore", {"done"}, "# What?\n\nDONE\n\n<details>\nmore\n\n</details>"),
        ("# Changes\n<!-- never closed", {"done"}, "# Changes\n\nDONE"),
        ("# Summary\nWhy?\n\nFixes # (issue)", {"done", "link"}, "# Summary\n\nDONE\n\nWhy?\n\nFor #3"),
        ("Closes: #<issue number>\nRefs #", {"link"}, "For #3"),
        ("Fixes #12\n- issue #nnn and more", set(), "Fixes #12\n- issue #nnn and more"),
        ("# Summary\r\n\r\n# Description", {"done"}, "# Summary\n\nDONE\n\n# Description"),
    ],
)
def test_odd_templates(template: str, taken: set[str], text: str) -> None:
    filled = fill_template(template, OURS)
    assert (set(filled.taken), filled.text) == (taken, text)


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (("a.md", ".github/PULL_REQUEST_TEMPLATE.md"), ".github/PULL_REQUEST_TEMPLATE.md"),
        (("docs/pull_request_template.md", "Pull_Request_Template.md"), "Pull_Request_Template.md"),
        (("docs/PULL_REQUEST_TEMPLATE", "pull_request_template"), "pull_request_template"),
        ((".github/PULL_REQUEST_TEMPLATE/one.md",), None),
    ],
)
def test_it_is_looked_for_where_github_does(paths: tuple[str, ...], found: str | None) -> None:
    assert find_template(paths) == found
