"""Clone and push with real git over HTTP."""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
from pathlib import Path

from bot.simulation.github import Fault
from tests.simulation.scene import Receiver, Scene, clone, commit_all, commit_empty, git


async def test_clone_and_push(scene: Scene, tmp_path: Path, receiver: Receiver) -> None:
    token = await scene.mint()
    work = tmp_path / "work"
    assert await clone(scene, work, token, "-q") == (0, "")
    assert (work / "lib/b.py").read_text() == "x = 1\n"
    (work / "new.py").write_text("n\n")
    await commit_all(work, "forgehand/1")
    pull_body = {"title": "T", "head": "forgehand/1", "base": "main"}
    code, _, err = await git("push", "-q", "origin", "forgehand/1", cwd=work, token=token)
    assert code == 0, err
    _, sha, _ = await git("rev-parse", "HEAD", cwd=work)
    assert scene.repo.branch_sha("forgehand/1") == sha.strip()
    assert scene.repo.file("forgehand/1", "new.py") == b"n\n"
    assert "+n" in scene.repo.diff("main", "forgehand/1")
    await asyncio.to_thread(scene.repo.checkout_to, tmp_path / "seen", "forgehand/1")
    assert (tmp_path / "seen/new.py").read_text() == "n\n"
    made = await scene.call("POST", "/repos/octo/calc/pulls", pull_body, auth=token)
    (work / "new.py").write_text("m\n")
    await git("commit", "-qam", "more", cwd=work)
    assert (await git("push", "-q", "origin", "forgehand/1", cwd=work, token=token))[0] == 0
    pull = scene.repo.pulls[made.json()["number"]]
    assert pull.head_sha == scene.repo.branch_sha("forgehand/1") != sha.strip()
    await scene.github.idle()
    assert sorted(receiver.events()) == ["pull_request.opened", "pull_request.synchronize", "push.", "push."]
    push = next(each.payload for each in receiver.got if each.headers["x-github-event"] == "push")
    assert (push["ref"], push["sender"]["login"]) == ("refs/heads/forgehand/1", "forgehand[bot]")


async def test_git_credentials(scene: Scene, tmp_path: Path) -> None:
    reader = await scene.mint(permissions={"contents": "read"})
    none = await scene.mint(permissions={"issues": "write"})
    work = tmp_path / "work"
    assert (await clone(scene, work, "ghs_wrong"))[0] == 128
    assert (await clone(scene, work, none))[0] == 128
    code, err = await clone(scene, work, reader, "--depth=1")
    assert code == 0, err
    await git("checkout", "-q", "-b", "x", cwd=work)
    code, _, err = await git("push", "origin", "x", cwd=work, token=reader)
    assert (code, "403" in err) == (128, True)
    code, _, err = await git("fetch", cwd=work)
    assert (code, "could not read Username" in err) == (128, True)
    other = scene.github.create_repo("octo/other", {"a": "b"})
    url = f"{scene.github.url}/{other.full_name}.git"
    code, _, err = await git("ls-remote", url, cwd=work, token=await scene.mint())
    assert (code, "not found" in err) == (128, True)
    scene.clock.now += 3600
    assert (await git("fetch", cwd=work, token=reader))[0] == 128


async def test_push_rules(scene: Scene, tmp_path: Path) -> None:
    token = await scene.mint()
    work = tmp_path / "work"
    await clone(scene, work, token, "-q")
    main = scene.repo.branch_sha("main")
    scene.github.protect(scene.repo, "main")
    scene.github.protect(scene.repo, "release/*", "- Commits must have verified signatures.", ruleset=True)
    scene.repo.max_file_bytes = 1000
    (work / "new.py").write_text("n\n")
    await commit_all(work, "work")

    async def push(spec: str) -> tuple[int, str]:
        code, _, err = await git("push", "--porcelain", "origin", spec, cwd=work, token=token)
        _, out, _ = await git("status", "--short", cwd=work)
        assert out == ""
        return code, err

    code, err = await push("work:main")
    assert code == 1
    assert "remote: error: GH006: Protected branch update failed for refs/heads/main." in err
    assert "Changes must be made through a pull request." in err
    code, err = await push("work:release/1")
    assert (code, "GH013" in err, "verified signatures" in err) == (1, True, True)
    assert (await push("work:refs/pull/1/head"))[0] == 1
    assert (await push("work"))[0] == 0
    (work / ".github/workflows").mkdir(parents=True)
    (work / ".github/workflows/ci.yml").write_text("on: push\n")
    await commit_all(work, "flow")
    code, out, err = await git("push", "--porcelain", "origin", "flow", cwd=work, token=token)
    text = "refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows`"
    assert (code, text in out + err) == (1, True)
    await git("checkout", "-q", "work", cwd=work)
    (work / "big.bin").write_bytes(b"x" * 1001)
    await commit_all(work, "big")
    code, err = await push("big")
    assert (code, "GH001" in err, "File big.bin is" in err) == (1, True, True)
    assert scene.repo.branch_sha("main") == main
    assert set(scene.repo.branches()) == {"main", "work"}


async def test_workflow_file_that_is_there_already_may_be_branched(scene: Scene, tmp_path: Path) -> None:
    scene.github.commit(scene.repo, "main", {".github/workflows/ci.yml": "on: push\n"})
    token = await scene.mint()
    work = tmp_path / "work"
    await clone(scene, work, token, "-q")
    (work / "new.py").write_text("n\n")
    await commit_all(work, "work")
    assert (await git("push", "origin", "work", cwd=work, token=token))[0] == 0
    scene.installation.permissions["workflows"] = "write"
    (work / ".github/workflows/ci.yml").write_text("on: pull_request\n")
    await commit_all(work, "flow")
    assert (await git("push", "origin", "flow", cwd=work, token=await scene.mint()))[0] == 0


async def test_push_whose_answer_is_lost(scene: Scene, tmp_path: Path) -> None:
    token = await scene.mint()
    work = tmp_path / "work"
    await clone(scene, work, token, "-q")
    await commit_empty(work, "lost")
    lost = scene.github.faults.add(Fault("POST *git-receive-pack", "lose", times=2))
    code, _, err = await git("push", "origin", "lost", cwd=work, token=token)
    assert (code, lost.hits, "unexpected disconnect" in err) == (1, 2, True), err
    assert scene.repo.branch_sha("lost")
    await commit_empty(work, "cut")
    scene.github.faults.add(Fault("POST *git-receive-pack", "reset", times=2))
    assert (await git("push", "origin", "cut", cwd=work, token=token))[0] != 0
    assert scene.repo.branch_sha("cut") is None
    scene.github.faults.clear()
    scene.github.faults.add(Fault("POST *git-upload-pack", "truncate", times=None))
    assert (await clone(scene, tmp_path / "half", token, "-q"))[0] != 0
    scene.github.faults.clear()
    assert (await git("push", "origin", "cut", cwd=work, token=token))[0] == 0


async def test_big_push_is_streamed(scene: Scene, tmp_path: Path) -> None:
    token = await scene.mint()
    work = tmp_path / "work"
    await clone(scene, work, token, "-q")
    (work / "big.bin").write_bytes(os.urandom(3 * 1024 * 1024))
    await commit_all(work, "big")
    code, _, err = await git("push", "origin", "big", cwd=work, token=token)
    assert code == 0, err
    assert (await clone(scene, tmp_path / "again", token, "-q", "-b", "big"))[0] == 0


async def test_gzip_request_and_protocol_v2(scene: Scene) -> None:
    token = await scene.mint()
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    headers = {
        "Authorization": f"Basic {secret}",
        "Content-Type": "application/x-git-upload-pack-request",
        "Content-Encoding": "gzip",
        "Git-Protocol": "version=2",
    }
    lines = ["command=ls-refs\n", None, "peel\n", "ref-prefix refs/heads/\n"]
    body = b"".join(b"0001" if each is None else f"{len(each) + 4:04x}{each}".encode() for each in lines) + b"0000"
    url = f"{scene.github.url}/octo/calc.git/git-upload-pack"
    answer = await scene.http.post(url, content=gzip.compress(body), headers=headers)
    assert answer.status_code == 200
    assert f"{scene.repo.branch_sha('main')} refs/heads/main" in answer.text


async def test_archived_and_renamed_repository_over_git(scene: Scene, tmp_path: Path) -> None:
    token = await scene.mint()
    scene.github.rename_repo(scene.repo, "calculator")
    old = f"{scene.github.url}/octo/calc.git"
    code, out, err = await git("ls-remote", old, cwd=tmp_path, token=token)
    assert (code, "refs/heads/main" in out) == (0, True), err
    scene.repo.archived = True
    work = tmp_path / "work"
    assert (await clone(scene, work, token, "-q"))[0] == 0
    await commit_empty(work, "x")
    code, _, err = await git("push", "origin", "x", cwd=work, token=token)
    assert code == 128
    assert "archived so it is read-only" in err
