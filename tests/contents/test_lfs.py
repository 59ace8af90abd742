"""Files of Git LFS from the webhook to the pull request: contents inside, pointers in our commits, nothing else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from bot.cli.sweep import credentials_in
from bot.git.large_files import LargeFile, Pointer
from bot.sessions import large_files
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github import gitstore
from tests.world import CONFIG, World
from tests.world.e2b import e2b_spine

ATTRIBUTES = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
PICTURE = b"\x89a picture of eighteen thousand bytes\n" + bytes(range(256)) * 70
MUSIC = b"music\n" * 2000


def tracked(world: World, *, checks: str = "test -s art/two.bin") -> None:
    """Let the shop keep pictures in LFS; one content is missing there."""
    large = world.repo.large
    files = {
        ".gitattributes": ATTRIBUTES,
        "art/one.bin": large.add(PICTURE),
        "art/two.bin": large.add(MUSIC),
        "art/gone.bin": large.add(b"nobody has this"),
        "plain.bin.txt": "no pointer\n",
        CONFIG: f"lfs: true\nsetup: cmp art/one.bin art/one.bin\nchecks: {checks}\n",
    }
    del large.held[hashlib.sha256(b"nobody has this").hexdigest()]
    world.github.commit(world.repo, "main", files)


def pointer(content: bytes) -> bytes:
    oid = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n".encode()


def bash(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "Do"})


NEW = b"new music\n" * 3000
LOOK = bash(
    "sha256sum art/*.bin; git status --short | wc -l | sed s/^/changes=/; cat .git/config; env; "
    "cat /proc/[0-9]*/environ"
)
CHANGE = bash(
    "python3 -c \"open('art/two.bin','wb').write(b'new music\\n'*3000)\"; cp art/one.bin art/three.bin; "
    "git add -A; git status --short; git diff --cached | head -30"
)


async def test_contents_come_in_and_new_ones_become_pointers_in_the_pull_request(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    tracked(world, checks="python3 -c \"assert open('art/two.bin','rb').read().startswith(b'new')\"")
    world.model.default(Script([LOOK, CHANGE, Say("Title: Change the music\n\nChanged.")]))
    async with world.bot():
        world.say("/claude change the music")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        [pull], [live] = world.pulls(), world.replies()
        heard = json.dumps([one.body["messages"] for one in world.model.requests if one.has_tools], default=str)
        for content in (PICTURE, MUSIC):
            assert hashlib.sha256(content).hexdigest() in heard, "the agent sees contents"
        assert "changes=0" in heard, "and git sees no change"
        assert "`art/gone.bin`" in live.body
        assert "has no content for them" in live.body
        assert world.repo.file(pull.head, "art/two.bin") == pointer(NEW)
        assert world.repo.file(pull.head, "art/three.bin") == pointer(PICTURE)
        assert world.repo.file(pull.head, "art/one.bin") == pointer(PICTURE)
        assert world.repo.large.held[hashlib.sha256(NEW).hexdigest()] == NEW
        assert "art/two.bin" in str(pull.body)
        assert "exit 0" in live.body, "the checks have met the new content"

        world.model.default(Script([bash("tail -c 10 art/two.bin; echo more >> shop.py"), Say("Looked.")]))
        world.say("/claude go on", on=pull)
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
        assert "new music" in json.dumps(world.model.requests[-1].body["messages"][-1], default=str)
        assert world.repo.file(pull.head, "art/two.bin") == pointer(NEW)

        world.model.default(Script([bash("printf 'half done' > art/one.bin"), Wait("half"), Say("No.")]))
        world.say("/claude change the picture", on=pull)
        await world.model.reached("half", timeout=60)
        world.say("/claude stop", on=pull)
        assert await world.outcome(2, on=pull) == "stopped", world.replies(pull)[-1].body
        world.model.release("half")
        [saved] = gitstore.refs(world.repo.path, "refs/forgehand/rescue/").values()
        assert world.repo.file(saved, "art/one.bin") == pointer(b"half done"), "saved work has pointers as well"
        assert hashlib.sha256(b"half done").hexdigest() in world.repo.large.held
    _no_token_anywhere(world, capfd)


def _no_token_anywhere(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    secrets = [one.value for one in world.github.tokens.minted]
    bodies = [one.body for one in world.replies()]
    heard = [one.body for one in world.model.requests]
    assert credentials_in(secrets, heard, bodies, world.root / "data" / "state.db") == []
    assert not [one for one in secrets if one in capfd.readouterr().err]


async def test_what_policy_or_a_lock_holds_is_not_uploaded_and_goes_on_as_it_was(world: World) -> None:
    tracked(world)
    held, large = set(world.repo.large.held), world.repo.large
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    world.model.default(
        Script([bash(f"head -c 9000 /dev/zero > art/two.bin; echo {key} >> art/two.bin"), Say("Done.")])
    )
    async with world.bot():
        world.say("/claude keep the key in the music")
        assert await world.outcome() == "refused", world.replies()[0].body
        assert "looks like a secret" in world.replies()[0].body
        assert set(large.held) | set(large.arrived) == held, "policy comes before the upload"

        large.locks.append(("art/two.bin", "carol"))
        size = bash("stat -c size=%s art/two.bin; printf 'clean music' > art/two.bin")
        world.model.default(Script([size, Say("Title: Take the key out\n\nDone.")]))
        world.say("/claude take the key out")
        assert await world.outcome(2) == "refused", world.replies()[-1].body
        assert "size=9041" in json.dumps(world.model.requests[-1].body["messages"], default=str), "the work was kept"
        assert "`art/two.bin` by `carol`" in world.replies()[-1].body
        assert set(large.held) | set(large.arrived) == held

        large.locks.clear()
        large.refusals["upload"] = (403, "This repository is over its data quota.")
        world.model.default(
            Script([bash("stat -c size=%s art/two.bin; echo >> shop.py"), Say("Title: Go on\n\nDone.")])
        )
        world.say("/claude go on")
        assert await world.outcome(3) == "refused", world.replies()[-1].body
        assert "over its data quota" in world.replies()[-1].body

        large.refusals["download"] = large.refusals.pop("upload")
        world.say("/claude go on again")
        assert await world.outcome(4) == "failed", world.replies()[-1].body
        assert "does not give out the repository's LFS files (it answered 403)" in world.replies()[-1].body

        large.refusals.clear()
        world.say("/claude go on again")
        assert await world.outcome(5) == "pull_request", world.replies()[-1].body
    [pull] = world.pulls()
    assert "size=11" in json.dumps(world.model.requests[-1].body["messages"], default=str)
    assert world.repo.file(pull.head, "art/two.bin") == pointer(b"clean music")
    assert large.held[hashlib.sha256(b"clean music").hexdigest()] == b"clean music"
    assert not large.arrived, "each upload was verified"


async def test_lfs_in_the_cloud_brings_contents_in_and_home(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        tracked(world)
        world.model.default(Script([LOOK, CHANGE, Say("Title: Change the music\n\nChanged.")]))
        async with world.bot():
            world.say("/claude change the music")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        [pull] = world.pulls()
        assert "changes=0" in json.dumps([one.body["messages"] for one in world.model.requests], default=str)
        assert world.repo.file(pull.head, "art/two.bin") == pointer(NEW)
        assert world.repo.large.held[hashlib.sha256(NEW).hexdigest()] == NEW
        tokens = [one.value for one in world.github.tokens.minted]
        assert not [call for call in e2b.calls if any(one.encode() in call.body for one in tokens)]


async def test_signed_commits_have_pointers_and_a_change_of_workflows_keeps_the_contents(world: World) -> None:
    tracked(world)
    world.github.commit(world.repo, "main", {CONFIG: "lfs: true\ncommits: verified\n"})
    workflow = ".github/workflows/ci.yml"
    both = f"printf 'kept music' > art/two.bin; mkdir -p .github/workflows; echo 'on: push' > {workflow}"
    world.model.default(Script([bash(both), Say("Title: Both\n\nDone.")]))
    async with world.bot():
        world.say("/claude change both")
        assert await world.outcome() == "refused", world.replies()[0].body
        assert "workflow files" in world.replies()[0].body
        assert not world.repo.large.arrived

        again = f"rm {workflow}; printf 'nobody has this' > art/gone.bin"
        world.model.default(Script([bash(again), Say("Title: Music\n\nDone.")]))
        world.say("/claude leave the workflow out")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
        [pull] = world.pulls()
        assert world.repo.file(pull.head, "art/two.bin") == pointer(b"kept music")
        assert world.repo.large.held[hashlib.sha256(b"kept music").hexdigest()] == b"kept music"
        assert hashlib.sha256(b"nobody has this").hexdigest() in world.repo.large.held, "it is there again"

        world.say("/claude undo", on=pull)
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
        assert world.repo.file(pull.head, "art/two.bin") == pointer(MUSIC)

        lie = pointer(PICTURE).decode().replace(f"size {len(PICTURE)}", "size 7")
        world.model.default(Script([bash(f"printf '%s\n' '{lie.strip()}' > art/lie.bin"), Say("Done.")]))
        world.say("/claude point to it", on=pull)
        assert await world.outcome(2, on=pull) == "refused", world.replies(pull)[-1].body
        assert "`art/lie.bin`" in world.replies(pull)[-1].body


def test_a_content_has_one_size_so_that_no_pointer_hides_gigabytes() -> None:
    small, lie, other = (
        LargeFile(path, "0" * 40, Pointer(oid * 64, size))
        for path, oid, size in (("a", "1", 1), ("b", "1", 400 << 20), ("c", "2", 2))
    )
    chosen, [note] = large_files._within_limits([small, lie, other])
    assert chosen == [small, other] and "`b`" in note
