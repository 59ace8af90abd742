"""Reads which inside addresses the accounts' outside services may have, such as a company's own package registry."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from bot.errors import SettingsError
from bot.settings.reader import SettingsReader

NAME = "FORGEHAND_INSIDE_HOSTS"
_HOST = re.compile(r"(?=.{1,253}\Z)(?!-)[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class InsideHosts:
    """Empty: the host asks only addresses that the whole internet can reach."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()


def read(reader: SettingsReader) -> InsideHosts:
    names, networks = set(), []
    for one in reader.names(NAME):
        try:
            networks.append(ipaddress.ip_network(one))
        except ValueError:
            if not _HOST.fullmatch(one):
                raise SettingsError(
                    f"{NAME} takes host names and networks such as nexus.example or 10.1.0.0/16, joined by commas, "
                    f"not {one!r}."
                ) from None
            names.add(one)
    return InsideHosts(frozenset(names), tuple(networks))
