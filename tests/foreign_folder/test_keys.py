"""No setting of a folder's runs a program, takes a file along or sends a credential: every one that git knows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.git.errors import GitFailed
from bot.git.run import RemoteAccess, run_git
from bot.settings import Secret
from bot.workbench import bringing
from bot.workbench import folder as folders
from tests.foreign_folder import keys
from tests.foreign_folder.keys import Key
from tests.foreign_folder.planting import Listener, plant
from tests.foreign_folder.rig import SECRET, executed, repository
from tests.slices import EVERY
from tests.world.git_remote import ENV, GitRemote, git

TOKEN = "ghs_canary-0123456789abcdefghijklmnopqrstuvwxyz"
TOGETHER = 1 if EVERY else 10
GROUPS = [keys.ROWS[start : start + TOGETHER] for start in range(0, len(keys.ROWS), TOGETHER)]
HARMLESS = Path(__file__).with_name("harmless_keys.txt").read_text(encoding="ascii").split()
PROVEN = [row for row in keys.ROWS if row.proof]

pytestmark = [
    pytest.mark.review("security-3", "security-4"),
    pytest.mark.usefixtures("home"),
]


@pytest.fixture
async def remote(tmp_path: Path) -> AsyncIterator[GitRemote]:
    (tmp_path / "remotes").mkdir()
    async with GitRemote.running(tmp_path / "remotes", TOKEN) as found:
        found.create("calc")
        git(repository(tmp_path / "dev", **{"new.txt": "new\n"}), "push", "-q", str(found.path("calc")), "main")
        yield found


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    async with Listener.running() as found:
        yield found


def test_every_setting_that_git_knows_is_judged_once() -> None:
    listed = git(Path("/"), "help", "--config").splitlines()
    known = {line.strip().lower() for line in listed if "." in line and " " not in line.strip()}
    rows = [row.name.lower() for row in keys.ROWS]
    judged = [*rows, *map(str.lower, keys.REFUSED), *map(str.lower, keys.BELIEVED), *map(str.lower, HARMLESS)]
    assert len(known) > 700
    assert sorted(known - set(judged)) == [], "put each into a row of keys.py, or into harmless_keys.txt"
    assert len(judged) == len(set(judged))


def test_what_is_believed_is_what_is_in_the_table() -> None:
    assert set(folders.HARMLESS) == {name.lower() for name in keys.BELIEVED}


@pytest.mark.parametrize("rows", GROUPS, ids=lambda rows: f"{rows[0].name}-{rows[-1].name}".replace("::", ":"))
async def test_nothing_that_is_planted_counts(
    tmp_path: Path, remote: GitRemote, listener: Listener, rows: tuple[Key, ...]
) -> None:
    planted = plant(tmp_path, rows, net=listener.address, remote=remote.url("")[: -len(".git")])
    before = planted.state()
    taken = await executed(planted.folder, tmp_path)
    assert taken.landed.branch is not None and taken.landed.applied, taken.landed
    mine = (await folders.look(planted.folder)).repository
    assert mine is not None
    access = RemoteAccess(remote.url("calc"), Secret(TOKEN))
    await bringing.branch(mine, access, "refs/heads/main", "forgehand/pulled")
    assert (planted.found(), listener.heard) == ([], [])
    assert SECRET.encode() not in taken.inside()
    assert planted.state() == before
    at = (planted.folder / ".git/refs/heads/forgehand/pulled").read_text().strip()
    assert at == git(remote.path("calc"), "rev-parse", "main")
    assert {request.path for request in remote.requests} <= {"/calc.git/info/refs", "/calc.git/git-upload-pack"}


@pytest.mark.parametrize("row", PROVEN, ids=lambda row: row.name)
async def test_what_is_planted_is_alive(tmp_path: Path, remote: GitRemote, listener: Listener, row: Key) -> None:
    """A git that believes the folder runs the program: else the rows above would prove nothing."""
    at = remote.url("")[: -len(".git")]
    planted = plant(tmp_path, [row], net=listener.address, remote=at, places=["config"])
    others = () if row.name == "core.hooksPath" else ("-c", "core.hooksPath=/dev/null")
    words = {"run": str(tmp_path / "run-0-config"), "net": listener.address, "remote": at}
    argv = [
        part.replace("{run}", words["run"]).replace("{net}", words["net"]).replace("{remote}", at) for part in row.proof
    ]
    process = await asyncio.create_subprocess_exec(
        "git", "-C", str(planted.folder), *others, *argv, stdin=-3, stdout=-3, stderr=-3,
        env={**ENV, "HOME": str(tmp_path), "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb"},
    )  # fmt: skip
    try:
        async with asyncio.timeout(30):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    trace = "hooksPath-config" if row.name == "core.hooksPath" else f"{row.name} in config"
    assert any(name.startswith(trace) for name in planted.found()), planted.found()


@pytest.mark.parametrize(
    "name", ["url.<base>.insteadOf", "remote.<name>.url", "http.proxy", "core.alternateRefsCommand"]
)
async def test_safe_settings_of_ours_alone_are_not_enough(
    tmp_path: Path, remote: GitRemote, listener: Listener, name: str
) -> None:
    """A fetch in the person's own git directory, as it was once: the folder's word wins where it is more exact."""
    [row] = [row for row in keys.ROWS if row.name == name]
    planted = plant(tmp_path, [row], net=listener.address, remote=remote.url("")[: -len(".git")])
    argv = ["fetch", "--no-tags", "--no-write-fetch-head", remote.url("calc"), "refs/heads/main:refs/heads/forgehand/x"]
    access = RemoteAccess(remote.url("calc"), Secret(TOKEN))
    with contextlib.suppress(GitFailed):
        await run_git(argv, planted.folder / ".git", access=access)
    assert planted.found() or listener.heard


async def test_two_kinds_of_repositories_ask_for_another_place(tmp_path: Path) -> None:
    """Lest a newer git makes more of an extension than a name: neither is taken, whatever stands behind it."""
    for value in ("reftable", "files:///etc", "own"):
        folder = repository(tmp_path / value.partition(":")[0])
        with (folder / ".git/config").open("a") as config:
            config.write(f"[extensions]\n\trefStorage = {value}\n")
        with pytest.raises(UserError, match="does not keep its refs in files"):
            await folders.look(folder)
