"""Settings of E2B: what is needed, and the sentence for what is missing."""

from __future__ import annotations

import pytest

from bot.errors import SettingsError
from bot.settings import read_e2b

GOOD = {"FORGEHAND_SANDBOX": "e2b", "E2B_API_KEY": "e2b_secret", "FORGEHAND_PUBLIC_URL": "https://bot.example"}


def test_nothing_is_needed_for_local_sessions() -> None:
    assert read_e2b({"E2B_API_KEY": "e2b_secret"}) is None


def test_defaults_and_no_secret_in_its_words() -> None:
    found = read_e2b(GOOD)
    assert found is not None
    assert (found.template, found.sandboxes, found.agent) == ("forgehand", 20, "/usr/local/bin/claude")
    assert found.hosts() == ["bot.example"]
    assert "e2b_secret" not in repr(found)


def test_without_a_public_url_sandboxes_are_given_no_host_of_ours() -> None:
    found = read_e2b({**GOOD, "FORGEHAND_PUBLIC_URL": "", "FORGEHAND_EGRESS": "packages.example"})
    assert found is not None
    assert found.hosts() == ["packages.example"]
    assert found.network()["deny_out"] == ["0.0.0.0/0"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"E2B_API_KEY": ""}, "E2B_API_KEY"),
        ({"FORGEHAND_PUBLIC_URL": "http://bot.example"}, "plain http"),
        ({"E2B_API_URL": "nonsense"}, "E2B_API_URL"),
        ({"FORGEHAND_E2B_SANDBOXES": "0"}, "FORGEHAND_E2B_SANDBOXES"),
        ({"FORGEHAND_SANDBOX": "cloud"}, "FORGEHAND_SANDBOX"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        read_e2b({**GOOD, **changes})


@pytest.mark.review("e2b-5")
def test_a_sandbox_that_is_closed_reaches_the_gateway_alone() -> None:
    found = read_e2b({**GOOD, "FORGEHAND_EGRESS": "pypi.org"})
    assert found is not None
    assert found.network(("more.example",))["allow_out"] == ["bot.example", "more.example", "pypi.org"]
    assert found.network(None)["allow_out"] == []
    assert found.by_tunnel(None)
    assert not found.by_tunnel(())
    for address in ("https://192.0.2.7:8443", "https://[2001:db8::7]"):
        by_address = read_e2b({**GOOD, "FORGEHAND_PUBLIC_URL": address})
        assert by_address is not None
        assert by_address.network(None)["allow_out"] == [by_address.gateway_host]
        assert not by_address.by_tunnel(None)


@pytest.mark.review("e2b-6")
@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("https://bot.example:8443", True),
        ("https://bot.example:443", False),
        ("https://bot.example", False),
        ("https://192.0.2.7:8443", False),
        ("http://127.0.0.1:8710", False),
    ],
)
def test_a_name_has_to_be_at_a_port_of_the_webs(url: str, refused: bool) -> None:
    """The cloud's firewall knows names at 443 and 80 alone: no agent would reach the gateway."""
    if not refused:
        assert read_e2b({**GOOD, "FORGEHAND_PUBLIC_URL": url}) is not None
        return
    with pytest.raises(SettingsError, match=r"FORGEHAND_PUBLIC_URL has the port 8443.*443.*leave"):
        read_e2b({**GOOD, "FORGEHAND_PUBLIC_URL": url})
    given = {"FORGEHAND_E2B_UNMETERED": "1", "ANTHROPIC_API_KEY": "sk-x", "ANTHROPIC_BASE_URL": url}
    with pytest.raises(SettingsError, match="ANTHROPIC_BASE_URL has the port 8443"):
        read_e2b({**GOOD, **given})
