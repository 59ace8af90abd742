"""The packages of a registry."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StoredPackage:
    name: str
    version: str
    file: str
    data: bytes
    requires: dict[str, str] = field(default_factory=dict)
    """Ranges of versions by the names of what it needs."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass
class Shelf:
    url: str
    """The registry's address, without a final slash."""
    files_url: str
    packages: list[StoredPackage] = field(default_factory=list)
    plain: dict[str, bytes | int] = field(default_factory=dict)
    """Files of a plain address by path; a number is the size of one that is made as it is sent."""

    def put(self, package: StoredPackage) -> StoredPackage:
        """Add a version. As in a real registry, one that is there never changes."""
        if any((one.name, one.version) == (package.name, package.version) for one in self.packages):
            raise ValueError(f"{package.name} {package.version} is there already")
        self.packages.append(package)
        return package

    def of(self, name: str) -> list[StoredPackage]:
        return [one for one in self.packages if one.name == name]

    def file(self, file: str) -> StoredPackage | None:
        return next((one for one in self.packages if one.file == file), None)

    def version(self, name: str, version: str) -> StoredPackage | None:
        return next((one for one in self.of(name) if one.version == version), None)
