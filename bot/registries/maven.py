"""A Maven repository: files in folders of group, artifact and version, with metadata beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

from bot.registries.addresses import encoded
from bot.registries.shape import READING, ClientSetup, PackageName, RegistryDialect, RegistryDoor, RegistryTarget, Use

_SEGMENT = r"[A-Za-z0-9_.+-]+"
_FOLDER = re.compile(rf"(?:{_SEGMENT}/){{0,40}}")
_METADATA = re.compile(
    rf"(?P<folder>(?:{_SEGMENT}/){{1,40}})(?:maven-metadata|archetype-catalog)\.xml(?:\.[a-z0-9]{{3,6}})?"
)
_FILE = re.compile(
    rf"(?P<group>{_SEGMENT}(?:/{_SEGMENT}){{0,38}})/(?P<artifact>{_SEGMENT})/(?P<version>{_SEGMENT})/(?P<file>{_SEGMENT})"
)
_LOGGING = "org.slf4j.simpleLogger.showThreadName=false\norg.slf4j.simpleLogger.showLogName=false\n"
_LOGGED = (".jar", ".war", ".ear", ".aar", ".zip", ".pom", ".klib", ".module")


class MavenDialect(RegistryDialect):
    name = "maven"
    label = "a Maven repository"
    scope_words = "the beginning of a group, such as `com.acme`"
    scope_form = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*(?:\.\*)?")

    def admits(self, method: str, path: str, query: str) -> RegistryTarget | None:
        if method not in READING or query:
            return None
        url = self.prefix + encoded(path)
        if found := _METADATA.fullmatch(path):
            return RegistryTarget(url, Use.INDEX, subject=found["folder"].strip("/").replace("/", "."))
        found = _FILE.fullmatch(path)
        if not found or not found["file"].startswith(f"{found['artifact']}-"):
            return None
        released = not found["version"].endswith("-SNAPSHOT")
        subject = found["group"].replace("/", ".")
        return RegistryTarget(url, Use.PACKAGE, subject=subject, package=self.package(path), immutable=released)

    def package(self, path: str) -> PackageName | None:
        found = _FILE.fullmatch(path)
        if not found or not found["file"].endswith(_LOGGED):
            return None
        return PackageName(f"{found['group'].replace('/', '.')}:{found['artifact']}", found["version"])

    def claims(self, scopes: Sequence[str], subject: str) -> bool:
        return any(subject == one or subject.startswith(f"{one}.") for one in (one.rstrip(".*") for one in scopes))

    @classmethod
    def setup(cls, doors: Sequence[RegistryDoor], folder: str) -> ClientSetup:
        """Write Maven's settings. Maven 3 and 4 read them from its folder of settings for a machine.

        A person's own `~/.m2/settings.xml` still counts. The mirror of everything external keeps HTTP closed, as in
        the settings that ours stand in for."""
        main = next((one for one in doors if not one.scopes), None)
        servers, beside = "", ""
        for door in doors:
            own = f"<id>{_id(door.name)}</id>"
            servers += f"<server>{own}<username>forgehand</username><password>{escape(door.token)}</password></server>"
            if door.scopes:
                one = f"{own}<url>{escape(door.base)}</url>"
                beside += f"<repositories><repository>{one}</repository></repositories>"
                beside += f"<pluginRepositories><pluginRepository>{one}</pluginRepository></pluginRepositories>"
        others = "".join(f",!{_id(one.name)}" for one in doors if one.scopes)
        mirrors = _mirror(main.name, f"*{others}", main.base) if main else ""
        mirrors += _mirror("http", "external:http:*", "http://0.0.0.0/", "<blocked>true</blocked>")
        text = (
            "<settings>"
            f"<servers>{servers}</servers><mirrors>{mirrors}</mirrors>"
            f"<profiles><profile><id>forgehand</id>{beside}</profile></profiles>"
            "<activeProfiles><activeProfile>forgehand</activeProfile></activeProfiles>"
            "</settings>\n"
        )
        return ClientSetup(
            {"maven/settings.xml": text, "maven/logging/simplelogger.properties": _LOGGING},
            {"MAVEN_OPTS": f"-Dmaven.conf={folder}/maven"},
        )


def _id(name: str) -> str:
    return f"forgehand-{name}"


def _mirror(name: str, of: str, url: str, more: str = "") -> str:
    return f"<mirror><id>{_id(name)}</id><mirrorOf>{of}</mirrorOf><url>{escape(url)}</url>{more}</mirror>"
