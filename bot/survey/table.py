"""Ecosystems whose commands follow from the names of their files. To add one, add a row."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from bot.survey.shape import Candidate, ProjectFolder
from bot.survey.tools import recognised


class Ecosystem(NamedTuple):
    name: str
    manifests: tuple[str, ...]
    """One of these files at the root, or a pattern for it."""
    hosts: tuple[str, ...]
    setup: str = ""
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Commands, each with the files or folders of which one must be there; with none, it is always a candidate."""


ROWS = (
    Ecosystem("rust", ("Cargo.toml",), ("index.crates.io", "static.crates.io"), checks=(("cargo test", ()),)),
    Ecosystem(
        "go",
        ("go.mod",),
        ("proxy.golang.org", "sum.golang.org"),
        checks=(("go test ./...", ()), ("go vet ./...", ())),
    ),
    Ecosystem(
        "jvm",
        ("pom.xml",),
        ("repo.maven.apache.org",),
        checks=(("./mvnw -q -B test", ("mvnw",)), ("mvn -q -B test", ())),
    ),
    Ecosystem(
        "jvm",
        ("build.gradle", "build.gradle.kts"),
        ("services.gradle.org", "plugins.gradle.org", "repo.maven.apache.org"),
        checks=(("./gradlew test", ("gradlew",)), ("gradle test", ())),
    ),
    Ecosystem(
        "ruby",
        ("Gemfile",),
        ("rubygems.org", "index.rubygems.org"),
        setup="bundle install",
        checks=(
            ("bundle exec rspec", ("spec", ".rspec")),
            ("bin/rails test", ("bin/rails",)),
            ("bundle exec rake test", ("test",)),
        ),
    ),
    Ecosystem(
        "php",
        ("composer.json",),
        ("repo.packagist.org", "api.github.com", "codeload.github.com"),
        setup="composer install --no-interaction",
        checks=(("vendor/bin/phpunit", ("phpunit.xml", "phpunit.xml.dist")), ("vendor/bin/pest", ("tests/Pest.php",))),
    ),
    Ecosystem("dotnet", ("*.sln", "*.csproj", "*.fsproj"), ("api.nuget.org",), checks=(("dotnet test", ()),)),
    Ecosystem(
        "elixir", ("mix.exs",), ("hex.pm", "repo.hex.pm"), setup="mix deps.get", checks=(("mix test", ("test",)),)
    ),
    Ecosystem("deno", ("deno.json", "deno.jsonc"), ("jsr.io", "deno.land"), checks=(("deno test", ()),)),
    Ecosystem("swift", ("Package.swift",), (), checks=(("swift test", ()),)),
)
MANIFESTS = tuple(name for row in ROWS for name in row.manifests)


def candidates(folder: ProjectFolder) -> Iterator[Candidate]:
    top = [path for path in folder.paths if "/" not in path]
    for row in ROWS:
        manifest = next((path for path in top if any(fnmatchcase(path, one) for one in row.manifests)), None)
        if manifest is None:
            continue
        if row.setup:
            goal = f"setup of {row.name}"
            yield Candidate(row.setup, goal, manifest, row.name, setup=True, hosts=row.hosts)
        for command, needs in row.checks:
            known = recognised(command)
            if known and (not needs or any(one in folder.paths or one in folder.folders for one in needs)):
                yield Candidate(command, known[0], manifest, row.name, alone=not row.setup, hosts=row.hosts)
