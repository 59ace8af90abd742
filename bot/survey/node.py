"""JavaScript and TypeScript: the package manager of the lock file, and the scripts of `package.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bot.survey.shape import Candidate, ProjectFolder
from bot.survey.tools import NODE_SCRIPT

NAME = "node"
MANIFESTS = ("package.json",)
HOSTS = ("registry.npmjs.org",)
YARN_HOSTS = ("registry.yarnpkg.com",)
NO_TEST = "no test specified"
_LOCKS = (
    ("package-lock.json", "npm", "npm ci", HOSTS),
    ("npm-shrinkwrap.json", "npm", "npm ci", HOSTS),
    ("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile", HOSTS),
    ("yarn.lock", "yarn", "yarn install --frozen-lockfile", YARN_HOSTS),
    ("bun.lock", "bun", "bun install --frozen-lockfile", HOSTS),
    ("bun.lockb", "bun", "bun install --frozen-lockfile", HOSTS),
)
_MODERN_YARN = "yarn install --immutable"


def candidates(folder: ProjectFolder) -> Iterator[Candidate]:
    package = _read(folder.text("package.json"))
    if not package:
        return
    lock, manager, install, hosts = next(
        (row for row in _LOCKS if row[0] in folder.paths), ("package.json", "npm", "npm install --no-save", HOSTS)
    )
    if lock == "yarn.lock" and ".yarnrc.yml" in folder.paths:
        install = _MODERN_YARN
    needs = any(package.get(name) for name in ("dependencies", "devDependencies", "workspaces", "optionalDependencies"))
    if needs or lock != "package.json":
        yield Candidate(install, "setup of JavaScript", lock, NAME, setup=True, hosts=hosts)
    scripts = package.get("scripts")
    for name, script in list(scripts.items())[:100] if isinstance(scripts, dict) else ():
        if NODE_SCRIPT.fullmatch(name) and isinstance(script, str) and NO_TEST not in script:
            command = f"{manager} test" if name == "test" else f"{manager} run {name}"
            goal = "tests of JavaScript" if name == "test" else f"script {name}"
            yield Candidate(command, goal, "package.json", NAME, alone=not needs, hosts=hosts)


def _read(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
