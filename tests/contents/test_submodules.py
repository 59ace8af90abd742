"""Submodules from the webhook to the pull request: whose files come in, where pointers may move, what stays out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.cli.sweep import credentials_in
from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.github import gitstore
from bot.simulation.github.state import Repository
from tests.world import CONFIG, World
from tests.world.e2b import e2b_spine

MODULES = """\
[submodule "lib"]
\tpath = lib
\turl = ../lib.git
[submodule "secret"]
\tpath = secret
\turl = git@{host}:octo-org/secret.git
[submodule "third"]
\tpath = third
\turl = {url}/elsewhere/third
[submodule "twice"]
\tpath = twice
\turl = ../lib.git
[submodule "twice"]
\tpath = twice
\turl = ../secret.git
"""
HOSTILE = """\
[submodule "ours"]
\tpath = ../outside
\turl = ../lib.git
\tupdate = !touch /tmp/forgehand-was-here
[submodule "option"]
\tpath = option
\turl = --upload-pack=touch /tmp/forgehand-was-here
"""
"""GitHub takes no such file from a push, but a repository may be older than that."""
LOOK = Call(
    "Bash",
    {
        "command": "git submodule update --init --recursive; git -C lib log --oneline; "
        "cat lib/lib.py lib/inner/inner.py; ls -A secret third option twice; git status --short"
    },
)
CLOSED = ("secret", "third", "twice", "unnamed")


@asynccontextmanager
async def linked(world: World, more: str = "") -> AsyncIterator[tuple[Repository, str]]:
    """Give the shop a submodule that alice may read, which has one inside, and others that stay closed."""
    github = world.github
    inner = github.create_repo("octo-org/inner", {"inner.py": "INNER = 'in-the-inner'\n"}, private=True)
    lib = github.create_repo("octo-org/lib", {"lib.py": "LIB = 'first'\n"}, private=True)
    secret = github.create_repo("octo-org/secret", {"secret.py": "SECRET = 'not-for-alice'\n"}, private=True)
    third = github.create_repo("elsewhere/third", {"third.py": "THIRD = 3\n"}, private=False)
    for repo in (inner, lib):
        repo.grant("alice", "read")
    github.add_repos(world.installation, inner, lib, secret)
    modules = f'[submodule "inner"]\n\tpath = inner\n\turl = {github.url}/octo-org/inner\n'
    first = github.link(lib, {"inner": str(inner.branch_sha("main"))}, modules)
    newer = github.commit(lib, "main", {"lib.py": "LIB = 'newer'\n"})
    host = github.url.removeprefix("http://").partition(":")[0]
    heads = {"lib": first, "secret": str(secret.branch_sha("main")), "third": str(third.branch_sha("main"))}
    links = {**heads, **dict.fromkeys(("option", "twice", "unnamed"), first)}
    github.link(world.repo, links, MODULES.format(host=host, url=github.url) + more)
    config = "submodules: true\nsetup: cat lib/*.py && test -f lib/inner/inner.py\nchecks: grep -q newer lib/lib.py\n"
    github.commit(world.repo, "main", {CONFIG: config})
    yield lib, newer


def _heard(world: World) -> str:
    return json.dumps([one.body["messages"] for one in world.model.requests if one.has_tools], default=str)


async def test_submodules_come_in_and_their_pointers_move_for_those_who_may_read_them(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    async with linked(world) as (lib, newer), world.bot():
        move = "git -C lib checkout -q origin/main && echo mine >> lib/notes.txt"
        sweep = "env; git config -l; cat .git/config lib/.git/config; cat /proc/[0-9]*/environ | tr '\\0' '\\n'"
        find = (
            "find / \\( -path /proc -o -path /sys -o -path /usr \\) -prune -o -type f -size -64k -print0 2>/dev/null | "
            "xargs -0 -r grep -haE 'ghs_|x-access-token' 2>/dev/null | cut -c1-300; true"
        )
        calls = [LOOK, *(Call("Bash", {"command": one}) for one in (sweep, find, move))]
        world.model.default(Script([*calls, Say("Title: Take the newer lib\n\nMoved.")]))
        world.say("/claude take the newer lib")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        [pull] = world.pulls()
        entries = gitstore.entries(world.repo.path, pull.head)
        assert entries["lib"] == ("160000", newer)
        assert not [path for path in entries if path.startswith("lib/")]
        heard, [live] = _heard(world), world.replies()
        assert "in-the-inner" in heard
        assert "not-for-alice" not in heard
        assert "THIRD" not in heard
        for path in CLOSED:
            assert f"The submodule `{path}` stays empty" in live.body, live.body
        assert "files in this submodule changed" in live.body
        assert "✓ `grep -q newer lib/lib.py` exit 0" in live.body
        assert "**Submodules moved**" in str(pull.body)

        world.model.default(
            Script(
                [
                    Call(
                        "Bash",
                        {"command": "cd lib && git -c user.name=a -c user.email=a@b commit -qam x --allow-empty"},
                    ),
                    Say("Done."),
                ]
            )
        )
        world.say("/claude change lib", on=pull)
        assert await world.outcome(on=pull) == "refused", world.replies(pull)
        assert "octo-org/lib has no commit" in world.replies(pull)[-1].body
        assert gitstore.entries(world.repo.path, pull.head)["lib"] == ("160000", newer)

        world.repo.grant("bob", "write")  # who may not read lib
        world.say("/claude ask what is in lib?", by="bob", on=pull)
        assert await world.outcome(2, on=pull) == "failed", world.replies(pull)[-1].body
        told = world.replies(pull)[-1].body
        assert "The submodule `lib` stays empty" in told, "which is why the setup failed"
        assert "LIB =" not in told
    tokens = world.github.tokens.minted
    scopes = {ids for one in tokens if (ids := one.repository_ids) and one.permissions.get("contents")}
    assert all(len(one) == 1 for one in scopes)
    assert lib.id in {number for one in scopes for number in one}
    assert not [
        one for one in tokens if lib.id in (one.repository_ids or ()) and one.permissions.get("contents") == "write"
    ]
    secrets = [one.value for one in tokens]
    bodies = [one.body for one in world.replies()] + [str(pull.body)]
    assert (
        credentials_in(secrets, [one.body for one in world.model.requests], bodies, world.root / "data" / "state.db")
        == []
    )
    assert not [one for one in secrets if one in capfd.readouterr().err]


async def test_private_submodules_of_a_public_repository_stay_out_also_in_the_cloud(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b), linked(world, HOSTILE) as (lib, _):
        world.repo.private = False
        world.github.commit(world.repo, "main", {CONFIG: "submodules: true\n"})
        world.model.default(Script([LOOK, Say("Looked.")]))
        async with world.bot():
            world.say("/claude ask what is in lib?")
            assert await world.outcome() == "answered", world.replies()[0].body
            assert "The submodule `option` stays empty: its address" in world.replies()[0].body
            assert "octo-org/lib is private" in world.replies()[0].body
            assert "LIB =" not in _heard(world)
            lib.private = False
            world.say("/claude ask and now?")
            assert await world.outcome(2) == "answered", world.replies()[-1].body
        heard = _heard(world)
        assert "first" in heard, "a public submodule comes in, in the cloud too"
        assert "in-the-inner" not in heard, "the one inside is still private"
        tokens = [one.value for one in world.github.tokens.minted]
        assert not [call for call in e2b.calls if any(one.encode() in call.body for one in tokens)]
