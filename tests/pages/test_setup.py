"""The set-up page over the wire: who is let in, what a form may do, and that nothing of a secret is shown or logged."""

from __future__ import annotations

import asyncio
import errno
import html
import logging
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from bot import registration, settings
from bot import setup as setting_up
from bot.cli import start
from bot.errors import SettingsError
from bot.settings import own_key
from bot.simulation.anthropic import Say, Script
from tests.webhooks.test_delivery_log import NOWHERE, read_once
from tests.world import MODEL_KEY, World
from tests.world.command_line import ROOT, forgehand
from tests.world.plain_http import plain_client

APP = ("FORGEHAND_APP_ID", "FORGEHAND_PRIVATE_KEY", "FORGEHAND_WEBHOOK_SECRET")


@dataclass
class Visitor:
    """A browser without JavaScript, as far as the page needs one."""

    setup: setting_up.SetUp
    client: httpx.AsyncClient

    async def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', (await self.client.get("/setup")).text)
        assert found
        return found[1]

    async def send(self, path: str, **fields: str) -> httpx.Response:
        return await self.client.post(path, data={"csrf": await self.csrf(), **fields})

    async def enter(self) -> None:
        answer = await self.send("/setup/open", token=self.setup.token)
        assert answer.status_code == 303 and answer.headers["location"] == "/setup"


def without_app(world: World, **changes: str) -> dict[str, str]:
    return {name: value for name, value in world.environment.items() if name not in APP} | changes


@asynccontextmanager
async def visitor(values: dict[str, str]) -> AsyncIterator[Visitor]:
    async with setting_up.serving(values) as page, plain_client(base_url=page.url, timeout=60) as client:
        yield Visitor(page, client)


async def create_at_github(world: World, answer: httpx.Response) -> str:
    """Press the buttons of GitHub's own pages; where it sends us back to."""
    action, manifest = (
        html.unescape(re.search(pattern, answer.text)[1])  # type: ignore[index]
        for pattern in (r'<form method="post" action="([^"]+)"', r'name="manifest" value="([^"]+)"')
    )
    async with plain_client(base_url=world.github.url) as github:
        page = await github.post(action, data={"manifest": manifest})
        assert page.status_code == 200, page.text
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.text))
        made = await github.post(
            "/settings/apps/create", data={name: html.unescape(value) for name, value in hidden.items()}
        )
    assert made.status_code == 302
    return made.headers["location"]


async def test_from_nothing_to_a_session_without_any_setting_of_the_app(world: World) -> None:
    values = without_app(world)
    async with visitor(values) as one:
        await one.enter()
        confirm = await one.send("/setup/app", name="My Forgehand", organisation="octo-org", public_url="")
        assert f"form-action 'self' {world.github.url}" in confirm.headers["content-security-policy"]
        back = await create_at_github(world, confirm)
        async with plain_client() as elsewhere:  # the cookie does not travel from another site
            stored = await elsewhere.get(back)
            assert stored.status_code == 200 and "my-forgehand" in stored.text
            assert (await elsewhere.get(back)).status_code == 400, "the way back is good once"
        page = (await one.client.get("/setup")).text
        install = re.search(r'href="([^"]+/installations/new)"', page)
        assert install
        async with plain_client() as github:
            assert (await github.post(install[1])).status_code == 302
        checked = await one.client.get("/setup/check")
        assert checked.status_code == 200 and "All checks passed" in checked.text, checked.text
        assert (await one.send("/setup/finish")).status_code == 200
        assert one.setup.finished.is_set()
    app = next(one for one in world.github.state.apps.values() if one.slug == "my-forgehand")
    assert app.webhook_url == NOWHERE and app.owner.login == "octo-org"
    for secret in (app.webhook_secret, app.client_secret, app.private_key_pem.splitlines()[5]):
        assert all(secret.encode() not in file.read_bytes() for file in (world.root / "data").glob("state.db*"))
        assert secret not in page and secret not in checked.text
    world.app = app
    world.environment = await start.merged({**values, "FORGEHAND_POLL_SECONDS": "0.1"})
    world.model.default(Script([Say("Done.")]))
    async with world.bot():
        app.webhook_url = NOWHERE
        await read_once(world)
        world.say("/claude ask how is it?")
        assert await world.outcome() == "answered"


async def test_the_first_start_shows_the_way_in_and_goes_on_as_the_service(world: World) -> None:
    """As in a container: it listens at all addresses, and people see nothing but its terminal."""
    env = without_app(world, FORGEHAND_HOST="0.0.0.0")
    serve = [sys.executable, "-m", "bot", "serve"]
    process = await asyncio.create_subprocess_exec(*serve, env=env, cwd=ROOT, stdout=PIPE, stderr=STDOUT)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            shown = (await process.stdout.readuntil(b"with the token: ") + await process.stdout.readline()).decode()
            url, token = re.search(r"(http://\S+)/setup\s+with the token: (\S+)", shown).groups()  # type: ignore[union-attr]
            assert url.startswith("http://127.0.0.1:"), "no browser opens 0.0.0.0"
            async with plain_client(base_url=url, timeout=30) as client:
                one = Visitor(setting_up.SetUp(url, token, asyncio.Event()), client)
                await one.enter()
                assert (await one.send("/setup/finish")).status_code == 422, "there is no App yet"
                right = {"app_id": str(world.app.id), "pem": world.app.private_key_pem}
                assert (await one.send("/setup/existing", **right)).status_code == 200
                assert (await one.send("/setup/finish", anyway="yes")).status_code == 200
            assert b"reads GitHub's log every 5 s" in await process.stdout.readuntil(b"listens on")
            process.terminate()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_the_token_opens_it_once_and_for_one_browser(world: World) -> None:
    async with visitor(without_app(world)) as one:
        assert "GitHub App" not in (await one.client.get("/setup")).text
        assert (await one.send("/setup/open", token="wrong")).status_code == 403
        await one.enter()
        assert "The GitHub App" in (await one.client.get("/setup")).text
        async with plain_client(base_url=one.setup.url) as other:
            second = Visitor(one.setup, other)
            assert (await second.send("/setup/open", token=one.setup.token)).status_code == 403
            assert "The GitHub App" not in (await other.get("/setup")).text
            for path in ("app", "existing", "key", "finish"):
                assert (await second.send(f"/setup/{path}", name="x")).status_code == 403
            assert (await other.get("/setup/check")).status_code == 403
        assert not one.setup.finished.is_set()


async def test_the_cookie_is_for_this_page_alone(world: World) -> None:
    async with visitor(without_app(world)) as one:
        plain = (await one.client.get("/setup")).headers["set-cookie"].lower()
        assert "httponly" in plain and "samesite=strict" in plain and "path=/setup" in plain and "secure" not in plain
        proxied = await one.client.get("/setup", headers={"X-Forwarded-Proto": "https"})
        assert "secure" in proxied.headers["set-cookie"].lower()
    async with visitor(without_app(world, FORGEHAND_PUBLIC_URL="https://bot.example")) as one:
        assert "secure" not in (await one.client.get("/setup")).headers["set-cookie"].lower(), "past the proxy"
        proxied = await one.client.get("/setup", headers={"Host": "bot.example"})
        assert "secure" in proxied.headers["set-cookie"].lower()


async def test_a_form_of_another_site_does_nothing(world: World) -> None:
    async with visitor(without_app(world)) as one:
        await one.enter()
        assert (await one.client.post("/setup/finish", data={})).status_code == 403
        assert (await one.client.post("/setup/finish", data={"csrf": "0" * 64})).status_code == 403
        right = {"csrf": await one.csrf()}
        foreign = {"Origin": "https://evil.example"}
        assert (await one.client.post("/setup/finish", data=right, headers=foreign)).status_code == 403
        big = await one.client.post("/setup/key", data={**right, "api_key": "x" * 70_000})
        assert big.status_code == 422 and "too much" in big.text
        page = await one.client.get("/setup")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert not re.search(r'<script(?! src="/static/)', page.text) and "style=" not in page.text


async def test_a_way_back_that_is_not_ours_is_refused(world: World) -> None:
    code = world.github.offer_manifest({"name": "Theirs"})
    async with visitor(without_app(world)) as one:
        answer = await one.client.get("/setup/created", params={"code": code, "state": "guessed"})
        assert answer.status_code == 400
    assert code in world.github.state.manifests, "the code was not even redeemed"
    assert await start.has_no_app(without_app(world))


@pytest.mark.quick("bot.setup")
@pytest.mark.parametrize("form", ["crlf", "spaces", "escaped", "quoted", "one line"])
async def test_an_existing_app_is_taken_however_its_key_was_pasted(world: World, form: str) -> None:
    key = world.app.private_key_pem
    pasted = {
        "crlf": key.replace("\n", "\r\n"),
        "spaces": "\n".join(f"   {line}  " for line in key.splitlines()),
        "escaped": key.replace("\n", "\\n"),
        "quoted": f'"{key}"',
        "one line": key.replace("\n", " "),
    }[form]
    async with visitor(without_app(world)) as one:
        await one.enter()
        answer = await one.send("/setup/existing", app_id=str(world.app.id), pem=pasted, webhook_secret="s" * 20)
        assert answer.status_code == 200, answer.text
    values = await start.merged(without_app(world))
    assert settings.read(values).github.app_id == world.app.id
    assert values["FORGEHAND_WEBHOOK_SECRET"] == "s" * 20


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"app_id": "12x"}, "is a number"),
        ({"pem": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"}, "not a private key"),
        ({"app_id": "999999"}, "401"),
        ({"app_id": "9" * 5000}, "is a number"),
        ({"public_url": "http://bot.example"}, "plain http"),
        ({"public_url": "https://bot.example", "webhook_secret": "one,two"}, "contains a comma"),
        ({"public_url": "https://bot.example", "webhook_secret": ""}, "secret is missing"),
    ],
)
async def test_what_cannot_be_used_is_said_and_not_stored(world: World, fields: dict[str, str], words: str) -> None:
    right = {"app_id": str(world.app.id), "pem": world.app.private_key_pem, "webhook_secret": "s"}
    async with visitor(without_app(world)) as one:
        await one.enter()
        answer = await one.send("/setup/existing", **{**right, **fields})
        assert answer.status_code == 422 and words in html.unescape(answer.text), answer.text
    assert await start.has_no_app(without_app(world))


@pytest.mark.quick("bot.checkup")
async def test_a_key_for_the_model_is_tried_before_it_is_stored(world: World) -> None:
    async with visitor(without_app(world, ANTHROPIC_API_KEY="")) as one:
        await one.enter()
        wrong = await one.send("/setup/key", api_key="sk-ant-api03-wrong")
        assert wrong.status_code == 422 and "not accepted" in wrong.text and "sk-ant-api03-wrong" not in wrong.text
        assert "No session can run without a key" in (await one.client.get("/setup")).text
        for odd in ("", "schlüssel-canary", "line-canary\nx: y", "blank canary"):
            answer = await one.send("/setup/key", api_key=odd)
            assert answer.status_code == 422 and "canary" not in answer.text, answer.text
            assert "Nothing was given" in answer.text or "is not a key" in answer.text, answer.text
        right = await one.send("/setup/key", api_key=MODEL_KEY)
        assert "works and is stored" in right.text and MODEL_KEY not in right.text
    listed = await forgehand(world.environment, "keys", "list", "--json")
    assert [row["name"] for row in listed.json] == ["ANTHROPIC_API_KEY"]


@pytest.mark.acceptance("F15")
async def test_what_was_typed_is_in_no_line_of_the_log(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    """The log is told of each secret before anything is done with it."""
    secrets = {"webhook_secret": "canary-of-the-hook", "client_secret": "canary-of-the-client"}
    async with visitor(without_app(world)) as one:
        await one.enter()
        pem = world.app.private_key_pem
        answer = await one.send("/setup/existing", app_id=str(world.app.id), pem=pem, **secrets)
        assert answer.status_code == 200
        await one.send("/setup/key", api_key="key-canary-of-no-known-form")
        logging.getLogger("anything").error("it said %s", [*secrets.values(), "key-canary-of-no-known-form"])
    logged = capfd.readouterr().err
    assert "it said" in logged and "canary" not in logged


async def test_what_github_sends_meanwhile_is_kept_for_the_service(world: World) -> None:
    async with visitor(without_app(world)) as one:
        body = b'{"zen":"x","hook_id":1}'
        headers = world.github.sign(world.app, body)
        event = {"X-GitHub-Event": "ping", "X-GitHub-Delivery": "g-1"}
        assert (await one.client.post("/webhook", content=body, headers={**headers, **event})).status_code == 503
        await one.enter()
        right = {"app_id": str(world.app.id), "pem": world.app.private_key_pem}
        await one.send("/setup/existing", **right, webhook_secret=world.app.webhook_secret)
        assert (await one.client.post("/webhook", content=body, headers={**headers, **event})).status_code == 202
        assert (await one.client.get("/readyz")).status_code == 503


async def test_the_manifest_sends_github_to_the_address_that_was_given(world: World) -> None:
    async with visitor(without_app(world)) as one:
        await one.enter()
        answer = await one.send("/setup/app", name="A b", organisation="", public_url="https://bot.example/")
        found: Any = re.search(r'name="manifest" value="([^"]+)"', answer.text)
        manifest = httpx.Response(200, content=html.unescape(found[1])).json()
        action = html.unescape(re.search(r'action="([^"]+)"', answer.text)[1])  # type: ignore[index]
        refused = await one.send("/setup/app", name="A", organisation="", public_url="ftp://bot.example")
    assert manifest["hook_attributes"] == {"url": "https://bot.example/webhook", "active": True}
    assert manifest["public"] is False and manifest["redirect_url"] == f"{one.setup.url}/setup/created"
    assert urlsplit(action).path == "/settings/apps/new" and len(parse_qs(urlsplit(action).query)["state"][0]) > 20
    assert refused.status_code == 422


async def test_what_is_set_wins_and_another_app_takes_nothing_of_the_stored_one(world: World) -> None:
    async with visitor(without_app(world)) as one:
        await one.enter()
        right = {"app_id": str(world.app.id), "pem": world.app.private_key_pem}
        await one.send("/setup/existing", **right, webhook_secret="stored")
    values = without_app(world)
    set_one = await start.merged({**values, "FORGEHAND_WEBHOOK_SECRET": "set"})
    assert set_one["FORGEHAND_WEBHOOK_SECRET"] == "set" and set_one["FORGEHAND_APP_ID"] == str(world.app.id)
    another = await start.merged({**values, "FORGEHAND_APP_ID": "7"})
    assert "FORGEHAND_PRIVATE_KEY" not in another


def test_half_a_key_is_no_key() -> None:
    for text in (
        "",
        "-----BEGIN RSA PRIVATE KEY-----\nAAAA",
        "AAAA",
        "-----BEGIN RSA PRIVATE KEY-----!-----END RSA PRIVATE KEY-----",
    ):
        with pytest.raises(SettingsError, match="not a private key"):
            registration.pem(text)


async def test_setup_makes_its_own_key_and_ends_with_the_first_answer(world: World) -> None:
    """Over SSH, without any setting but those of the world, to the answer of the first comment."""
    ssh = {"SSH_CONNECTION": "203.0.113.7 51000 198.51.100.4 2222", "USER": "ops"}
    env = without_app(world, FORGEHAND_POLL_SECONDS="0.2", **ssh)
    env.pop("FORGEHAND_SECRET_KEY")
    world.app.webhook_url = NOWHERE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", "setup", env=env, cwd=ROOT, stdout=PIPE, stderr=STDOUT
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(90):
            shown = (await process.stdout.readuntil(b"with the token: ") + await process.stdout.readline()).decode()
            url, token = re.search(r"(http://\S+)/setup\s+with the token: (\S+)", shown).groups()  # type: ignore[union-attr]
            key = world.root / "data" / "secret.key"
            assert str(key) in shown and key.stat().st_mode & 0o777 == 0o600
            port = urlsplit(url).port
            line = await process.stdout.readuntil(b"@198.51.100.4")
            assert f"ssh -N -p 2222 -L {port}:127.0.0.1:{port} ops@198.51.100.4".encode() in line
            async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                one = Visitor(setting_up.SetUp(url, token, asyncio.Event()), client)
                await one.enter()
                right = {"app_id": str(world.app.id), "pem": world.app.private_key_pem}
                assert (await one.send("/setup/existing", **right)).status_code == 200
                done = await one.send("/setup/finish", anyway="yes")
                assert done.status_code == 200 and "/claude help" in done.text
            await process.stdout.readuntil(b"Ctrl-C skips this")
            await read_once(world)
            world.say("/claude help", by="alice")
            assert b"alice at " in await process.stdout.readuntil(b"Everything works.")
            assert b"Start Forgehand with: forgehand serve" in await process.stdout.read()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    ran = await forgehand({name: value for name, value in env.items() if name not in ssh}, "keys", "list", "--json")
    assert ran.code == 0, "every command finds the key again by itself"


async def test_no_key_is_made_where_something_is_encrypted_already(world: World) -> None:
    async with visitor(without_app(world)) as one:
        await one.enter()
        await one.send("/setup/key", api_key=MODEL_KEY)
    lost = {name: value for name, value in without_app(world).items() if name != "FORGEHAND_SECRET_KEY"}
    with pytest.raises(SettingsError, match="set the key that it had"):
        async with setting_up.serving(lost):
            pass
    assert not (world.root / "data" / "secret.key").exists()


def test_a_key_that_was_not_written_whole_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched, pytest.raises(SettingsError, match="No space left"):
        patched.setattr(os, "fsync", full)
        own_key.make(tmp_path)
    assert own_key.read(tmp_path) is None
    made = own_key.make(tmp_path)
    assert list(tmp_path.iterdir()) == [made] and made.stat().st_mode & 0o777 == 0o600
    assert len(settings.read_secret_keys({"FORGEHAND_DATA_DIR": str(tmp_path)})) == 1


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = own_key.make(tmp_path)
    assert len(settings.read_secret_keys({"FORGEHAND_DATA_DIR": str(tmp_path)})) == 1
    with pytest.raises(FileExistsError):
        own_key.make(tmp_path)
    file.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        settings.read_secret_keys({"FORGEHAND_DATA_DIR": str(tmp_path)})


async def test_it_is_not_finished_while_a_check_is_bad_unless_somebody_says_so(world: World) -> None:
    world.github.uninstall(world.installation)
    async with visitor(without_app(world, FORGEHAND_POLL_SECONDS="1")) as one:
        await one.enter()
        right = {"app_id": str(world.app.id), "pem": world.app.private_key_pem}
        page = (await one.send("/setup/existing", **right)).text
        assert "read the code, push the one branch" in page, "each permission with its reason"
        refused = await one.send("/setup/finish")
        assert refused.status_code == 422 and "Some checks are bad" in refused.text
        assert not one.setup.finished.is_set()
        assert (await one.send("/setup/finish", anyway="yes")).status_code == 200
        assert one.setup.finished.is_set()
