"""Go's module proxy protocol, with the checksum database behind the proxy."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.registries.addresses import encoded
from bot.registries.shape import (
    READING,
    SHOWN_BY,
    ClientSetup,
    PackageName,
    RegistryDialect,
    RegistryDoor,
    RegistryTarget,
    Use,
)

_MODULE = r"[a-z0-9!._~-]+(?:/[a-z0-9!._~-]+){0,30}"
_VERSION = r"v[0-9]+\.[0-9]+\.[0-9]+[a-z0-9!.+-]{0,200}"
_FILE = re.compile(rf"(?P<module>{_MODULE})/@v/(?P<version>{_VERSION})\.(?P<end>info|mod|zip)")
_LIST = re.compile(rf"(?P<module>{_MODULE})/@(?:v/list|latest|v/[a-z0-9!._~-]{{1,200}}\.info)")
_SUMS = re.compile(r"sumdb/[a-z0-9.-]+/(?:supported|latest|lookup/[a-z0-9!._~/@+-]+|tile/[0-9]+/[a-z0-9/.]+)")
_DEFAULT = ("https://proxy.golang.org", "direct")


class GoDialect(RegistryDialect):
    name = "go"
    label = "a Go module proxy"
    scope_words = "the beginning of a module's path, such as `git.acme.example/pay`"
    scope_form = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*(?:/[A-Za-z0-9._~-]+)*(?:/\*?)?")

    def admits(self, method: str, path: str, query: str) -> RegistryTarget | None:
        if method not in READING or query:
            return None
        url = self.prefix + encoded(path)
        if found := _FILE.fullmatch(path):
            use = Use.PACKAGE if found["end"] == "zip" else Use.INDEX
            return RegistryTarget(
                url, use, subject=_written(found["module"]), package=self.package(path), immutable=True
            )
        if found := _LIST.fullmatch(path):
            return RegistryTarget(url, Use.INDEX, subject=_written(found["module"]))
        return RegistryTarget(url, Use.INDEX) if _SUMS.fullmatch(path) else None

    def package(self, path: str) -> PackageName | None:
        found = _FILE.fullmatch(path)
        if not found or found["end"] != "zip":
            return None
        return PackageName(_written(found["module"]), _written(found["version"]))

    def claims(self, scopes: Sequence[str], subject: str) -> bool:
        return any(subject == one or subject.startswith(f"{one}/") for one in (one.rstrip("/*") for one in scopes))

    @classmethod
    def setup(cls, doors: Sequence[RegistryDoor], folder: str) -> ClientSetup:
        """Ask the registries with scopes first: they answer 404 for other modules, and Go asks the next one.

        Without a registry for the rest, it is Go's own default."""
        ordered = sorted(doors, key=lambda one: not one.scopes)
        # in the path: Go sends a name and password over TLS only, and the route inside has none
        addresses = [f"{one.base}{SHOWN_BY}{one.token}" for one in ordered]
        private = ",".join(scope.rstrip("/*") for one in ordered for scope in one.scopes)
        rest = () if any(not one.scopes for one in doors) else _DEFAULT
        variables = {"GOPROXY": ",".join((*addresses, *rest))}
        if private:
            variables |= {"GONOSUMDB": private}
        return ClientSetup({}, variables)


def _written(text: str) -> str:
    """Undo the protocol's way of writing capitals."""
    return re.sub(r"!([a-z])", lambda found: found[1].upper(), text)
