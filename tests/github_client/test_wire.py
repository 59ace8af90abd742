"""The client against a GitHub that fails in every way: repeated or refused, and no credential in an error."""

from __future__ import annotations

import gzip
import traceback
from email.utils import formatdate
from pathlib import Path

import pytest

from bot.errors import BotError, GitHubUnavailable
from bot.github.api import Api, ApiCall
from bot.github.types import TokenPurpose
from bot.settings import Secret
from bot.simulation.github.faults import Fault
from bot.simulation.github.simulated import SimulatedGitHub
from tests.github_client.bench import BODY, CREATE_COMMENT, MARKER, Bench


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize("kind", ["fail", "reset", "lose", "truncate"])
async def test_a_read_is_repeated(bench: Bench, kind: str) -> None:
    bench.github.faults.add(Fault("GET /repos/*/issues/*", kind, times=2))  # type: ignore[arg-type]
    assert (await bench.at.issue(bench.repo, bench.issue.number)).title == "Broken"


@pytest.mark.acceptance("C01")
async def test_a_read_that_keeps_failing(bench: Bench) -> None:
    bench.github.faults.add(Fault("GET /repos/*/issues/*", "fail", times=None))
    with pytest.raises(GitHubUnavailable, match="502"):
        await bench.at.issue(bench.repo, bench.issue.number)
    assert bench.sent("GET /repos") == 3


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize("kind", ["fail", "reset", "lose"])
async def test_a_mint_is_repeated(bench: Bench, kind: str) -> None:
    bench.github.faults.add(Fault("POST /app/installations/*", kind))  # type: ignore[arg-type]
    assert await bench.at.token(TokenPurpose.THREAD, bench.repo.id)


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/api/v3", "http://no-such-host.invalid", "https://127.0.0.1:1"])
async def test_a_host_that_cannot_be_reached(bench: Bench, url: str) -> None:
    api = Api(url, (0.0,))
    with pytest.raises(GitHubUnavailable, match="could not be reached"):
        await api.send(ApiCall("POST", "/x"), Secret("token t"))
    await api.close()


@pytest.mark.acceptance("C01")
async def test_no_tls_at_the_other_end(bench: Bench) -> None:
    api = Api(bench.github.api_url.replace("http:", "https:"), ())
    with pytest.raises(GitHubUnavailable, match="ConnectError"):
        await api.send(ApiCall("GET", "/zen"), None)
    await api.close()


@pytest.mark.acceptance("C03")
@pytest.mark.parametrize(
    ("status", "headers", "body", "wait"),
    [
        (403, {"Retry-After": "120"}, None, 120),
        (429, {"Retry-After": "0"}, None, 1),
        (429, {}, None, 75),
        (403, {}, '{"message": "You have exceeded a secondary rate limit."}', 75),
        (403, {"Retry-After": "garbage"}, None, 75),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "never", "Retry-After": "9"}, None, 9),
    ],
)
async def test_a_rate_limit(bench: Bench, status: int, headers: dict[str, str], body: str | None, wait: float) -> None:
    fault = Fault(CREATE_COMMENT, "fail", status=status, headers=headers, body=body)
    bench.github.faults.add(fault)
    with pytest.raises(GitHubUnavailable) as limited:
        await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert limited.value.retry_after == wait
    before = len(bench.github.calls)
    with pytest.raises(GitHubUnavailable) as paused:
        await bench.outbound.react(bench.thread, None, "eyes")
    assert paused.value.retry_after == wait
    assert len(bench.github.calls) == before
    bench.clock.now += wait
    await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert bench.comments == [BODY]


@pytest.mark.acceptance("C03")
async def test_the_hourly_limit_names_its_end(bench: Bench) -> None:
    now = bench.clock.now
    headers = {
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int(now) + 600),
        "Date": formatdate(now, usegmt=True),
    }
    bench.github.faults.add(Fault("GET /repos/*/issues/*", "fail", status=403, headers=headers))
    with pytest.raises(GitHubUnavailable) as limited:
        await bench.at.issue(bench.repo, bench.issue.number)
    assert limited.value.retry_after == pytest.approx(600, abs=1)


@pytest.mark.acceptance("C08")
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ("<html>down for maintenance</html>", {"Content-Type": "text/html"}),
        ('{"number": 1, "title": ', {}),
        ('{"message": "Server Error"}', {}),
        ("[]", {}),
        ("", {}),
        ("[" * 100_000, {}),
        (b"\xff\xfe\x00", {}),
        (gzip.compress(b'{"number": 1}' * 50, mtime=0)[:40], {"Content-Encoding": "gzip"}),
        (b"not gzip", {"Content-Encoding": "gzip"}),
    ],
)
async def test_an_answer_that_is_none(bench: Bench, body: str | bytes, headers: dict[str, str]) -> None:
    fault = Fault("GET /repos/*/issues/*", "fail", status=200, body=body, headers=headers, times=None)
    bench.github.faults.add(fault)
    with pytest.raises(GitHubUnavailable):
        await bench.at.issue(bench.repo, bench.issue.number)


@pytest.mark.acceptance("C08")
async def test_no_redirect_to_another_host(bench: Bench, tmp_path: Path) -> None:
    async with SimulatedGitHub.running(tmp_path / "other") as other:
        headers = {"Location": f"{other.api_url}/repos/octo/calc/issues/1"}
        bench.github.faults.add(Fault("GET /repos/*/issues/*", "fail", status=302, headers=headers, times=None))
        with pytest.raises(GitHubUnavailable, match="another host"):
            await bench.at.issue(bench.repo, bench.issue.number)
        assert other.calls == []


@pytest.mark.acceptance("C08")
async def test_redirects_in_circles(bench: Bench) -> None:
    headers = {"Location": "/api/v3/repos/octo/calc/issues/1"}
    bench.github.faults.add(Fault("GET /repos/*/issues/*", "fail", status=301, headers=headers, times=None))
    with pytest.raises(GitHubUnavailable, match="circles"):
        await bench.at.issue(bench.repo, bench.issue.number)


@pytest.mark.acceptance("B06")
async def test_a_renamed_repository_is_followed(bench: Bench) -> None:
    bench.github.rename_repo(bench.github.state.repos[bench.repo.id], "renamed")
    assert (await bench.at.issue(bench.repo, bench.issue.number)).title == "Broken"
    await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert bench.comments == [BODY]


@pytest.mark.acceptance("F15")
@pytest.mark.parametrize(
    "fault",
    [
        Fault("* /repos/*", "fail", times=None),
        Fault("* /repos/*", "fail", status=422, times=None),
        Fault("* /repos/*", "reset", times=None),
        Fault("* /repos/*", "fail", status=200, body="<html>", times=None),
        Fault("POST /app/*", "fail", status=403, times=None),
        Fault("POST /app/*", "fail", status=201, body='{"token": "ghs_abc"', times=None),
    ],
    ids=str,
)
async def test_no_error_carries_a_credential(bench: Bench, fault: Fault) -> None:
    """Neither in its text nor anywhere that a crash report with local variables would look."""
    bench.github.faults.add(fault)
    with pytest.raises(BotError) as caught:
        await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    report = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    for secret in (*bench.secrets, bench.settings.private_key.reveal()[40:80], "eyJ"):
        assert secret not in report
