"""Python: what installs a project, and what tests it."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from bot.survey.shape import Candidate, ProjectFolder
from bot.survey.tools import commands_of, recognised

NAME = "python"
GOAL = "setup of Python"
TESTS = "tests of Python"
HOSTS = ("pypi.org", "files.pythonhosted.org")
MANIFESTS = (
    *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "pytest.ini", "Pipfile", "requirements.txt"),
    *("requirements-dev.txt", "requirements_dev.txt", "dev-requirements.txt", "requirements-test.txt"),
    *("test-requirements.txt", "requirements/dev.txt", "requirements/test.txt", "manage.py"),
)
_REQUIREMENTS = tuple(name for name in MANIFESTS if name.endswith(".txt"))
_EXTRAS = ("test", "tests", "testing", "dev", "all")
MOST_DOTS = 200
"""In a line: a key of thousands of parts takes tomllib quadratic time."""
_EXTRA = re.compile(r"[A-Za-z0-9][\w.-]{0,60}")
_STRINGS = re.compile(r"\"([^\"\n]{1,80})\"|'([^'\n]{1,80})'")
_RUN = re.compile(r"session\.run\(([^()]{1,400})\)")
_TOP = re.compile(r"test\w{0,60}\.py")
_BRACES = re.compile(r"\{(?:posargs|toxinidir)[^{}]{0,80}\}/?")


def candidates(folder: ProjectFolder) -> Iterator[Candidate]:
    project = _Project(folder)
    yield from project.setups()
    yield from project.checks()


class _Project:
    def __init__(self, folder: ProjectFolder) -> None:
        self._folder = folder
        self._toml = _toml(folder.text("pyproject.toml"))
        self._ini = _ini(folder.text("setup.cfg"))
        self._venv = f"~/venv{f'-{folder.name}' if folder.name else ''}"
        self._into = f"python3 -m venv {self._venv} && {self._venv}/bin/pip install -q"
        self._inside = f". {self._venv}/bin/activate && "

    def setups(self) -> Iterator[Candidate]:
        """List the ways to install it, those of lock files first."""
        for lock, command, inside in (
            ("uv.lock", "uv sync --frozen", "uv run --frozen "),
            ("poetry.lock", "poetry install --no-interaction", "poetry run "),
            ("pdm.lock", "pdm install", "pdm run "),
            ("Pipfile.lock", "pipenv install --dev --deploy", "pipenv run "),
        ):
            if lock in self._folder.paths:
                yield self._setup(command, lock, inside)
        beside = [f"-r {name}" for name in _REQUIREMENTS if name in self._folder.paths]
        manifest = self._folder.first("pyproject.toml", "setup.py", "setup.cfg")
        if manifest and self._is_installed():
            extra = next((one for one in _EXTRAS if one in self._extras()), "")
            extra = extra or next((one for one in self._extras() if _EXTRA.fullmatch(one) and "test" in one), "")
            wanted = [f"-e '.[{extra}]'" if extra else "-e .", *beside, *self._runner()]
            yield self._setup(f"{self._into} {' '.join(wanted)}", manifest, self._inside)
        elif beside or self._runner():
            wanted = [*beside, *self._runner()]
            source = beside[0].split()[-1] if beside else self._uses_pytest() or ""
            yield self._setup(f"{self._into} {' '.join(wanted)}", source, self._inside)

    def _setup(self, command: str, source: str, inside: str) -> Candidate:
        return Candidate(command, GOAL, source, NAME, setup=True, inside=inside, hosts=HOSTS)

    def checks(self) -> Iterator[Candidate]:
        yield from self._declared()
        if source := self._uses_pytest():
            yield self._check("python3 -m pytest -q", TESTS, source)
        if "manage.py" in self._folder.paths:
            yield self._check("python3 manage.py test", TESTS, "manage.py")
        if folder := next((one for one in ("tests", "test") if one in self._folder.folders), None):
            is_package = f"{folder}/__init__.py" in self._folder.paths
            where = f"-s {folder} -t ." if is_package else f"-s {folder}"
            if any(path.startswith(f"{folder}/test") and path.endswith(".py") for path in self._folder.paths):
                yield self._check(f"python3 -m unittest discover {where}", TESTS, f"{folder}/")
        if top := min((one for one in self._folder.paths if _TOP.fullmatch(one)), default=None):
            yield self._check("python3 -m unittest", TESTS, top)
        named = "pyproject.toml" if _part(self._toml, "tool", "ruff") is not None else None
        if source := self._folder.first("ruff.toml", ".ruff.toml") or named:
            yield self._check("ruff check .", "ruff check", source)

    def _check(self, command: str, goal: str, source: str) -> Candidate:
        return Candidate(command, goal, source, NAME, hosts=HOSTS)

    def _declared(self) -> Iterator[Candidate]:
        """Read the commands that tox and nox would run."""
        tox = _ini(self._folder.text("tox.ini"))
        for section in [one for one in tox.sections() if one.startswith("testenv")][:20]:
            for command in commands_of(_BRACES.sub("", tox.get(section, "commands", fallback="") or "")):
                if known := recognised(command):
                    yield self._check(command, known[0], "tox.ini")
        for call in _RUN.findall(self._folder.text("noxfile.py"))[:20]:
            command = " ".join(" ".join(one or other for one, other in _STRINGS.findall(call)).split())
            if known := recognised(command):
                yield self._check(command, known[0], "noxfile.py")

    def _uses_pytest(self) -> str | None:
        found = self._folder.first("pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py")
        named = (name for name in MANIFESTS if "pytest" in self._folder.text(name))
        return found or next(named, None)

    def _runner(self) -> list[str]:
        """Return pytest if it is used and no manifest would install it."""
        if not self._uses_pytest():
            return []
        extras = " ".join(str(one) for name, one in self._extras().items() if name in _EXTRAS or "test" in name)
        listed = [extras, str(_part(self._toml, "project", "dependencies"))]
        listed += [self._folder.text(name) for name in _REQUIREMENTS]
        return [] if any("pytest" in one for one in listed) else ["pytest"]

    def _is_installed(self) -> bool:
        """Decide whether its tests need it installed: it has dependencies, or its code is out of their reach."""
        project = _part(self._toml, "project")
        needs = isinstance(project, dict) and (project.get("dependencies") or project.get("optional-dependencies"))
        listed = self._ini.get("options", "install_requires", fallback="") or ""
        in_setup = "install_requires" in self._folder.text("setup.py")
        poetry = _part(self._toml, "tool", "poetry", "dependencies")
        has_code = self._folder.first("setup.py", "setup.cfg") or "build-system" in self._toml
        has_src = bool(has_code) and "src" in self._folder.folders
        return bool(needs or listed.strip() or in_setup or has_src or (isinstance(poetry, dict) and len(poetry) > 1))

    def _extras(self) -> dict[str, Any]:
        found = _part(self._toml, "project", "optional-dependencies")
        ini = {name: value for name, value in _items(self._ini, "options.extras_require") if _EXTRA.fullmatch(name)}
        return {**ini, **(found if isinstance(found, dict) else {})}


def _part(of: Any, *names: str) -> Any:
    for name in names:
        of = of.get(name) if isinstance(of, dict) else None
    return of


def _toml(text: str) -> dict[str, Any]:
    try:
        return {} if any(line.count(".") > MOST_DOTS for line in text.split("\n")) else tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _ini(text: str) -> configparser.RawConfigParser:
    # Lines without a value are allowed, because the list of such mistakes would take quadratic time.
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return configparser.RawConfigParser()
    return parser


def _items(parser: configparser.RawConfigParser, section: str) -> list[tuple[str, str]]:
    return [(name, value or "") for name, value in parser.items(section)] if parser.has_section(section) else []
