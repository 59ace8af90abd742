"""Cargo's sparse index: `config.json` says where crates are; Cargo fills a template in."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from bot.registries.addresses import encoded, plain_address, within
from bot.registries.shape import (
    READING,
    ClientSetup,
    IndexPage,
    PackageName,
    RegistryDialect,
    RegistryDoor,
    RegistryRefusal,
    RegistryRequest,
    RegistryTarget,
    Use,
)
from bot.registries.signing import LinkSigner

CRATES = "-/crate/"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_VERSION = r"[0-9][0-9A-Za-z.+-]{0,127}"
_ENTRY = re.compile(rf"(?:1/.|2/..|3/./...|../../{_NAME})")
_CRATE = re.compile(
    rf"-/crate/(?P<signature>[A-Za-z0-9_-]{{1,64}})/(?P<template>[0-9a-f]{{2,4096}})/(?P<sum>[0-9a-f]{{64}})"
    rf"/(?P<name>{_NAME})/(?P<version>{_VERSION})/download"
)
_MARK = re.compile(r"\{(crate|version|prefix|lowerprefix|sha256-checksum)\}")
_PUBLIC = "https://index.crates.io/"


class CargoDialect(RegistryDialect):
    name = "cargo"
    label = "a Cargo registry"
    takes_scopes = False

    def __init__(self, address: str) -> None:
        super().__init__(address.removeprefix("sparse+"))

    def parts(self, address: str) -> tuple[str, str]:
        """Crates lie beside the index: for `…/index/`, the prefix is what holds both."""
        kept = address.removesuffix("index/")
        return (kept, "index/") if kept != address and kept.endswith("/") else (address, "")

    def target(self, request: RegistryRequest, signer: LinkSigner) -> RegistryTarget:
        found = _CRATE.fullmatch(request.path.replace("%2B", "+")) if request.method in READING else None
        return self._crate(found, signer) if found else super().target(request, signer)

    def _crate(self, found: re.Match[str], signer: LinkSigner) -> RegistryTarget:
        template = bytes.fromhex(found["template"]).decode("latin-1") if len(found["template"]) % 2 == 0 else ""
        if not signer.holds(found["signature"], template):
            raise RegistryRefusal(403, "No index of this registry has named this address.")
        name, version = found["name"], found["version"]
        values = {
            "crate": name, "version": version, "prefix": folder_of(name), "lowerprefix": folder_of(name.lower()),
            "sha256-checksum": found["sum"],
        }  # fmt: skip
        filled = _MARK.sub(lambda mark: values[mark[1]], template)
        url = plain_address("", filled, insecure=self.prefix.startswith("http:"))
        if url is None:
            raise RegistryRefusal(403, "The registry's config.json names no plain HTTPS address.")
        inside = within(self.prefix, url)
        return RegistryTarget(url, Use.PACKAGE, inside, name, PackageName(name, version), immutable=True)

    def admits(self, method: str, path: str, query: str) -> RegistryTarget | None:
        entry = path.removeprefix(self.index) if path.startswith(self.index) else ""
        if method not in READING or query or not entry:
            return None
        if entry == "config.json":
            return RegistryTarget(self.prefix + path, Use.INDEX, rewritten=True)
        if _ENTRY.fullmatch(entry):
            return RegistryTarget(self.prefix + encoded(path), Use.INDEX, subject=entry.rpartition("/")[2])
        return None

    def rewrite(self, body: bytes, page: IndexPage) -> bytes:
        """Lead downloads to our route. Publishing has no place inside, so `api` goes."""
        try:
            template = json.loads(body)["dl"] if len(body) < 1 << 16 else None
        except (ValueError, KeyError, TypeError, RecursionError):
            template = None
        if not isinstance(template, str) or len(template) > 1024:
            raise RegistryRefusal(502, "The registry's config.json is not as Cargo describes it.")
        if not _MARK.search(template):
            template = template.rstrip("/") + "/{crate}/{version}/download"
        marked = template.encode("latin-1", "replace")
        signature = page.signer.sign(marked.decode("latin-1"))
        place = f"{page.inside}{CRATES}{signature}/{marked.hex()}"
        return json.dumps(
            {"dl": place + "/{sha256-checksum}/{crate}/{version}/download", "auth-required": True}
        ).encode()

    @classmethod
    def setup(cls, doors: Sequence[RegistryDoor], folder: str) -> ClientSetup:
        """Replace the sources, so that neither Cargo.toml nor Cargo.lock changes."""
        lines: list[str] = ["[registry]", 'global-credential-providers = ["cargo:token"]', ""]
        for door in doors:
            own = f"forgehand-{door.name}"
            address = door.dialect.address
            place = f"{door.base}{door.dialect.index}"
            source = "crates-io" if address == _PUBLIC else door.name
            lines += [f"[source.{source}]", f'registry = "sparse+{address}"'] if source != "crates-io" else [
                "[source.crates-io]"
            ]  # fmt: skip
            lines += [f'replace-with = "{own}"', ""]
            lines += [f"[registries.{own}]", f'index = "sparse+{place}"', f'token = "{door.token}"', ""]
            if source != "crates-io":
                lines += [f"[registries.{door.name}]", f'index = "sparse+{address}"', ""]
        return ClientSetup({"cargo/config.toml": "\n".join(lines)}, {"CARGO_HOME": f"{folder}/cargo"})


def folder_of(name: str) -> str:
    """Return the folder of a crate in an index."""
    if len(name) < 3:
        return str(len(name))
    return f"3/{name[0]}" if len(name) == 3 else f"{name[:2]}/{name[2:4]}"
