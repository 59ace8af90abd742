"""The Changes page of a session: what a turn has changed, each hunk with the call that wrote it, and downloads."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github import Fault
from tests.world import World
from tests.world.visitor import hear, visitor

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
PRICE = "def price():\n    return 5\n"
WRITE = Call("Write", {"file_path": "new/price.py", "content": PRICE}, "I write it.")


def shell(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "Run it"})


async def git(folder: Path, *argv: str, stdin: bytes = b"") -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        "git",
        *argv,
        cwd=folder,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate(stdin)
    assert process.returncode == 0, out.decode()
    return out.decode()


async def test_a_hunk_names_the_call_that_wrote_it_and_the_patch_applies(world: World, tmp_path: Path) -> None:
    world.model.default(Script([WRITE, shell("printf 'one\\ntwo\\n' > by-command.txt"), Say("Written.")]))
    async with world.bot() as service, visitor(world, service.url, "alice") as alice:
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        session = f"/sessions/{world.states()[0]['session']}"
        at_github = f"{world.repo.full_name}/commit/{world.pulls()[0].head_sha}#diff-"
        place = hashlib.sha256(b"new/price.py").hexdigest()
        assert f"[`new/price.py`]({world.github.url}/{at_github}{place})" in world.replies()[0].body
        page = await alice.get(f"{session}/changes")
        assert page.status_code == 200
        assert '<span class="add">+def price():' in page.text and "2 files" in page.text
        transcript = (await alice.get(session)).text
        [writer] = re.findall(rf'<a href="{session}\?at=e\d+-\d+#(e\d+-\d+)">Write at ', page.text)
        assert f'id="{writer}"' in transcript
        assert "no editing tool reported these lines" in page.text, "a command wrote the other file"
        assert f'{session}/changes"' in transcript
        patch = await alice.get(f"{session}/patch/1")
        assert "attachment" in patch.headers["content-disposition"]
        await git(tmp_path, "clone", "--quiet", str(world.repo.path), "clone")
        await git(tmp_path / "clone", "apply", "--index", stdin=patch.content)
        assert (tmp_path / "clone/new/price.py").read_text() == PRICE
        assert (await alice.get(f"{session}/bundle/1")).status_code == 404, "it was pushed, so no bundle is kept"
        assert (await alice.get(f"{session}/changes?turn=7")).status_code == 404


async def test_the_page_follows_a_turn_from_its_first_edit_over_a_checkpoint_to_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.sessions.publish.rescue.EVERY_SECONDS", 0.5)
    monkeypatch.setattr("bot.sessions.publish.rescue.LOOK_SECONDS", 0.1)
    monkeypatch.setattr("bot.web.pages.changes.LOOK_SECONDS", 0.1)
    last = Call("Write", {"file_path": "late.txt", "content": "late\n"}, "One more.")
    script: list[Say | Call | Wait] = [
        Wait("begin"),
        WRITE,
        shell("echo x > by-command.txt"),
        Wait("middle"),
        last,
        Say("Done."),
    ]
    world.model.default(Script(script))
    async with world.bot() as service, visitor(world, service.url, "alice") as alice:
        world.say("/claude write it")
        await world.model.reached("begin", timeout=60)
        at = f"/sessions/{world.states()[0]['session']}/changes"
        assert "Nothing has changed so far" in (await alice.get(at)).text
        seen: list[str] = []
        async with asyncio.timeout(90), alice.client.stream("GET", f"{at}/events") as stream:
            world.model.release("begin")
            async for heard in hear(stream):
                if heard.name == "ended":
                    break
                seen.append(heard.data)
                if "by-command.txt" in heard.data and "middle" not in seen:
                    assert "checkpoint of" in heard.data
                    seen.append("middle")
                    world.model.release("middle")
        assert any("new/" in one and "price.py" in one for one in seen)
        assert "late.txt" in seen[-1] and "as it came home" in seen[-1]
        assert seen[-1].strip() in (await alice.get(at)).text, "streamed or loaded: the same"
        assert await world.outcome() == "pull_request"


async def test_who_may_see_the_changes_and_take_the_work(world: World, tmp_path: Path) -> None:
    world.github.user("rita")
    world.github.user("mallory")
    world.repo.grant("rita", "read")
    world.model.default(Script([WRITE, Say("Written.")]))
    world.github.faults.add(Fault("POST *git-receive-pack", "fail", status=403, times=9))
    async with world.bot() as service:
        world.say("/claude write it")
        assert await world.outcome() == "refused"
        session = f"/sessions/{world.states()[0]['session']}"
        async with visitor(world, service.url, "rita") as rita:
            assert "the kept bundle" in (await rita.get(f"{session}/changes")).text
            bundle = await rita.get(f"{session}/bundle/1")
            assert bundle.status_code == 200 and "attachment" in bundle.headers["content-disposition"]
        (tmp_path / "work.bundle").write_bytes(bundle.content)
        await git(tmp_path, "clone", "--quiet", str(world.repo.path), "clone")
        await git(tmp_path / "clone", "fetch", "--quiet", str(tmp_path / "work.bundle"), "refs/forgehand/work")
        assert await git(tmp_path / "clone", "show", "FETCH_HEAD:new/price.py") == PRICE
        for login in ("mallory", ""):
            async with visitor(world, service.url, login) as other:
                for path in ("changes", "changes?turn=all", "changes/events", "patch/1", "bundle/1"):
                    answer = await other.get(f"{session}/{path}")
                    assert answer.status_code in ((404,) if login else (401,)), path
                    assert "price" not in answer.text


async def test_a_secret_in_the_work_is_neither_shown_nor_handed_out(world: World) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join("Ab3" * 20 for _ in range(6))
    end = "\n-----END RSA PRIVATE KEY-----\n"
    world.model.default(
        Script(
            [shell(f"printf 'a\\ntoken = {SECRET}\\nz\\n' > s.txt; cat > k.pem <<X\n{key}{end}X"), WRITE, Say("Ok.")]
        )
    )
    async with world.bot() as service, visitor(world, service.url, "alice") as alice:
        world.say("/claude write it")
        assert await world.outcome() == "refused"
        session = f"/sessions/{world.states()[0]['session']}"
        page = await alice.get(f"{session}/changes")
        assert "token = [redacted]" in page.text and "price.py" in page.text
        assert SECRET not in page.text and "Ab3Ab3" not in page.text
        assert "only the operator hands it out" in page.text
        for path in ("patch/1", "bundle/1"):
            answer = await alice.get(f"{session}/{path}")
            assert answer.status_code == 403 and "forgehand sessions pull" in answer.text
        stored = (world.root / "data/changes").iterdir()
        assert SECRET not in "".join(one.read_text() for one in stored)


async def test_hostile_work_is_spelled_out_and_bounded(world: World) -> None:
    hostile = r"""
python3 - <<'X'
import pathlib
p = pathlib.Path
odd = "a = 'user\u202e \u2066// admin\u2069 \u2066'\x1b[31m\x07 <script>alert(1)</script>\n"
p("bidi\u202e.txt").write_text(odd)
p("huge.txt").write_text("x" * 20_000 + "\n")
p("image.bin").write_bytes(bytes(range(256)) * 50)
p("a\nb.txt").write_text("new line in its name\n")
p("<img src=x onerror=alert(1)>").write_text("x\n")
for n in range(1500):
    p(f"many/{n % 20}").mkdir(parents=True, exist_ok=True)
    p(f"many/{n % 20}/f{n}.txt").write_text(f"{n}\n" * 20)
X
"""
    world.model.default(Script([shell(hostile), Say("Done.")]))
    async with world.bot() as service, visitor(world, service.url, "alice") as alice:
        world.say("/claude write it")
        assert await world.outcome() == "refused", "such names are held"
        session = f"/sessions/{world.states()[0]['session']}"
        page = await alice.get(f"{session}/changes")
        assert page.status_code == 200 and len(page.text) < 3 << 20
        assert not set("\u202e\u2066\u2069\x1b\x07") & set(page.text)
        assert (
            r"\u{202e}" in page.text
            and "<script>alert" not in page.text
            and "<img" not in page.text.partition("<main")[2]
        )
        assert "characters more" in page.text and "binary" in page.text and "not shown here" in page.text


@pytest.mark.parametrize(
    ("file", "content", "shown"), [("data.bin", f"a\\0{SECRET}\\n", "data.bin"), (SECRET, "a\\0b\\n", "[redacted]")]
)
async def test_a_secret_in_a_binary_file_or_in_its_name_is_not_handed_out_either(
    world: World, file: str, content: str, shown: str
) -> None:
    """The file stands in the patch compressed, where nobody recognises a secret."""
    world.model.default(Script([shell(f"printf '{content}' > {file}"), WRITE, Say("Ok.")]))
    async with world.bot() as service, visitor(world, service.url, "alice") as alice:
        world.say("/claude write it")
        assert await world.outcome() == "refused"
        session = f"/sessions/{world.states()[0]['session']}"
        page = await alice.get(f"{session}/changes")
        assert shown in page.text and SECRET not in page.text
        assert "only the operator hands it out" in page.text and "/patch/1" not in page.text
        for path in ("patch/1", "bundle/1"):
            answer = await alice.get(f"{session}/{path}")
            assert answer.status_code == 403 and "forgehand sessions pull" in answer.text
