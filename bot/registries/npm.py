"""npm's registry: documents about packages (packuments) that name tarballs. yarn and pnpm read the same .npmrc."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial

from bot.registries.addresses import canonical, encoded
from bot.registries.links import json_links, placed
from bot.registries.shape import (
    READING,
    ClientSetup,
    IndexPage,
    PackageName,
    RegistryDialect,
    RegistryDoor,
    RegistryTarget,
    Use,
)

_PLAIN = r"[A-Za-z0-9~-][A-Za-z0-9._~-]{0,213}"
_NAME = rf"(?:@{_PLAIN}/)?{_PLAIN}"
_DOCUMENT = re.compile(rf"(?P<name>{_NAME})(?:/(?P<version>[A-Za-z0-9][A-Za-z0-9.+~-]{{0,127}}))?")
_TARBALL = re.compile(rf"(?P<name>{_NAME})/-/(?:@{_PLAIN}/|[A-Za-z0-9._-]+/)?(?P<file>{_PLAIN}\.tgz)")
_ASIDE = re.compile(rf"-/(?:ping|v1/search|npm/v1/keys|npm/v1/attestations/{_NAME}@[^/]+|package/{_NAME}/dist-tags)")
_QUESTIONS = ("-/npm/v1/security/advisories/bulk", "-/npm/v1/security/audits/quick")
"""`npm audit` and `npm install` post these to learn of advisories. They change nothing."""
_ROUTE = re.compile(r"(?:.*/)?gateway/packages/(?P<door>[a-z0-9-]+)/(?P<path>.+)")
_LOCKED = re.compile(rf"(?:[^@]*?/)??(?P<path>(?P<name>{_NAME})/-/.+\.tgz)")
_DOWNLOAD = re.compile(rf"(?:.*/)?(?P<path>download/(?P<name>{_NAME})/(?P<version>[^/]+)/[0-9a-f]{{32,128}})")
"""GitHub's form of a tarball's address."""
_VERSION = re.compile(r"-(\d+\.\d+\.[A-Za-z0-9.+-]+)\.tgz")
_FOR_YARN = 'if (/yarn/.test(process.argv[1] || "")) process.env.npm_config_always_auth = "true";\n'
"""Without it, Yarn 1 sends a token only for scopes. npm warns about it."""


class NpmDialect(RegistryDialect):
    name = "npm"
    label = "an npm registry"
    files = (".tgz", ".tar.gz")
    scope_words = "an npm scope, such as `@acme`"
    scope_form = re.compile(rf"@{_PLAIN}")

    def admits(self, method: str, path: str, query: str) -> RegistryTarget | None:
        if method == "POST":
            return RegistryTarget(self.prefix + path, Use.ADVICE) if path in _QUESTIONS and not query else None
        if method not in READING:
            return None
        if found := _TARBALL.fullmatch(path) or _DOWNLOAD.fullmatch(path):
            url = self.prefix + encoded(path)
            return RegistryTarget(url, Use.PACKAGE, subject=found["name"], package=self.package(path), immutable=True)
        if _ASIDE.fullmatch(path):
            return RegistryTarget(self.prefix + encoded(path) + (f"?{query}" if query else ""), Use.INDEX)
        if (found := _DOCUMENT.fullmatch(path)) and not query and not path.startswith("-/"):
            name = found["name"].replace("/", "%2f")  # as npm itself asks; some registries know no other form
            rest = f"/{encoded(found['version'])}" if found["version"] else ""
            return RegistryTarget(self.prefix + name + rest, Use.INDEX, subject=found["name"], rewritten=True)
        return None

    def led(self, path: str, door: RegistryDoor, doors: Sequence[RegistryDoor]) -> tuple[RegistryDoor, str]:
        """Find what a lock file means: npm puts the paths in it below the default registry's, whoever has them."""
        plain = canonical(path) or ""
        if found := _ROUTE.fullmatch(plain):
            named = next((one for one in doors if one.name == found["door"] and one.dialect.name == self.name), door)
            return named, found["path"]
        if not (found := _LOCKED.fullmatch(plain) or _DOWNLOAD.fullmatch(plain)):
            return door, path
        name, path = found["name"], found["path"]
        return next(
            (one for one in doors if one.dialect.name == self.name and self.claims(one.scopes, name)), door
        ), path

    def package(self, path: str) -> PackageName | None:
        if found := _DOWNLOAD.fullmatch(path):
            return PackageName(found["name"], found["version"])
        before, dash, file = path.rpartition("/-/")
        version = _VERSION.search(file)
        if not dash or not version:
            return None
        scope, _, name = before.rpartition("/")
        scope = scope.rpartition("/")[2]
        return PackageName(f"{scope}/{name}" if scope.startswith("@") else name, version[1])

    def rewrite(self, body: bytes, page: IndexPage) -> bytes:
        return json_links(body, b"tarball", partial(placed, self, page))

    def claims(self, scopes: Sequence[str], subject: str) -> bool:
        return subject.partition("/")[0] in scopes

    @classmethod
    def setup(cls, doors: Sequence[RegistryDoor], folder: str) -> ClientSetup:
        """Write a user's .npmrc, and a module that says the same to each program of Node.js.

        A repository's own .npmrc counts more than a user's, and names the registry's real address. Only variables count
        more than both, and a scope's has a name that shells drop. So the module sets them."""
        main = next((one for one in doors if not one.scopes), None)
        # Addresses inside are those of one command: a lock file must not keep them.
        options = {"audit": "false", "fund": "false", "update-notifier": "false"}
        options["omit-lockfile-registry-resolved"] = "true"
        if main:
            options |= {"registry": main.base, "replace-registry-host": "always"}
        options |= {f"{scope}:registry": door.base for door in doors for scope in door.scopes}
        tokens = {f"//{door.base.partition('://')[2]}:_authToken": door.token for door in doors}
        lines = [f"{name}={value}\n" for name, value in {**options, **tokens}.items()]
        says = json.dumps({f"npm_config_{name.replace('-', '_')}": value for name, value in options.items()})
        module = f"Object.assign(process.env, {says});\n{_FOR_YARN}"
        files = {"npm/npmrc": "".join(lines), "npm/options.cjs": module}
        variables = {"NPM_CONFIG_USERCONFIG": f"{folder}/npm/npmrc"}
        variables["NODE_OPTIONS"] = f"--require={folder}/npm/options.cjs"
        return ClientSetup(files, variables)
