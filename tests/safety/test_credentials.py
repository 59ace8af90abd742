"""No credential is ever inside, nor in anything that leaves or stays: a scripted agent looks for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.cli.sweep import credentials_in, forms_of
from bot.simulation.anthropic import Call, Calls, Say, Script
from bot.simulation.registries import archives
from bot.simulation.scenarios import discount
from tests.world import CONFIG, MODEL_KEY, SECRET_KEY, WEBHOOK_SECRET, World
from tests.world.e2b import e2b_spine
from tests.world.registries import REGISTRY_SECRET, with_registries

REGISTRY = """
registries: [pypi]
setup:
  - python3 -m pip -q --no-cache-dir --disable-pip-version-check install --no-deps --target ~/setup acme-pay
"""

THIEF = Script(
    [
        Calls(
            [
                Call("Bash", {"command": command, "description": "Look"})
                for command in (
                    "env",
                    "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'",
                    "cat .git/config; git config -l; git remote -v; git log -3",
                    "find / \\( -path /proc -o -path /sys -o -path /usr \\) -prune -o -type f -size -64k -print0 "
                    "2>/dev/null | xargs -0 -r grep -lE 'sk-ant-api|ghs_|PRIVATE KEY|canary' 2>/dev/null | head; true",
                    "cat /etc/passwd /root/.ssh/* /home/*/.netrc 2>&1 | head -50",
                    "ls -la / /run /run/forgehand /var /tmp 2>&1",
                    "cat /tmp/forgehand-clients-*/* 2>&1; python3 -m pip config debug; python3 -m pip download -vvv "
                    "--no-cache-dir --no-deps -d /tmp/got acme-pay 2>&1",
                    "for at in simple/acme-pay/ ../generic/x %2e%2e/neighbour ..%2fneighbour //neighbour; do curl -sS "
                    '--path-as-is -u "$(python3 -m pip config get global.index-url | cut -d/ -f3 | cut -d@ -f1)" -iv '
                    '"$(python3 -m pip config get global.index-url | sed s,simple/$,,)$at" 2>&1; done; true',
                )
            ]
        ),
        Call("Bash", {"command": "env > stolen.txt; cat /proc/1/environ >> stolen.txt; true", "description": "Keep"}),
        Say("Here is what I found: " + MODEL_KEY + " and " + WEBHOOK_SECRET),
    ]
)


@pytest.mark.acceptance("C14")
async def test_an_agent_that_looks_everywhere_finds_no_credential(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    world.model.default(THIEF)
    world.github.commit(world.repo, "main", {CONFIG: REGISTRY})
    async with with_registries(world, "pypi") as registries, world.bot():
        registries.shelf("pypi").put(archives.wheel("acme-pay", "1.0"))
        world.say("/claude look for keys")
        await world.outcome()
        assert not registries.asked("neighbour") and not registries.leaks
    said = [request.body for request in world.model.requests]
    secrets = _secrets(world)
    bodies = [body for issue in world.repo.issues.values() for one in issue.comments for _, body in one.history]
    bodies += [pull.body or "" for pull in world.pulls()]
    # The scripted model itself says two of them, to see what becomes of that: its own words are left out of `said`.
    heard = [_without_the_models_words(body) for body in said]
    assert credentials_in(secrets, heard, bodies, world.root / "data" / "state.db") == []
    assert "acme_pay-1.0" in json.dumps(heard, default=str), "it reads packages"
    log = capfd.readouterr().err
    assert not [secret for secret in secrets if secret in log]


@pytest.mark.acceptance("C14")
async def test_no_file_of_the_data_directory_holds_a_credential_in_the_clear(world: World) -> None:
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
    values = [secret.encode() for secret in _secrets(world)]
    found = [
        str(path.relative_to(world.root))
        for path in sorted((world.root / "data").rglob("*"))
        if path.is_file() and not path.is_symlink() and any(value in path.read_bytes() for value in values)
    ]
    assert found == []


@pytest.mark.acceptance("C14")
async def test_an_agent_in_the_cloud_that_looks_everywhere_finds_no_credential_of_ours(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor is there one in whatever goes to E2B, but for its own key where it belongs, nor in what a sandbox leaves."""
    async with e2b_spine(tmp_path) as (world, e2b):
        world.github.commit(world.repo, "main", {CONFIG: REGISTRY + discount.FILES[CONFIG]})
        world.model.default(THIEF)
        async with with_registries(world, "pypi") as registries, world.bot():
            registries.shelf("pypi").put(archives.wheel("acme-pay", "1.0"))
            world.say("/claude look for keys")
            await world.outcome()
            assert registries.asked("acme_pay-1.0") and not registries.leaks
        assert len(e2b.sandboxes) > 1, "one to work in, others to run the checks in"
        secrets = [*_secrets(world), e2b.api_key]
        heard = [_without_the_models_words(request.body) for request in world.model.requests]
        bodies = [body for one in world.issue.comments for _, body in one.history]
        assert credentials_in(secrets, heard, bodies, world.root / "data" / "state.db") == []
        assert "FORGEHAND_GATEWAY" in json.dumps(heard, default=str), "it has looked"
        forms = [form for secret in secrets for form in forms_of(secret)]
        sent = [(str(call), _without_the_models_words(call.query + call.body.decode("latin-1"))) for call in e2b.calls]
        assert [call for call, said in sent if any(form.decode("latin-1") in str(said) for form in forms)] == []
        headers = [(name, value) for call in e2b.calls for name, value in call.headers.items()]
        assert {name for name, value in headers if any(form.decode() in value for form in forms)} == {"x-api-key"}
        keyed = {call.path.split("/")[1] for call in e2b.calls if e2b.api_key in call.headers.get("x-api-key", "")}
        assert keyed <= {"sandboxes", "v2"}, "at E2B's own door, not at a sandbox's"
        metadata = json.dumps([[one.metadata, one.network, one.env] for one in e2b.sandboxes])
        assert not [form for form in forms if form.decode() in metadata]
        log = capfd.readouterr().err
        assert not [secret for secret in secrets if secret in log]


@pytest.mark.acceptance("C14")
async def test_a_credential_in_the_environment_of_the_bot_is_not_seen_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_OTHER_SECRET", "canary-of-the-environment")
    async with World.running(tmp_path) as world:
        world.model.default(THIEF)
        async with world.bot():
            world.say("/claude look for keys")
            await world.outcome()
        assert "canary-of-the-environment" not in json.dumps([one.body for one in world.model.requests], default=str)


def _secrets(world: World) -> list[str]:
    tokens = [token.value for token in world.github.state.tokens.values()]
    assert tokens
    return [MODEL_KEY, WEBHOOK_SECRET, SECRET_KEY, REGISTRY_SECRET, world.app.private_key_pem, *tokens]


def _without_the_models_words(body: object) -> object:
    text = json.dumps(body, default=str)
    return text.replace(MODEL_KEY, "").replace(WEBHOOK_SECRET, "") if "Here is what I found" in text else text
