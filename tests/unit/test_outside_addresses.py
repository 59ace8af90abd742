"""Which addresses accounts may name: https, plain, and nothing inside the operator's network."""

from __future__ import annotations

import ipaddress

import pytest

from bot.errors import SettingsError
from bot.outside import addresses
from bot.outside.addresses import BadAddress
from bot.settings import inside
from bot.settings.inside import InsideHosts
from bot.settings.reader import SettingsReader

NOTHING = InsideHosts()
OURS = inside.read(SettingsReader({inside.NAME: "Nexus.example, 10.1.0.0/16,fd00::/8"}))
INSIDE = """
    127.0.0.1 127.9.9.9 0.0.0.0 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 100.100.100.200 224.0.0.1
    255.255.255.255 168.63.129.16 ::1 :: fe80::1 fe80::1%eth0 fd00:ec2::254 fc00::1 ff02::1 ::ffff:127.0.0.1
    ::ffff:169.254.169.254 ::127.0.0.1 2002:7f00:1:: 64:ff9b::7f00:1 64:ff9b:1::a00:1 2001:db8::1
    fec0::1 ::ffff:0:7f00:1 64:ff9b:1:a00:0:100:808:808 5f00::1
"""


@pytest.mark.parametrize("text", INSIDE.split())
def test_no_address_inside_may_be_reached(text: str) -> None:
    assert not addresses.may_reach("packages.example", ipaddress.ip_address(text), NOTHING)


@pytest.mark.parametrize("text", ["93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"])
def test_what_the_internet_reaches_may_be_reached(text: str) -> None:
    assert addresses.may_reach("packages.example", ipaddress.ip_address(text), NOTHING)


def test_the_operator_names_hosts_and_networks_inside() -> None:
    def may(host: str, text: str) -> bool:
        return addresses.may_reach(host, ipaddress.ip_address(text), OURS)

    assert may("nexus.example", "192.168.7.7") and may("NEXUS.example", "192.168.7.7")
    assert may("other.example", "10.1.9.9") and may("other.example", "fd00::7")
    assert not may("other.example", "192.168.7.7") and not may("other.example", "10.2.0.1")
    with pytest.raises(SettingsError, match=inside.NAME):
        inside.read(SettingsReader({inside.NAME: "https://nexus.example"}))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://packages.example/", "plain http"),
        ("http://10.2.0.1/", "plain http"),
        ("ftp://packages.example/", "https"),
        ("https:///path", "name a host"),
        ("//packages.example/", "https"),
        ("https://user:canary@packages.example/", "user name"),
        ("https://packages.example/#x", "#"),
        ("https://packages.example/a b", "spaces"),
        ("https://packages.example\\@other.example/", "spaces"),
        ("https://packages.example/\n", "spaces"),
        ("https://packages.example:99999/", "cannot be read"),
        ("https://[::1/", "cannot be read"),
    ],
)
def test_an_address_that_is_none_is_refused_in_words(url: str, words: str) -> None:
    with pytest.raises(BadAddress, match=words) as refused:
        addresses.read(url, OURS)
    assert "canary" not in str(refused.value)


def test_an_address_is_taken_apart_and_a_redirect_is_judged_like_it() -> None:
    found = addresses.read("https://Packages.example:443/simple/?a=1", NOTHING)
    assert (found.host, found.port, found.target, found.origin) == (
        *("packages.example", 443, "/simple/?a=1"),
        "https://packages.example",
    )
    assert addresses.read("http://nexus.example:8081/npm", OURS).origin == "http://nexus.example:8081"
    assert addresses.read("http://10.1.2.3/npm", OURS).origin == "http://10.1.2.3"
    assert found.joined("../a.whl#sha256=1", NOTHING).url == "https://packages.example/a.whl"
    assert found.joined("//files.example/a.whl", NOTHING).url == "https://files.example/a.whl"
    with pytest.raises(BadAddress):
        found.joined("http://files.example/a.whl", NOTHING)
