"""Judges addresses that accounts name: https, and no host of the operator's own network unless a setting names it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from bot.errors import UserError
from bot.settings.inside import NAME, InsideHosts

LONGEST = 8_000
IP = ipaddress.IPv4Address | ipaddress.IPv6Address
_PLAIN = re.compile(r"[!-~]+")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""Public addresses of IPv6. Beyond them are site-local, translated and local NAT64 addresses that may look public."""
_CLOUDS = frozenset({ipaddress.IPv4Address("168.63.129.16")})
"""Addresses that look public, but lead to the machine's own cloud: Azure's agent answers at this one."""


class BadAddress(UserError):
    """The text says what is wrong with an address, and repeats neither a path nor a secret."""


@dataclass(frozen=True)
class OutsideAddress:
    """A checked address. Its host is checked again when it is connected to, because names change what they mean."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as they are sent."""

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return f"{self.scheme}://{host}" if usual else f"{self.scheme}://{host}:{self.port}"

    @property
    def url(self) -> str:
        return self.origin + self.target

    def joined(self, location: str, inside: InsideHosts) -> OutsideAddress:
        """Return where a redirect from here leads."""
        try:
            return read(urljoin(self.url, location).partition("#")[0], inside)
        except ValueError:
            raise BadAddress("The address of a redirect cannot be read.") from None


def read(url: str, inside: InsideHosts) -> OutsideAddress:
    """Raise BadAddress for anything else than a plain address that may be asked."""
    if len(url) > LONGEST or not _PLAIN.fullmatch(url) or "\\" in url:
        raise BadAddress("The address has spaces or odd characters in it, or is too long. Write them as %xx.")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise BadAddress("The address cannot be read: it must be like https://packages.example/path.") from None
    if "@" in parts.netloc:
        raise BadAddress("The address must not contain a user name or password. Give them as the credential.")
    if parts.scheme not in ("https", "http") or not host:
        raise BadAddress("The address must begin with https:// and name a host.")
    if "#" in url:
        raise BadAddress("The address must not contain `#`.")
    if parts.scheme == "http" and not _may_be_plain(host, inside):
        raise BadAddress(
            f"The address uses plain http, which shows the credential to everyone on the way. Use https://. For a host "
            f"of your own network, the operator can name it in {NAME}."
        )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return OutsideAddress(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), target)


def _may_be_plain(host: str, inside: InsideHosts) -> bool:
    """Decide about http by the address alone: a name must be named, a number may lie in a named network."""
    if host in inside.names:
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(ip.version == net.version and ip in net for net in inside.networks)


def may_reach(host: str, ip: IP, inside: InsideHosts) -> bool:
    """Decide about an address that a host's name stands for at this moment."""
    if host.lower() in inside.names or any(ip.version == net.version and ip in net for net in inside.networks):
        return True
    return all(one.is_global and not one.is_multicast and one not in _CLOUDS for one in _meant(ip))


def _meant(ip: IP) -> list[IP]:
    """Return the address, and those of IPv4 that it carries inside."""
    found: list[IP] = [ip]
    if isinstance(ip, ipaddress.IPv6Address):
        found += [one for one in (ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())) if one is not None]
        if ip in _NAT64:
            found.append(ipaddress.IPv4Address(ip.packed[12:]))
        is_odd = ip not in _UNICAST and ip not in _NAT64 and ip.ipv4_mapped is None
        if is_odd or ip.scope_id is not None:
            found.append(ipaddress.IPv6Address("fe80::1"))
    return found
