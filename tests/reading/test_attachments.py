"""Attachments over the wire: from GitHub's own hosts, without our credentials, and nowhere else."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from bot.errors import GitHubRefused, GitHubUnavailable
from bot.github.downloads import Attachments, images
from bot.sessions.reading import briefing
from bot.simulation.github import Fault, SimulatedGitHub

STORE = "https://private-user-images.githubusercontent.com/1/2-x.png?jwt=a.b.c"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("url", "own"),
    [
        (STORE, True),
        ("https://user-images.githubusercontent.com/1/2-x.png", True),
        ("https://github.com/user-attachments/assets/1", True),
        ("https://github.com/octo/shop/raw/main/x.png", False),
        ("https://github.com/user-attachments/assets/../../logout", False),
        ("https://github.com/user-attachments/assets/%2e%2e/%2E./logout", False),
        ("https://camo.githubusercontent.com/x", False),
        ("http://github.com/user-attachments/assets/1", False),
        ("http://private-user-images.githubusercontent.com/1", False),
        ("https://private-user-images.githubusercontent.com:8443/1", False),
        ("https://private-user-images.githubusercontent.com.evil.example/1", False),
        ("https://private-user-images.githubusercontent.com@evil.example/1", False),
        ("https://evil.example\\@private-user-images.githubusercontent.com/1", False),
        ("https://169.254.169.254/user-attachments/assets/1", False),
        ("file:///user-attachments/assets/1", False),
        ("https://[::1/x", False),
        ("data:image/png;base64,AAAA", False),
        ("", False),
    ],
)
def test_whose_host_it_is(url: str, own: bool) -> None:
    assert Attachments("https://github.com").is_own(url) is own


def test_a_server_of_ones_own_has_hosts_of_its_own() -> None:
    ours = Attachments("https://git.example.com")
    assert ours.is_own("https://media.git.example.com/user/1") and ours.is_own("https://git.example.com/storage/user/1")
    assert not ours.is_own(STORE) and not ours.is_own("https://github.com/user-attachments/assets/1")


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1"])
async def test_a_store_with_an_address_of_ours_is_not_asked(address: str) -> None:
    async def resolve(_: str) -> list[str]:
        return ["1.1.1.1", address]

    ours = Attachments("https://github.com", resolve=resolve)
    with pytest.raises(GitHubRefused, match="not public"):
        await ours.fetch(STORE, 1000)


async def test_uploads_open_by_signed_addresses_for_some_minutes(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    async with SimulatedGitHub.running(tmp_path, clock=lambda: now[0]) as github:
        repo = github.create_repo("octo/shop", files={"a": "b"})
        lasting = github.attach(repo, PNG)
        from bot.simulation.github.attachments import signed

        [address] = images(signed(github.state, f'<p><img src="{lasting}" alt="x"></p>'))
        ours = Attachments(github.url)
        assert await ours.fetch(address, 100) == PNG
        with pytest.raises(GitHubRefused, match="larger"):
            await ours.fetch(address, 4)
        with pytest.raises(GitHubRefused, match="404"):
            await ours.fetch(lasting, 100)
        repo.private = False
        assert await ours.fetch(lasting, 100) == PNG, "by a redirect on the same host"
        now[0] += 301
        with pytest.raises(GitHubRefused, match="404"):
            await ours.fetch(address, 100)
        assert {call.credential for call in github.calls} == {"none"}
        assert not any("authorization" in call.headers for call in github.calls)
        await ours.close()


async def test_a_redirect_to_another_host_is_not_followed(tmp_path: Path) -> None:
    async with (
        SimulatedGitHub.running(tmp_path / "one") as github,
        SimulatedGitHub.running(tmp_path / "other") as other,
    ):
        repo = other.create_repo("octo/shop", files={"a": "b"}, private=False)
        far = other.attach(repo, PNG)
        number = urlsplit(far).path.rpartition("/")[2]
        github.state.attachments[number] = other.state.attachments[number]
        github.state.url, near = other.url, github.url  # it now redirects to the other one
        ours = Attachments(near)
        with pytest.raises(GitHubRefused, match="another host"):
            await ours.fetch(f"{near}/user-attachments/assets/{number}", 100)
        assert not other.calls
        await ours.close()


async def test_what_goes_wrong_says_nothing_of_the_address(tmp_path: Path) -> None:
    async with SimulatedGitHub.running(tmp_path) as github:
        ours = Attachments(github.url)
        github.faults.add(Fault("GET /media/*", "fail", status=503))
        with pytest.raises(GitHubUnavailable) as caught:
            await ours.fetch(f"{github.url}/media/user/1?jwt=SECRET", 100)
        assert "SECRET" not in str(caught.value) and caught.value.__cause__ is None
        await ours.close()
    with pytest.raises(GitHubUnavailable) as caught:
        await ours.fetch(f"{github.url}/media/user/1?jwt=SECRET", 100)
    assert "SECRET" not in str(caught.value)
    assert not isinstance(caught.value.__context__, httpx.HTTPError)
    await ours.close()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG + b"x", "png"),
        (b"\xff\xd8\xff\xe0", "jpg"),
        (b"GIF89a", "gif"),
        (b"RIFF\0\0\0\0WEBPVP8", "webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"<svg onload=x>", None),
        (b"<html>", None),
        (b"", None),
    ],
)
def test_an_image_is_known_by_its_first_bytes(data: bytes, kind: str | None) -> None:
    assert briefing.extension(data) == kind


@pytest.mark.parametrize("unit", ["<!-- ", '<a b="', "<img ", '<img "', "<img src='", "<a <", "<img src=x"])
def test_images_are_found_in_no_time_whatever_else_is_in_a_text(unit: str) -> None:
    flood, began = unit * (65_536 // len(unit)), time.process_time()
    assert "https://x/y" in images(f'<p><img width=1 alt="a > b" src="https://x/y"> {flood}')
    assert time.process_time() - began < 0.3
