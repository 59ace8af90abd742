"""PyPI's simple repository API, as HTML and as JSON (PEP 503, 658, 691, 700). pip and uv read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import urljoin

from bot.registries.addresses import encoded
from bot.registries.links import base_of, html_links, json_links, placed, without_base
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

_PROJECT = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,200}[A-Za-z0-9])?"
_PAGE = re.compile(rf"(?P<name>{_PROJECT})/?")
_WHEEL = re.compile(r"([A-Za-z0-9_.]{1,200})-([A-Za-z0-9_.!+]{1,100})(?:-[^-]+)?-[^-]+-[^-]+-[^-]+\.whl")
_SOURCE = re.compile(r"([A-Za-z0-9_.-]{1,200}?)-(\d[A-Za-z0-9_.!+]{0,100})\.(?:tar\.gz|tar\.bz2|zip|tgz)")
_BESIDE = (".metadata", ".asc", ".provenance")
_SIMPLE = re.compile(r"(?:.*/)?(\+?simple/)")


class PypiDialect(RegistryDialect):
    name = "pypi"
    label = "a PyPI registry"
    files = (".whl", ".tar.gz", ".tar.bz2", ".zip")
    scope_words = "a project's name or its beginning, such as `acme-*`"
    scope_form = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\*?")

    def parts(self, address: str) -> tuple[str, str]:
        """Files lie beside the index: for `…/simple/`, the prefix is what holds both."""
        found = _SIMPLE.fullmatch(address)
        return (address.removesuffix(found[1]), found[1]) if found else (address, "")

    def admits(self, method: str, path: str, query: str) -> RegistryTarget | None:
        if method not in READING or query or not path.startswith(self.index):
            return None  # a file beside the index is asked for as the index has named it
        url = self.prefix + encoded(path)
        if package := self.package(path):
            return RegistryTarget(url, Use.PACKAGE, subject=package.name, package=package, immutable=True)
        if any(path.endswith(end) and self.package(path.removesuffix(end)) for end in _BESIDE):
            return RegistryTarget(url, Use.PACKAGE, immutable=path.endswith(".metadata"))
        found = _PAGE.fullmatch(path.removeprefix(self.index))
        if found:
            return RegistryTarget(url, Use.INDEX, subject=normalised(found["name"]), rewritten=True)
        return None

    def package(self, path: str) -> PackageName | None:
        file = path.rpartition("/")[2]
        found = _WHEEL.fullmatch(file) or _SOURCE.fullmatch(file)
        return PackageName(normalised(found[1]), found[2]) if found else None

    def rewrite(self, body: bytes, page: IndexPage) -> bytes:
        if "json" in page.content_type:
            return json_links(body, b"url", partial(placed, self, page))
        if "html" not in page.content_type:
            return body
        base = base_of(body)
        if base is not None:
            page, body = replace(page, url=urljoin(page.url, base)), without_base(body)
        return html_links(body, partial(placed, self, page))

    def claims(self, scopes: Sequence[str], subject: str) -> bool:
        return any(
            subject.startswith(normalised(one[:-1])) if one.endswith("*") else normalised(one) == subject
            for one in scopes
        )

    @classmethod
    def setup(cls, doors: Sequence[RegistryDoor], folder: str) -> ClientSetup:
        """Give one registry the place of the index; others stand beside it only with scopes.

        pip takes the highest version of all its indexes, whoever published it. So beside another index, a registry
        answers only for its scopes, and no other registry answers for them (`out_of_scope`)."""
        public = next((one for one in doors if not one.scopes), None)
        main = public or doors[0]
        beside = [one for one in doors if one.scopes and one is not main]
        lines = ["[global]", f"index-url = {_address(main)}", "disable-pip-version-check = true"]
        lines += ["no-input = true"]
        if beside:
            lines.append("extra-index-url =")
            lines += [f"    {_address(one)}" for one in beside]
        variables = {
            "PIP_CONFIG_FILE": f"{folder}/pip.conf",
            "UV_DEFAULT_INDEX": _address(public) if public else "",
            "UV_INDEX": " ".join(_address(one) for one in doors if one.scopes),
            "UV_INDEX_STRATEGY": "first-index",  # a project comes from the first index that has it
        }
        kept = {name: value for name, value in variables.items() if value}
        return ClientSetup({"pip.conf": "\n".join(lines) + "\n"}, kept)


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _address(door: RegistryDoor) -> str:
    scheme, _, rest = door.base.partition("://")
    return f"{scheme}://forgehand:{door.token}@{rest}{door.dialect.index}"
