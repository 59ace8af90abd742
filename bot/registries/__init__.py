"""The dialects of package registries: what passes, what an answer means, how a client inside is configured.

Everything here is pure. The gateway's route asks, fetches and answers.
"""

from __future__ import annotations

from typing import Final

from bot.registries.cargo import CargoDialect
from bot.registries.generic import GenericDialect
from bot.registries.go import GoDialect
from bot.registries.maven import MavenDialect
from bot.registries.npm import NpmDialect
from bot.registries.pypi import PypiDialect
from bot.registries.shape import RegistryDialect

DIALECTS: Final[dict[str, type[RegistryDialect]]] = {
    one.name: one for one in (NpmDialect, PypiDialect, CargoDialect, GoDialect, MavenDialect, GenericDialect)
}
