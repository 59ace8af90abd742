"""From comment to pull request in E2B's sandboxes: the real SDK, the real Claude CLI, a stand-in for the cloud."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, ModelRequest, Say, Script, Wait
from tests.e2b_world import e2b_spine
from tests.world import MODEL_KEY, WEBHOOK_SECRET

EDIT = Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Add"})


@pytest.mark.acceptance("C14")
async def test_a_comment_becomes_a_pull_request_and_no_credential_is_inside(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        [pull] = world.pulls()
        assert pull.draft
        assert "max(" in world.repo.diff("main", pull.head)
        [sandbox] = e2b.sandboxes
        assert sandbox.state == "killed"
        secrets = [MODEL_KEY, WEBHOOK_SECRET, e2b.api_key, world.app.private_key_pem.splitlines()[1]]
        sent = b"".join(call.body + call.query.encode() for call in e2b.calls)
        inside = sent + b"".join(path.read_bytes() for path in sandbox.folder.rglob("*") if path.is_file())
        assert b"FORGEHAND_GATEWAY" in inside
        assert not [secret for secret in secrets if secret.encode() in inside]


async def test_a_restarted_bot_goes_on_where_it_was(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        world.model.default(Script([EDIT, Wait("go"), Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await world.model.reached("go", timeout=60)
        async with world.bot():
            world.model.release("go")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        assert len(e2b.sandboxes) == 1
        assert len(world.pulls()) == 1
        assert len(world.replies()) == 1


async def test_a_bot_that_stays_away_loses_no_work(tmp_path: Path) -> None:
    """The sandbox pauses by itself; what was frozen in it is ended on return, and the work so far is brought home."""
    async with e2b_spine(tmp_path) as (world, e2b):
        world.model.default(Script([EDIT, Wait("go"), Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await world.model.reached("go", timeout=60)
        for _ in range(3):
            await e2b.clock.advance(600)
        [sandbox] = e2b.live
        assert sandbox.paused
        async with world.bot():
            assert await world.outcome() == "killed", world.replies()[0].body
        assert "refs/forgehand/rescue/" in world.replies()[0].body
        assert not e2b.live


@pytest.mark.acceptance("C10")
async def test_a_sandbox_that_vanishes_ends_the_turn_with_a_sentence(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, e2b):
        world.model.default(Script([EDIT, Wait("go"), Say("Added a line.")]))
        async with world.bot():
            world.say("/claude add a line")
            await world.model.reached("go", timeout=60)
            await e2b.kill(e2b.live[0].id)
            assert await world.outcome() == "killed", world.replies()[0].body
            world.model.release("go")
        assert "environment" in world.replies()[0].body
        assert not world.pulls()


@pytest.mark.acceptance("F14")
async def test_a_revoked_key_of_the_cloud_is_one_neutral_sentence_and_no_storm(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = "e2b_" + "0" * 40
    async with e2b_spine(tmp_path, E2B_API_KEY=wrong) as (world, e2b):
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "failed", world.replies()[0].body
        live = world.replies()[0].body
        assert "does not accept the key in use" in live
        assert "E2B" not in live
        log = capfd.readouterr().err
        assert "check E2B_API_KEY" in log and "traceback" not in log
        assert wrong not in live + log
        assert len(e2b.calls) < 10
        assert not world.model.requests


@pytest.mark.acceptance("C15")
async def test_files_beside_the_prompt_and_blocked_hosts_are_as_in_a_local_box(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path) as (world, _):
        world.say("the beginning\n" + "words " * 9_000 + "\nthe end of it")
        for _ in range(2):
            world.say("words " * 9_000)

        def search(request: ModelRequest) -> Call:
            path = next(line[2:] for line in request.prompt.splitlines() if line.endswith("/comments.md"))
            reach = "import urllib.request as u; u.urlopen('https://a.example', timeout=5)"
            return Call("Bash", {"command": f'grep "the end of it" {path}; python3 -c "{reach}" 2>&1 | tail -1'})

        world.model.default(Script([search, Say("Nothing to do.")]))
        async with world.bot():
            world.say("/claude look")
            assert await world.outcome() == "no_change", world.replies()[0].body
        result = world.model.requests[-1].tool_results[0].text
        assert result.startswith("the end of it\n") and "403" in result
        assert "**Blocked by the network:** `a.example` ×1." in world.replies()[0].body
