"""Credentials of the App and its installations: narrow, minted once, replaced in time."""

from __future__ import annotations

import asyncio
from email.utils import formatdate

import pytest

from bot.errors import GitHubRefused, GitHubUnavailable, Unrecognised
from bot.github.client import GitHubApp
from bot.github.types import TokenPurpose
from bot.outbound import Redactor
from bot.settings import GitHubSettings, Secret
from bot.simulation.github.faults import Fault
from tests.github_client.bench import BODY, MARKER, Bench, Clock


async def test_a_token_is_narrow_and_kept(bench: Bench) -> None:
    first = await bench.at.token(TokenPurpose.PUSH, bench.repo.id)
    minted = bench.github.tokens.minted[-1]
    assert minted.permissions == {"contents": "write", "metadata": "read"}
    assert minted.repository_ids == frozenset({bench.repo.id})
    assert await bench.at.token(TokenPurpose.PUSH, bench.repo.id) is first
    assert await bench.at.token(TokenPurpose.PUSH, bench.repo.id, fresh=True) is not first
    assert bench.secrets == [token.value for token in bench.github.tokens.minted]


async def test_many_callers_mint_once(bench: Bench) -> None:
    tokens = await asyncio.gather(*(bench.at.token(TokenPurpose.THREAD, bench.repo.id) for _ in range(20)))
    assert len(set(map(id, tokens))) == len(bench.github.tokens.minted) == 1


async def test_a_token_is_replaced_five_minutes_early(bench: Bench) -> None:
    await bench.at.token(TokenPurpose.THREAD, bench.repo.id)
    bench.clock.now += 3290
    await bench.at.token(TokenPurpose.THREAD, bench.repo.id)
    assert len(bench.github.tokens.minted) == 1
    bench.clock.now += 20
    await bench.at.token(TokenPurpose.THREAD, bench.repo.id)
    assert len(bench.github.tokens.minted) == 2
    bench.clock.now += 7200
    await bench.at.token(TokenPurpose.THREAD, bench.repo.id)
    assert bench.retired == [token.value for token in bench.github.tokens.minted[:2]]


@pytest.mark.acceptance("C04")
@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_a_dead_token_is_replaced_once(bench: Bench, how: str) -> None:
    await bench.at.token(TokenPurpose.THREAD, bench.repo.id)
    for token in bench.github.tokens.minted:
        if how == "revoked":
            token.revoked = True
        else:
            token.expires_at = bench.clock.now - 1
    results = await asyncio.gather(*(bench.at.issue(bench.repo, bench.issue.number) for _ in range(5)))
    assert len(results) == 5
    assert len(bench.github.tokens.minted) == 2


@pytest.mark.acceptance("C04")
@pytest.mark.parametrize("times", [2, None])
async def test_a_new_token_that_is_not_known_yet_is_kept_and_tried_again(bench: Bench, times: int | None) -> None:
    """GitHub may know a token everywhere only some seconds after it has given it out."""
    bench.github.faults.add(Fault("GET /repos/*/issues/*", "fail", status=401, times=times))
    if times is None:
        with pytest.raises(GitHubUnavailable, match="GitHub answered 401: GET /repos"):
            await bench.at.issue(bench.repo, bench.issue.number)
    else:
        assert (await bench.at.issue(bench.repo, bench.issue.number)).number == bench.issue.number
    assert len(bench.github.tokens.minted) == 2


@pytest.mark.acceptance("C04")
@pytest.mark.parametrize("skew", [-600, -300, 300, 600])
async def test_a_wrong_clock_is_healed_by_githubs(bench: Bench, skew: int) -> None:
    ours = Clock(bench.clock.now + skew)
    # the stand-in's web server dates its answers itself; this is what GitHub's clock says
    dated = {"Date": formatdate(bench.clock.now, usegmt=True)}
    bench.github.faults.add(Fault("POST /app/installations/*", "fail", status=401, headers=dated))
    app = GitHubApp(bench.settings, clock=ours, repeat_after=())
    token = await app.installation(bench.thread.installation).token(TokenPurpose.THREAD, bench.repo.id)
    assert token.reveal() == bench.github.tokens.minted[-1].value
    await app.close()


@pytest.mark.acceptance("F13")
async def test_a_revoked_app_key_is_a_clear_error(bench: Bench) -> None:
    bench.github.rotate_key(bench.github.state.apps[bench.settings.app_id], keep_old=False)
    with pytest.raises(Unrecognised, match="GitHub answered 401: POST /app/installations"):
        await bench.at.token(TokenPurpose.THREAD, bench.repo.id)


@pytest.mark.acceptance("F13")
async def test_a_second_app_key_serves_beside_the_first(bench: Bench) -> None:
    pem = bench.github.rotate_key(bench.github.state.apps[bench.settings.app_id])
    both = (bench.settings.private_key, Secret(pem))
    for key in both:
        settings = GitHubSettings(bench.github.url, bench.github.api_url, bench.settings.app_id, key, (), ())
        app = GitHubApp(settings, clock=bench.clock)
        assert (await app.identity()).slug == "forgehand"
        await app.close()


@pytest.mark.acceptance("C05")
@pytest.mark.parametrize("form", ["classic", "stateless"])
async def test_both_token_formats(bench: Bench, form: str) -> None:
    bench.github.tokens.format = form
    token = await bench.at.token(TokenPurpose.THREAD, bench.repo.id)
    assert (len(token.reveal()) == 40) is (form == "classic")
    await bench.outbound.comment(bench.thread, f"{BODY}\nleaked {token.reveal()}", MARKER)
    assert bench.comments == [f"{BODY}\nleaked [redacted]"]
    assert Redactor().redact(token.reveal()) == "[redacted]"


@pytest.mark.acceptance("C06")
@pytest.mark.parametrize("how", ["suspend", "uninstall", "remove", "permission"])
async def test_an_installation_that_was_taken_away(bench: Bench, how: str) -> None:
    await bench.at.token(TokenPurpose.THREAD, bench.repo.id)
    if how == "suspend":
        bench.github.suspend(bench.installed)
    elif how == "uninstall":
        bench.github.uninstall(bench.installed)
    elif how == "remove":
        bench.github.remove_repos(bench.installed, bench.github.state.repos[bench.repo.id])
    else:
        bench.installed.permissions = {"metadata": "read"}
    with pytest.raises(GitHubRefused) as refused:
        await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert refused.value.status in (403, 404)
    assert bench.comments == []
