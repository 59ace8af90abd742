"""The client and the outbound door against a GitHub that fails in every way: nothing twice, nothing leaked."""

from __future__ import annotations

import asyncio
import gzip
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

import pytest

from bot.errors import BotError, GitHubRefused, GitHubUnavailable, NotFound
from bot.github.api import Api, Call
from bot.github.client import GitHubApp, Installation
from bot.github.types import CheckOutput, Purpose
from bot.models import InstallationId, Permission, Repo, RepoId, Thread
from bot.outbound import Outbound, Redactor, TextKind
from bot.outbound.pace import Pace
from bot.settings import GitHubSettings, Secret
from bot.simulation.github import state
from bot.simulation.github.faults import Fault
from bot.simulation.github.simulated import SimulatedGitHub

MARKER = "<!-- forgehand:session=abcd1234 turn=1"
BODY = f"{MARKER} state=queued -->\nQueued."
CREATE_COMMENT = "POST /repos/*/issues/*/comments"


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """The two sides, and what the tests look at."""

    github: SimulatedGitHub
    settings: GitHubSettings
    app: GitHubApp
    outbound: Outbound
    redactor: Redactor
    thread: Thread
    issue: state.Issue
    installed: state.Installation
    clock: Clock
    secrets: list[str] = field(default_factory=list, repr=False)
    retired: list[str] = field(default_factory=list)

    @property
    def repo(self) -> Repo:
        return self.thread.repo

    @property
    def at(self) -> Installation:
        return self.app.installation(self.thread.installation)

    def sent(self, match: str) -> int:
        return sum(str(call).startswith(match) for call in self.github.calls)

    @property
    def comments(self) -> list[str]:
        return [comment.body for comment in self.issue.comments if not comment.deleted]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = Clock()
    async with SimulatedGitHub.running(tmp_path, clock=clock) as github:
        app = github.create_app()
        repo = github.create_repo("octo/calc", files={"a.py": "x = 1\n", ".github/forgehand.yml": "model: m\n"})
        installed = github.install(app, repos=[repo])
        issue = github.open_issue(repo, title="Broken", body="It *is*.", by="alice")
        settings = GitHubSettings(github.url, github.api_url, app.id, Secret(app.private_key_pem), (), ())
        secrets: list[str] = []
        retired: list[str] = []
        redactor = Redactor()

        def on_secret(value: str) -> None:
            secrets.append(value)
            redactor.register(value)

        ours = GitHubApp(settings, clock=clock, on_secret=on_secret, on_retired=retired.append, repeat_after=(0.0, 0.0))
        outbound = Outbound(ours, redactor, pace=Pace(clock), look_after=(0.0, 0.0))
        where = Repo(RepoId(repo.id), "octo", "calc", True, "main")
        thread = Thread(where, InstallationId(installed.id), issue.number, False)
        yield Bench(github, settings, ours, outbound, redactor, thread, issue, installed, clock, secrets, retired)
        await ours.close()


async def test_who_we_are(bench: Bench) -> None:
    who = await bench.app.identity()
    assert (who.slug, who.owner, who.bot_login) == ("forgehand", "octo", "forgehand[bot]")
    assert who.bot_id == bench.github.user("forgehand[bot]").id
    before = len(bench.github.calls)
    assert await bench.app.identity() is who
    assert len(bench.github.calls) == before


async def test_who_we_are_before_anybody_installed_it(bench: Bench) -> None:
    bench.github.uninstall(bench.installed)
    assert (await bench.app.identity()).bot_login == "forgehand[bot]"


async def test_reads(bench: Bench) -> None:
    at, repo = bench.at, bench.repo
    issue = await at.issue(repo, bench.issue.number)
    assert (issue.title, issue.body, issue.author.login, issue.is_pull) == ("Broken", "It *is*.", "alice", False)
    assert issue.body_text.strip() == "It is."
    assert await at.file(repo, ".github/forgehand.yml", "main") == b"model: m\n"
    assert await at.file(repo, "no/such", "main") is None
    assert await at.file(repo, "../../../user", "main") is None
    assert await at.file(repo, ".github", "main") is None
    assert await at.branch_sha(repo, "no/such") is None
    assert len(await at.branch_sha(repo, "main") or "") == 40
    assert (await at.repo("octo/calc")).default_branch == "main"
    assert await at.pull_by_head(repo, "main") is None
    with pytest.raises(NotFound):
        await at.issue(repo, 99)


async def test_permission(bench: Bench) -> None:
    bench.github.state.repos[bench.repo.id].grant("alice", "maintain")
    alice = bench.github.user("alice").id
    bench.github.user("eve")
    assert await bench.at.permission(bench.repo, "alice") == (alice, Permission.MAINTAIN)
    assert (await bench.at.permission(bench.repo, "eve"))[1] is Permission.NONE
    with pytest.raises(NotFound):
        await bench.at.permission(bench.repo, "nobody-of-that-name")


@pytest.mark.acceptance("B11")
async def test_the_newest_comments_of_a_long_thread(bench: Bench) -> None:
    for number in range(250):
        bench.github.comment(bench.issue, f"n{number}", by="alice")
    found = await bench.at.comments(bench.repo, bench.issue.number, 60)
    assert [comment.body for comment in found] == [f"n{number}" for number in range(190, 250)]
    assert len(await bench.at.comments(bench.repo, bench.issue.number, 1000)) == 250


async def test_a_comment_is_found_by_its_marker_and_author(bench: Bench) -> None:
    bench.github.comment(bench.issue, BODY, by="alice")
    bench.github.comment(bench.issue, BODY.replace("turn=1", "turn=10"), by="forgehand[bot]")
    bench.github.comment(bench.issue, f"> {BODY}", by="forgehand[bot]")
    me = (await bench.app.identity()).bot_id
    assert await bench.at.find_comment(bench.repo, bench.issue.number, MARKER, me) is None
    ours = bench.github.comment(bench.issue, BODY, by="forgehand[bot]")
    assert await bench.at.find_comment(bench.repo, bench.issue.number, MARKER, me) == (ours.id, BODY)


# Tokens


async def test_a_token_is_narrow_and_kept(bench: Bench) -> None:
    first = await bench.at.token(Purpose.PUSH, bench.repo.id)
    minted = bench.github.tokens.minted[-1]
    assert minted.permissions == {"contents": "write", "metadata": "read"}
    assert minted.repository_ids == frozenset({bench.repo.id})
    assert await bench.at.token(Purpose.PUSH, bench.repo.id) is first
    assert await bench.at.token(Purpose.PUSH, bench.repo.id, fresh=True) is not first
    assert bench.secrets == [token.value for token in bench.github.tokens.minted]


async def test_many_callers_mint_once(bench: Bench) -> None:
    tokens = await asyncio.gather(*(bench.at.token(Purpose.THREAD, bench.repo.id) for _ in range(20)))
    assert len(set(map(id, tokens))) == len(bench.github.tokens.minted) == 1


async def test_a_token_is_replaced_five_minutes_early(bench: Bench) -> None:
    await bench.at.token(Purpose.THREAD, bench.repo.id)
    bench.clock.now += 3290
    await bench.at.token(Purpose.THREAD, bench.repo.id)
    assert len(bench.github.tokens.minted) == 1
    bench.clock.now += 20
    await bench.at.token(Purpose.THREAD, bench.repo.id)
    assert len(bench.github.tokens.minted) == 2
    bench.clock.now += 7200
    await bench.at.token(Purpose.THREAD, bench.repo.id)
    assert bench.retired == [token.value for token in bench.github.tokens.minted[:2]]


@pytest.mark.acceptance("C04")
@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_a_dead_token_is_replaced_once(bench: Bench, how: str) -> None:
    await bench.at.token(Purpose.THREAD, bench.repo.id)
    for token in bench.github.tokens.minted:
        if how == "revoked":
            token.revoked = True
        else:
            token.expires_at = bench.clock.now - 1
    results = await asyncio.gather(*(bench.at.issue(bench.repo, bench.issue.number) for _ in range(5)))
    assert len(results) == 5
    assert len(bench.github.tokens.minted) == 2


@pytest.mark.acceptance("C04")
async def test_a_second_401_is_an_error(bench: Bench) -> None:
    bench.github.faults.add(Fault("GET /repos/*/issues/*", "fail", status=401, times=None))
    with pytest.raises(GitHubRefused, match="401"):
        await bench.at.issue(bench.repo, bench.issue.number)
    assert bench.sent("GET /repos") == 2


@pytest.mark.acceptance("C04")
@pytest.mark.parametrize("skew", [-600, -300, 300, 600])
async def test_a_wrong_clock_is_healed_by_githubs(bench: Bench, skew: int) -> None:
    ours = Clock(bench.clock.now + skew)
    # the stand-in's web server dates its answers itself; this is what GitHub's clock says
    dated = {"Date": formatdate(bench.clock.now, usegmt=True)}
    bench.github.faults.add(Fault("POST /app/installations/*", "fail", status=401, headers=dated))
    app = GitHubApp(bench.settings, clock=ours, repeat_after=())
    token = await app.installation(bench.thread.installation).token(Purpose.THREAD, bench.repo.id)
    assert token.reveal() == bench.github.tokens.minted[-1].value
    await app.close()


@pytest.mark.acceptance("F13")
async def test_a_revoked_app_key_is_a_clear_error(bench: Bench) -> None:
    bench.github.rotate_key(bench.github.state.apps[bench.settings.app_id], keep_old=False)
    with pytest.raises(GitHubRefused, match="401"):
        await bench.at.token(Purpose.THREAD, bench.repo.id)


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
    token = await bench.at.token(Purpose.THREAD, bench.repo.id)
    assert (len(token.reveal()) == 40) is (form == "classic")
    await bench.outbound.comment(bench.thread, f"{BODY}\nleaked {token.reveal()}", MARKER)
    assert bench.comments == [f"{BODY}\nleaked [redacted]"]
    assert Redactor().redact(token.reveal()) == "[redacted]"


@pytest.mark.acceptance("C06")
@pytest.mark.parametrize("how", ["suspend", "uninstall", "remove", "permission"])
async def test_an_installation_that_was_taken_away(bench: Bench, how: str) -> None:
    await bench.at.token(Purpose.THREAD, bench.repo.id)
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


# Faults of the wire


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
    assert await bench.at.token(Purpose.THREAD, bench.repo.id)


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/api/v3", "http://no-such-host.invalid", "https://127.0.0.1:1"])
async def test_a_host_that_cannot_be_reached(bench: Bench, url: str) -> None:
    api = Api(url, (0.0,))
    with pytest.raises(GitHubUnavailable, match="could not be reached"):
        await api.send(Call("POST", "/x"), Secret("token t"))
    await api.close()


@pytest.mark.acceptance("C01")
async def test_no_tls_at_the_other_end(bench: Bench) -> None:
    api = Api(bench.github.api_url.replace("http:", "https:"), ())
    with pytest.raises(GitHubUnavailable, match="ConnectError"):
        await api.send(Call("GET", "/zen"), None)
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


# The door


@pytest.mark.acceptance("C02")
@pytest.mark.parametrize("kind", ["lose", "fail_after", "truncate"])
async def test_a_comment_whose_answer_was_lost_is_adopted(bench: Bench, kind: str) -> None:
    bench.github.faults.add(Fault(CREATE_COMMENT, kind))  # type: ignore[arg-type]
    made = await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert bench.comments == [BODY]
    assert bench.issue.comments[0].id == made
    assert await bench.outbound.comment(bench.thread, BODY, MARKER) == made
    assert bench.sent("POST /repos/octo/calc/issues/1/comments") == 1


@pytest.mark.acceptance("C01")
@pytest.mark.parametrize("kind", ["reset", "fail"])
async def test_a_comment_that_was_not_made_is_made(bench: Bench, kind: str) -> None:
    bench.github.faults.add(Fault(CREATE_COMMENT, kind))  # type: ignore[arg-type]
    await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert bench.comments == [BODY]


@pytest.mark.acceptance("C02")
async def test_a_comment_lost_by_a_process_that_died_is_adopted(bench: Bench) -> None:
    """The answer and the read-back are lost; the next attempt finds the comment."""
    bench.github.faults.add(Fault(CREATE_COMMENT, "lose"))
    bench.github.faults.add(Fault("GET /repos/*/comments", "fail", times=3, skip=1))
    with pytest.raises(GitHubUnavailable):
        await bench.outbound.comment(bench.thread, BODY, MARKER)
    await bench.outbound.comment(bench.thread, BODY, MARKER)
    assert bench.comments == [BODY]


def _pull(bench: Bench, *, draft: bool = True) -> Awaitable[object]:
    return bench.outbound.open_pull(
        bench.thread, title="Fix @x", body="Closes #1, fixes #2", head="forgehand/1-abcd1234", base="main", draft=draft
    )


@pytest.fixture
def branch(bench: Bench) -> None:
    repo = bench.github.state.repos[bench.repo.id]
    bench.github.commit(repo, "forgehand/1-abcd1234", {"a.py": "x = 2\n"})


@pytest.mark.acceptance("C02")
@pytest.mark.usefixtures("branch")
@pytest.mark.parametrize("kind", ["lose", "fail_after", "reset", "fail"])
async def test_one_pull_request_whatever_happens(bench: Bench, kind: str) -> None:
    bench.github.faults.add(Fault("POST /repos/*/pulls", kind))  # type: ignore[arg-type]
    first = await _pull(bench)
    assert await _pull(bench) == first
    assert len(bench.github.state.repos[bench.repo.id].pulls) == 1


@pytest.mark.acceptance("D09")
@pytest.mark.usefixtures("branch")
async def test_a_pull_request_closes_its_own_issue_only(bench: Bench) -> None:
    await _pull(bench)
    pull = await bench.at.pull_by_head(bench.repo, "forgehand/1-abcd1234")
    assert pull is not None
    assert (pull.title, pull.body, pull.draft) == ("Fix @ x", "Closes #1, fixes #<!-- -->2", True)


@pytest.mark.usefixtures("branch")
async def test_where_drafts_are_not_to_be_had(bench: Bench) -> None:
    refusal = '{"message": "Draft pull requests are not supported in this repository."}'
    bench.github.faults.add(Fault("POST /repos/*/pulls", "fail", status=422, body=refusal))
    await _pull(bench)
    pull = await bench.at.pull_by_head(bench.repo, "forgehand/1-abcd1234")
    assert pull is not None
    assert not pull.draft


@pytest.mark.acceptance("C07")
async def test_a_deleted_comment_is_not_found(bench: Bench) -> None:
    made = await bench.outbound.comment(bench.thread, BODY, MARKER)
    await bench.outbound.edit_comment(bench.thread, made, BODY.replace("queued", "running"))
    bench.github.delete_comment(bench.issue.comments[0])
    with pytest.raises(NotFound):
        await bench.outbound.edit_comment(bench.thread, made, BODY)


async def test_reactions_are_one(bench: Bench) -> None:
    comment = bench.github.comment(bench.issue, "/claude fix", by="alice")
    bench.github.faults.add(Fault("POST /repos/*/reactions", "lose"))
    await bench.outbound.react(bench.thread, comment.id, "eyes")
    await bench.outbound.react(bench.thread, None, "eyes")
    assert len(comment.reactions) == 1


@pytest.mark.acceptance("C02")
async def test_one_check_run(bench: Bench) -> None:
    sha = await bench.at.branch_sha(bench.repo, "main")
    assert sha
    bench.github.faults.add(Fault("POST /repos/*/check-runs", "lose"))

    async def say(output: CheckOutput) -> int:
        return await bench.outbound.check(bench.thread, sha=sha, name="Forgehand", external_id="t1", output=output)

    first = await say(CheckOutput("Working", "…"))
    assert await say(CheckOutput("Done", "ok", "success")) == first
    run = await bench.at.check_run(bench.repo, sha, "Forgehand", "t1")
    assert run is not None
    assert (run.status, run.conclusion) == ("completed", "success")


async def test_changes_are_made_one_at_a_time(bench: Bench) -> None:
    hold = bench.github.faults.add(Fault("POST /repos/*/reactions", "hold"))
    first = asyncio.create_task(bench.outbound.react(bench.thread, None, "eyes"))
    async with asyncio.timeout(10):
        await hold.reached.wait()
    second = asyncio.create_task(bench.outbound.react(bench.thread, None, "rocket"))
    assert (await bench.at.issue(bench.repo, bench.issue.number)).title == "Broken"
    assert bench.sent("POST /repos") == 1
    hold.release.set()
    await asyncio.gather(first, second)
    assert bench.sent("POST /repos") == 2


async def test_the_delivery_log(bench: Bench) -> None:
    page = await bench.app.deliveries()
    assert page.items == ()
    assert page.next_cursor is None


@pytest.mark.acceptance("D12")
@pytest.mark.parametrize("kind", list(TextKind))
def test_each_kind_has_its_limit(bench: Bench, kind: TextKind) -> None:
    limit = {TextKind.TITLE: 256, TextKind.CHECK: 65_535}.get(kind, 65_536)
    fill: list[Callable[[], str]] = [
        lambda: "@bob " * 40_000,
        lambda: "word " * 40_000,
        lambda: "x" * 200_000,
        lambda: "line with 😀\n" * 20_000,
        lambda: "```\n" + "code\n" * 40_000,
    ]
    for make in fill:
        out = bench.outbound.text(kind, make())
        assert 0 < len(out.encode("utf-16-le")) // 2 <= limit
