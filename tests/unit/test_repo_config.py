"""The repository's config: its keys, and mistakes named with key and line."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import repo_config
from bot.agent.findings import Severity
from bot.errors import BadRepoConfig
from bot.repo_config import Pulls, Pushing, RepoConfig, Reviewing, Tools, Triggers
from bot.repo_config.values import KEYS, ForPaths, PathRules

EVERYTHING = """\
model: claude-opus-5-5
budget: 7.5
ask_above: 5
timeout: 1h30m
permission: ask
tools:
  allowed: [Bash, Read]
  denied: [WebFetch]
triggers:
  label: true
  issue_opened: true
  review_team: claude-review
  review_user: decoy
  review_label: look
  review_opened: true
  review_pushed: false
  review_fixes: false
  ci_fix: true
review:
  approve: true
  request_changes: false
  threshold: major
  ignore: ["generated/**"]
  dismissed:
    "tools/**": [prints to stdout, exits early]
base: develop
branch: bot/{thread}/{session}
draft: until_verified
pull:
  closes: true
  labels: [bot, "needs review"]
  request_review: false
  template: false
setup:
  - npm ci
checks: pytest -q
egress: [files.example.com, "*.example.org"]
push:
  blocked: ["infra/**"]
  sensitive: ["auth/**"]
paths:
  "*.sql": {review: Mind the indices.}
  services/pay/**:
    setup: [make -C services/pay deps]
    checks: make -C services/pay test
    budget: 3
    instructions: Round half up.
    review: [Look at rounding., Look at currencies.]
read_outsiders: true
dashboard: true
commits: verified
template: python-big
instructions: |
  Use tabs.
"""


REVIEWING = Reviewing(
    approve=True,
    request_changes=False,
    threshold=Severity.MAJOR,
    ignore=("generated/**",),
    dismissed=(ForPaths("tools/**", "prints to stdout"), ForPaths("tools/**", "exits early")),
)


BY_PATH = (
    PathRules("*.sql", review=("Mind the indices.",)),
    PathRules(
        "services/pay/**",
        setup=("make -C services/pay deps",),
        checks=("make -C services/pay test",),
        budget=3.0,
        instructions="Round half up.",
        review=("Look at rounding.", "Look at currencies."),
    ),
)


def test_every_key() -> None:
    config = repo_config.parse(EVERYTHING)
    assert config == RepoConfig(
        model="claude-opus-5-5",
        budget=7.5,
        ask_above=5.0,
        timeout=5400.0,
        permission="ask",
        tools=Tools(("Bash", "Read"), ("WebFetch",)),
        triggers=Triggers("claude", True, "claude-review", "decoy", "look", True, False, False, True),
        review=REVIEWING,
        base="develop",
        branch="bot/{thread}/{session}",
        draft="until_verified",
        pull=Pulls(closes=True, labels=("bot", "needs review"), request_review=False, template=False),
        setup=("npm ci",),
        checks=("pytest -q",),
        egress=("files.example.com", "*.example.org"),
        push=Pushing(("infra/**",), ("auth/**",)),
        paths=BY_PATH,
        read_outsiders=True,
        dashboard=True,
        commits="verified",
        template="python-big",
        instructions="Use tabs.",
    )
    assert config.branch_name(3, "abcd1234") == "bot/3/abcd1234"
    assert repo_config.load(repo_config.dump(config)) == config


HUGE = (
    "0x" + "F" * 6_000,
    "9" * 6_000,
    "0b" + "1" * 6_000,
    "-0x" + "F" * 6_000,
    "1" + ":59" * 2_000,
    "0" + "7" * 6_000,
)
ODD = (*HUGE, "0x1F", "010", "0b11", "1:30", "1_000", "1.5e+3", "1.0e+400", ".inf", "-.inf", ".nan", "9" * 13, "1e999")
ODD_KINDS = (
    *ODD,
    "2026-11-19",
    "2026-11-19T01:02:03Z",
    "true",
    "null",
    "''",
    "[[1]]",
    "[{a: 0x1F}]",
    "{a: 1}",
    "!!binary aGk=",
)


@pytest.mark.review("security-11")
@pytest.mark.parametrize("value", ODD_KINDS, ids=lambda value: value[:12])
@pytest.mark.parametrize("key", sorted(KEYS))
def test_no_value_of_no_key_is_more_than_a_sentence(key: str, value: str) -> None:
    """As it stands, and in a list."""
    section, _, name = key.rpartition(".")
    for text in (value, f"[{value}]"):
        line = f"{section}:\n  {name}: {text}\n" if section else f"{name}: {text}\n"
        try:
            repo_config.parse(line)
        except BadRepoConfig as wrong:
            assert len(str(wrong)) < 400
            assert str(wrong).count("\n") == 2
            assert re.search(r"- line \d: ", str(wrong))


@pytest.mark.review("security-11")
@pytest.mark.parametrize("value", [one for one in ODD if one != "1e999"], ids=lambda value: value[:12])
def test_a_number_is_what_it_looks_like(value: str) -> None:
    for text in (f"timeout: {value}\n", f"budget: {value}\n", f"subagents:\n  most: {value}\n", f"setup: [{value}]\n"):
        with pytest.raises(BadRepoConfig, match=r"is not a plain number such as 30 or 2\.5; quote it if it is text"):
            repo_config.parse(text)


def test_plain_numbers_and_quoted_ones_are_read() -> None:
    found = repo_config.parse(
        "timeout: 30\nbudget: 2.50\nsubagents: {most: 0, at_once: 1000}\nsetup: ['0x1F', '010']\n"
    )
    assert (found.timeout, found.budget, found.setup) == (1800.0, 2.5, ("0x1F", "010"))
    assert (found.subagents.most, found.subagents.at_once) == (0, 1000)
    for text in ("{most: -1}", "{most: 1001}", "{at_once: 0}", "{most: 1.0}", "{most: true}"):
        with pytest.raises(BadRepoConfig, match="must be a whole number from"):
            repo_config.parse(f"subagents: {text}\n")


@pytest.mark.parametrize("text", [None, "", b"", "# nothing\n", "---\n", "null\n", "{}\n", "tools:\n"])
def test_nothing_means_the_defaults(text: str | bytes | None) -> None:
    assert repo_config.parse(text) == RepoConfig()
    assert repo_config.load(None) == RepoConfig()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model: x\nbudgt: 3\n", "line 2: there is no key `budgt`"),
        ("triggers:\n  labl: x\n", "line 2: there is no key `triggers.labl`"),
        ("draft: true\ndraft: true\n", "line 2: `draft` appears twice"),
        ("tools: 3\n", "line 1: `tools` must hold keys: allowed, denied"),
        ("tools: [a]\n", "line 1: `tools` must hold keys: allowed, denied"),
        ("draft: 'yes'\n", "line 1: `draft` must be true or false, or until_verified"),
        ("pull: {labels: [" + "x" * 51 + "]}\n", "must be a list of names of labels"),
        ("budget: five\n", "`budget` must be an amount"),
        ("budget: -1\n", "`budget` must be an amount"),
        ("budget: .nan\n", "line 1: `.nan` is not a plain number"),
        ("budget: true\n", "`budget` must be an amount"),
        ("timeout: soon\n", "`timeout` must be a time"),
        ("timeout: 9999h\n", "`timeout` must be a time"),
        ("timeout: 30m --turns 3\n", "`timeout` must be a time"),
        ("permission: root\n", "`permission` must be one of auto, ask, plan"),
        ("permission: [auto]\n", "`permission` must be one of auto, ask, plan"),
        ("commits: gpg\n", "`commits` must be one of git, verified"),
        ("base: a..b\n", "`base` must be the name of a branch"),
        ("base: -x\n", "`base` must be the name of a branch"),
        ("branch: fixed\n", "`branch` must be"),
        ("branch: '{session}/{user}'\n", "`branch` must be"),
        ("branch: '../{session}'\n", "`branch` must be"),
        ("budget: 100001\n", "`budget` must be an amount"),
        ("setup: [1]\n", "`setup` must be a list of texts"),
        ("setup: {a: b}\n", "`setup` must be a list of texts"),
        ("setup: [" + "a," * 101 + "]\n", "at most 100"),
        ("egress: [localhost]\n", "`egress` must be a list of host names"),
        ("egress: [10.0.0.1]\n", "`egress` must be a list of host names"),
        ("egress: ['https://x.example']\n", "`egress` must be a list of host names"),
        ("egress: [api.github.com]\n", "`egress` must not name github.com"),
        ("egress: ['*.anthropic.com']\n", "`egress` must not name api.anthropic.com"),
        ("egress: [api.e2b.app]\n", "`egress` must not name e2b.app"),
        ("model: [x]\n", "`model` must be text"),
        ("model: 'a b'\n", "`model` must be a name"),
        ("- a\n", "line 1: the file must hold `key: value` lines"),
        ("text\n", "line 1: the file must hold `key: value` lines"),
        ("a: [\n", "this is not YAML"),
        ("a: b\n c: d\n", "line 2: this is not YAML"),
        ("a: 1\n---\nb: 2\n", "line 2: this is not YAML"),
        ("model: 2026-99-99\n", "line 1: the value cannot be read"),
        ("? [a]\n: b\n", "line 1: a key must be a word"),
        ("model: !!python/object/apply:os.system [x]\n", "line 1: this is not YAML"),
        (b"\xff\xfe", "not UTF-8"),
        ("model: \x01\n", "characters that YAML does not allow"),
        ("#" * 70_000, "larger than 64 KB"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_mistakes_are_named(text: str | bytes, words: str) -> None:
    with pytest.raises(BadRepoConfig) as caught:
        repo_config.parse(text)
    assert words in str(caught.value)
    assert ".github/forgehand.yml" in str(caught.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(BadRepoConfig) as caught:
        repo_config.parse("budgt: 1\ndraft: 3\nmodel: 5\n")
    assert [line[:7] for line in str(caught.value).splitlines()[2:]] == ["- line ", "- line ", "- line "]


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\n",
        "a: &a\n  b: *a\n",
        "a: &a 1\n",
        "[" * 30_000,
        "a: " + "{b: " * 9_000,
        "- " * 20_000,
        "a: [" + "1," * 30_000 + "]",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_bombs_do_not_go_off(text: str) -> None:
    began = time.process_time()
    with pytest.raises(BadRepoConfig):
        repo_config.parse(text)
    assert time.process_time() - began < 5.0


def test_a_key_cannot_break_out_of_the_comment() -> None:
    with pytest.raises(BadRepoConfig) as caught:
        repo_config.parse('"`@everyone`\\n# x": 1\n')
    assert "`?@everyone??# x`" in str(caught.value)


@given(st.text(max_size=120))
def test_any_text_is_a_config_or_a_mistake(text: str) -> None:
    try:
        repo_config.parse(text)
    except BadRepoConfig as error:
        assert str(error)
