"""Any HTTPS prefix: files for curl and other clients that are given an address."""

from __future__ import annotations

from collections.abc import Sequence

from bot.registries.addresses import encoded
from bot.registries.shape import READING, ClientSetup, PackageName, RegistryDialect, RegistryDoor, RegistryTarget, Use


class GenericDialect(RegistryDialect):
    name = "generic"
    label = "an HTTPS address"
    takes_scopes = False

    def admits(self, method: str, path: str, query: str) -> RegistryTarget | None:
        if method not in READING:
            return None
        url = self.prefix + encoded(path) + (f"?{query}" if query else "")
        return RegistryTarget(url, Use.PACKAGE, package=self.package(path))

    def package(self, path: str) -> PackageName | None:
        return PackageName(path, "") if path else None

    @classmethod
    def setup(cls, doors: Sequence[RegistryDoor], folder: str) -> ClientSetup:
        """Give the address and a file with the header, for `curl -H @FILE`."""
        files = {f"generic/{one.name}.header": f"Authorization: Bearer {one.token}\n" for one in doors}
        variables: dict[str, str] = {}
        for door in doors:
            name = door.name.upper().replace("-", "_")
            variables[f"REGISTRY_{name}_URL"] = door.base
            variables[f"REGISTRY_{name}_HEADER"] = f"{folder}/generic/{door.name}.header"
        return ClientSetup(files, variables)
