"""npm's registry: documents about packages (packuments) that name tarballs. yarn and pnpm read the same .npmrc."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from bot.registries.addresses import encoded
from bot.registries.links import json_links, placed
from bot.registries.shape import (
    READING,
    ClientSetup,
    Door,
    IndexPage,
    PackageName,
    RegistryDialect,
    RegistryTarget,
    Use,
)

_PLAIN = r"[A-Za-z0-9~_-][A-Za-z0-9._~-]{0,213}"
_NAME = rf"(?:@{_PLAIN}/)?{_PLAIN}"
_DOCUMENT = re.compile(rf"(?P<name>{_NAME})(?:/(?P<version>[A-Za-z0-9][A-Za-z0-9.+~-]{{0,127}}))?")
_TARBALL = re.compile(rf"(?P<name>{_NAME})/-/(?:@{_PLAIN}/|[A-Za-z0-9._-]+/)?(?P<file>{_PLAIN}\.tgz)")
_ASIDE = re.compile(rf"-/(?:ping|v1/search|npm/v1/keys|npm/v1/attestations/{_NAME}@[^/]+|package/{_NAME}/dist-tags)")
_QUESTIONS = ("-/npm/v1/security/advisories/bulk", "-/npm/v1/security/audits/quick")
"""What `npm audit` and `npm install` post to learn of advisories. They change nothing."""
_SCOPE = re.compile(rf"@{_PLAIN}")
_DOWNLOAD = re.compile(rf"(?:.*/)?download/(?P<name>{_NAME})/(?P<version>[^/]+)/[0-9a-f]{{32,128}}")
_VERSION = re.compile(r"-(\d+\.\d+\.[A-Za-z0-9.+-]+)\.tgz")


class NpmDialect(RegistryDialect):
    name = "npm"
    label = "an npm registry"
    scope_words = "an npm scope, such as `@acme`"

    def admits(self, method: str, path: str, query: str) -> RegistryTarget | None:
        if method == "POST":
            return RegistryTarget(self.prefix + path, Use.ADVICE) if path in _QUESTIONS and not query else None
        if method not in READING:
            return None
        if found := _TARBALL.fullmatch(path):
            url = self.prefix + encoded(path)
            return RegistryTarget(url, Use.PACKAGE, subject=found["name"], package=self.package(path), immutable=True)
        if _ASIDE.fullmatch(path):
            return RegistryTarget(self.prefix + encoded(path) + (f"?{query}" if query else ""), Use.INDEX)
        if (found := _DOCUMENT.fullmatch(path)) and not query and not path.startswith("-/"):
            name = found["name"].replace("/", "%2f")  # as npm itself asks; some registries know no other form
            rest = f"/{encoded(found['version'])}" if found["version"] else ""
            return RegistryTarget(self.prefix + name + rest, Use.INDEX, subject=found["name"], rewritten=True)
        return None

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
    def setup(cls, doors: Sequence[Door], folder: str) -> ClientSetup:
        lines = ["audit=false", "fund=false", "update-notifier=false"]
        # Addresses inside are those of one command: a lock file must not keep them.
        lines += ["omit-lockfile-registry-resolved=true", "replace-registry-host=always"]
        for door in doors:
            lines += [f"{scope}:registry={door.base}" for scope in door.scopes if _SCOPE.fullmatch(scope)]
            lines += [] if door.scopes else [f"registry={door.base}"]
            lines.append(f"//{door.base.partition('://')[2]}:_authToken={door.token}")
        path = f"{folder}/npmrc"
        variables = {"NPM_CONFIG_USERCONFIG": path, "npm_config_userconfig": path}
        return ClientSetup({"npmrc": "\n".join(lines) + "\n"}, variables)
