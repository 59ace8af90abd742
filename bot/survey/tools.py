"""Recognises a command by the tool that it calls. Nothing else from a repository's files becomes a candidate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

LONGEST = 200
MOST_LINES = 2_000
_PLAIN = re.compile(r"[\w ./:=,@%+~'\"\[\]*^{}-]+")
"""No variable, substitution, pipe, redirection, list or comment: only words."""
_NEVER = re.compile(
    r"\b(?:sudo|docker|publish|deploy|upload|push|release|login|rm|curl|wget|ssh|aws|gcloud|kubectl|terraform)\b"
    r"|--(?:fix|write|watch|update\S*)\b",
)
_WRAPPERS = re.compile(r"(?:(?:uv|poetry|pdm|pipenv|rye) run |hatch run )")


class Tool(NamedTuple):
    words: re.Pattern[str]
    goal: str
    """`{0}` stands for the first group."""
    ecosystem: str


def _tool(words: str, goal: str, ecosystem: str) -> Tool:
    return Tool(re.compile(rf"(?:{words})(?=\s|\Z)"), goal, ecosystem)


_PY = r"(?:python3? -m )?"
_JS = r"(?:npm|pnpm|yarn|bun)"
_NPX = r"(?:npx|pnpm exec|yarn|bunx) "
_CHECKING = r"(?:test|tests|lint|check|typecheck|type-check|types|build|format:check|fmt:check|lint:check)"
NODE_SCRIPT = re.compile(rf"{_CHECKING}(?::(?:unit|ci|js|ts|types|all|check))?")
TARGETS = re.compile(r"(?:unit[-_]?)?tests?|check|lint|typecheck|type-check|types|format-check|fmt-check|verify|ci")
TOOLS = (
    _tool(
        rf"{_PY}(?:pytest|unittest|nose2|stestr)|python3? (?:manage\.py|setup\.py) test", "tests of Python", "python"
    ),
    _tool(r"tox|nox", "tests of Python", "python"),
    _tool(rf"{_PY}ruff check|{_PY}ruff \.", "ruff check", "python"),
    _tool(rf"{_PY}ruff format(?=.* --check| --diff)", "ruff format", "python"),
    _tool(rf"{_PY}(black|isort)(?=.* --check)", "{0}", "python"),
    _tool(rf"{_PY}(mypy|pyright|flake8|pylint|basedpyright|ty check)", "{0}", "python"),
    _tool(rf"{_JS} (?:run )?(?:test|t|tst)|{_NPX}(?:vitest|jest|mocha|ava)|node --test", "tests of JavaScript", "node"),
    _tool(rf"{_JS} (?:run )?({_CHECKING}(?::[a-z]+)?)", "script {0}", "node"),
    _tool(rf"{_NPX}(eslint|tsc|prettier(?=.* (?:--check|-c))|biome (?:check|ci))", "{0}", "node"),
    _tool(r"deno (test|lint|check|fmt(?=.* --check))", "deno {0}", "deno"),
    _tool(r"cargo (?:\+\S+ )?(?:test|nextest run)", "tests of Rust", "rust"),
    _tool(r"cargo (clippy|check|build|fmt(?=.* --check))", "cargo {0}", "rust"),
    _tool(r"go test", "tests of Go", "go"),
    _tool(r"(go (?:vet|build)|golangci-lint|staticcheck)", "{0}", "go"),
    _tool(r"(?:mvn|\./mvnw)(?: -\S+)* (?:test|verify|package|install)", "tests of the JVM", "jvm"),
    _tool(r"(?:gradle|\./gradlew)(?: -\S+)* (?:test|check|build)", "tests of the JVM", "jvm"),
    _tool(r"(?:sbt|lein|clojure -M:test) test", "tests of the JVM", "jvm"),
    _tool(r"(?:bundle exec |bin/)?(?:rspec|rake(?: test| spec)?|rails test)", "tests of Ruby", "ruby"),
    _tool(r"(?:bundle exec )?(rubocop|standardrb)", "{0}", "ruby"),
    _tool(r"composer (?:run )?test|(?:\./)?vendor/bin/(?:phpunit|pest)", "tests of PHP", "php"),
    _tool(r"(?:\./)?vendor/bin/(phpstan|psalm|phpcs)", "{0}", "php"),
    _tool(r"dotnet test", "tests of .NET", "dotnet"),
    _tool(r"dotnet (build|format(?=.* --verify-no-changes))", "dotnet {0}", "dotnet"),
    _tool(r"mix test", "tests of Elixir", "elixir"),
    _tool(r"mix (credo|format(?=.* --check-formatted))", "mix {0}", "elixir"),
    _tool(r"(?:stack|cabal) test", "tests of Haskell", "haskell"),
    _tool(r"swift test", "tests of Swift", "swift"),
    _tool(r"zig build test", "tests of Zig", "zig"),
    _tool(r"ctest|meson test|bazel test", "tests of native code", "native"),
    _tool(rf"(?:make|just|task) ({TARGETS.pattern})", "target {0}", ""),
    _tool(r"(pre-commit) run", "{0}", "python"),
)


def is_plain(command: str) -> bool:
    """Decide whether it is one simple command, whose effect stays in the checkout as far as its words tell."""
    return 0 < len(command) <= LONGEST and bool(_PLAIN.fullmatch(command)) and not _NEVER.search(command)


def recognised(command: str, targets: Mapping[str, tuple[str, str]] | None = None) -> tuple[str, str] | None:
    """Return the goal and the ecosystem of a command; None for an unknown one. `targets` maps commands that run a
    Makefile's targets."""
    if not is_plain(command):
        return None
    if targets and command in targets:
        return targets[command]
    bare = _WRAPPERS.sub("", command, count=1)
    for words, goal, ecosystem in TOOLS:
        if match := words.match(bare):
            named = next(filter(None, match.groups()), "")
            return goal.format(named), ecosystem
    return None


def commands_of(script: str) -> Iterator[str]:
    """Split a shell script into simple commands; lines that need a shell's control flow are left out."""
    for line in script.replace("\\\n", " ").splitlines()[:MOST_LINES]:
        if len(line) > 2 * LONGEST:
            continue
        parts = [" ".join(part.split()) for part in line.split("&&")]
        if all(is_plain(part) for part in parts) and not parts[0].startswith("cd "):
            yield from parts
