"""Keys at rest: stored beside the running service, used at its next request, refused as a whole under a wrong key."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from bot import vault as vaults
from bot.errors import SettingsError, StoreError, VaultError
from bot.keyring import KeyRing
from bot.models import InstallationId
from bot.settings import ModelSettings, Secret
from bot.simulation.anthropic import NO_CREDIT, Call, Fail, Say, Script, Wait
from bot.store import accounts
from bot.store.accounts import OPERATOR
from bot.store.base import Address, Database, Store
from bot.vault import API_KEY, OAUTH_TOKEN, Vault
from bot.web.credentials import find, from_vault
from bot.web.gateway import Credentials
from tests.world import MODEL_KEY, SECRET_KEY, World
from tests.world.command_line import forgehand
from tests.world.gateway import INSTALLATION, OAUTH, REAL_KEY, kind, rigged

T = TypeVar("T")
OTHER = InstallationId(8)
NEW_KEY = base64.b64encode(b"another-secret-key-of-32-bytes-!").decode()
DEAD_KEY = "sk-ant-api03-" + "canary-dead-key" * 3
NOTHING = ModelSettings("claude-sonnet-5-5", "http://127.0.0.1:1", None, None)


@pytest.fixture
async def store(address: Address) -> AsyncIterator[Store]:
    opened = await Store.open(address)
    yield opened
    await opened.close()


def ring(*keys: str) -> KeyRing:
    return KeyRing([Secret(key) for key in keys])


async def prepared(store: Store, *keys: str) -> Vault:
    vault = Vault(store, ring(*keys))
    await vault.prepare()
    return vault


# The store


async def test_a_secret_is_read_where_it_was_put_and_nowhere_else(store: Store) -> None:
    seen: list[str] = []
    vault = Vault(store, ring(SECRET_KEY), seen.append)
    await vault.prepare()
    await vault.put(API_KEY, INSTALLATION, Secret(f" {MODEL_KEY}\n"))
    assert (await vault.get(API_KEY, INSTALLATION) or Secret("")).reveal() == MODEL_KEY
    assert await vault.get(API_KEY, OTHER) is None
    assert await vault.get(OAUTH_TOKEN, INSTALLATION) is None
    assert set(seen) == {MODEL_KEY}, "what was read is known to the redactor"
    [entry] = await vault.entries()
    assert MODEL_KEY not in repr((vault, entry))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ANTHROPIC_KEY", MODEL_KEY, "no secret of that name"),
        (API_KEY, "  \n", "Nothing was given"),
        (API_KEY, "sk ant", "spaces"),
        (API_KEY, "ключ-ключ", "odd characters"),
        (API_KEY, "k" * 5000, "too long"),
        (API_KEY, OAUTH, "looks like the value of CLAUDE_CODE_OAUTH_TOKEN"),
        (OAUTH_TOKEN, MODEL_KEY, "looks like the value of ANTHROPIC_API_KEY"),
    ],
)
async def test_what_cannot_be_a_key_is_refused_without_repeating_it(
    store: Store, name: str, value: str, words: str
) -> None:
    vault = await prepared(store, SECRET_KEY)
    with pytest.raises(VaultError, match=words) as refused:
        await vault.put(name, OPERATOR, Secret(value))
    assert not value.strip() or value not in str(refused.value)
    assert await vault.entries() == []


@pytest.mark.acceptance("F12")
async def test_ciphertexts_swapped_between_rows_are_not_read(store: Store) -> None:
    vault = await prepared(store, SECRET_KEY)
    await vault.put(API_KEY, INSTALLATION, Secret("key-of-seven"))
    await vault.put(API_KEY, OTHER, Secret("key-of-eight"))
    seven, eight = [row for row in await accounts.every_credential(store) if row.name == API_KEY]
    await accounts.put_credential(store, API_KEY, INSTALLATION, eight.ciphertext)
    await accounts.put_credential(store, API_KEY, OTHER, seven.ciphertext)
    for installation in (INSTALLATION, OTHER):
        with pytest.raises(VaultError, match="changed or moved"):
            await vault.get(API_KEY, installation)
    assert [one.fingerprint for one in await vault.entries()] == [None, None]
    with pytest.raises(VaultError, match="installation 7"):
        await find(vault, ModelSettings("m", "u", Secret(MODEL_KEY), None), INSTALLATION)


class Interrupted(Store):
    """Fails at its n-th write from now."""

    left = -1

    async def write(self, work: Callable[[Database], T]) -> T:
        self.left -= 1
        if self.left == 0:
            raise StoreError("the disk is full")
        return await super().write(work)


@pytest.mark.acceptance("F12")
@pytest.mark.parametrize("at", [1, 2, 3])
async def test_a_rotation_cut_short_leaves_all_readable_and_goes_on_when_called_again(tmp_path: Path, at: int) -> None:
    store = await Interrupted.open(tmp_path / "state.db")
    old = await prepared(store, SECRET_KEY)
    for number in range(1, 2 * vaults.BATCH + 2):
        await old.put(API_KEY, InstallationId(number), Secret(f"value-{number}"))
    both = await prepared(store, NEW_KEY, SECRET_KEY)
    store.left = at
    with pytest.raises(StoreError):
        await both.rotate()
    assert [one.fingerprint is not None for one in await both.entries()] == [True] * (2 * vaults.BATCH + 1)
    await both.rotate()
    assert await both.rotate() == 0
    new = await prepared(store, NEW_KEY)
    assert (await new.get(API_KEY, InstallationId(9)) or Secret("")).reveal() == "value-9"
    await store.close()


async def test_a_key_set_while_a_rotation_goes_on_is_not_lost(store: Store) -> None:
    old = await prepared(store, SECRET_KEY)
    await old.put(API_KEY, INSTALLATION, Secret("value-before"))
    [row] = [row for row in await accounts.every_credential(store) if row.installation == INSTALLATION]
    await old.put(API_KEY, INSTALLATION, Secret("value-after"))
    assert not await store.write(lambda db: accounts.replace_credential(db, row, "v1.stale"))
    assert (await old.get(API_KEY, INSTALLATION) or Secret("")).reveal() == "value-after"


async def test_what_is_put_beside_a_service_with_the_old_ring_can_be_read_by_it(store: Store) -> None:
    service = await prepared(store, SECRET_KEY)
    command_line = Vault(store, ring(NEW_KEY, SECRET_KEY))
    assert not await command_line.knows_newest()
    await command_line.put(API_KEY, OPERATOR, Secret("value-of-now"))
    assert (await service.get(API_KEY, OPERATOR) or Secret("")).reveal() == "value-of-now"


# Which one the gateway takes


async def test_the_installations_own_comes_first_then_the_environment_then_what_the_operator_stored(
    store: Store,
) -> None:
    vault = await prepared(store, SECRET_KEY)
    environment = ModelSettings("m", "u", Secret("env-key"), Secret("env-oauth"))
    only_oauth = ModelSettings("m", "u", None, Secret("env-oauth"))

    async def taken(model: ModelSettings, installation: InstallationId = INSTALLATION) -> str | None:
        found = await find(vault, model, installation)
        return found.credential.value.reveal() if found else None

    assert await taken(NOTHING) is None
    await vault.put(OAUTH_TOKEN, OPERATOR, Secret("stored-oauth"))
    assert await taken(NOTHING) == "stored-oauth"
    assert await taken(only_oauth) == "env-oauth"
    await vault.put(API_KEY, OPERATOR, Secret("stored-key"))
    assert await taken(only_oauth) == "stored-key", "an API key wins over an OAuth token"
    assert await taken(environment) == "env-key"
    await vault.put(OAUTH_TOKEN, INSTALLATION, Secret("own-oauth"))
    assert await taken(environment) == "own-oauth"
    assert await taken(environment, OTHER) == "env-key"
    await vault.put(API_KEY, INSTALLATION, Secret("own-key"))
    assert await taken(environment) == "own-key"
    assert await taken(environment, OTHER) == "env-key"


async def test_the_gateway_asks_the_vault_for_each_request(tmp_path: Path) -> None:
    async with rigged(tmp_path / "data", finding=_finding) as rig:
        vault = await prepared(rig.store, SECRET_KEY)
        token, _ = await rig.token()
        assert kind(await rig.ask(token)) == (403, "permission_error")
        await vault.put(API_KEY, OPERATOR, Secret(REAL_KEY))
        assert (await rig.ask(token)).status_code == 200
        await vault.put(OAUTH_TOKEN, INSTALLATION, Secret(OAUTH))
        assert (await rig.ask(token)).status_code == 200
        assert [request.headers.get("authorization") for request in rig.model.requests] == [None, f"Bearer {OAUTH}"]
        await accounts.remove_credentials_of(rig.store, INSTALLATION)
        await accounts.remove_credential(rig.store, API_KEY, OPERATOR)
        assert kind(await rig.ask(token)) == (403, "permission_error")


@pytest.mark.acceptance("F12")
async def test_a_tampered_key_is_a_refusal_and_one_line_for_the_operator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with rigged(tmp_path / "data", finding=_finding) as rig:
        vault = await prepared(rig.store, SECRET_KEY)
        await vault.put(API_KEY, INSTALLATION, Secret(REAL_KEY))
        await vault.put(API_KEY, OPERATOR, Secret("sk-of-somebody-else"))
        [row] = [row for row in await accounts.every_credential(rig.store) if row.installation == INSTALLATION]
        await accounts.put_credential(rig.store, API_KEY, OPERATOR, row.ciphertext)
        await accounts.put_credential(rig.store, API_KEY, INSTALLATION, row.ciphertext[:-8] + "AAAAAAA=")
        token, _ = await rig.token()
        for _ in range(3):
            answer = await rig.ask(token)
            assert kind(answer) == (403, "permission_error")
            assert answer.json()["error"]["message"] == "There is no credential for the model."
        assert not rig.model.requests
    complaints = [line for line in caplog.messages if "no credential" in line]
    assert len(complaints) == 1 and "changed or moved" in complaints[0]


def _finding(store: Store) -> Credentials:
    return from_vault(Vault(store, ring(SECRET_KEY)), NOTHING)


# The service


@pytest.mark.acceptance("F12")
async def test_another_key_refuses_to_start_and_leaves_the_file_alone(world: World) -> None:
    async with world.bot():
        pass
    database = world.root / "data" / "state.db"
    before = database.read_bytes()
    with pytest.raises(SettingsError, match=r"FORGEHAND_SECRET_KEY is not the key .* Put the old key back"):
        async with world.bot(FORGEHAND_SECRET_KEY=NEW_KEY):
            pass
    assert database.read_bytes() == before
    with pytest.raises(SettingsError, match="FORGEHAND_SECRET_KEY is not set"):
        async with world.bot(FORGEHAND_SECRET_KEY=""):
            pass
    assert database.read_bytes() == before
    async with world.bot():
        pass


async def test_without_any_key_for_the_model_it_does_not_start_and_a_stored_one_is_enough(world: World) -> None:
    world.environment["ANTHROPIC_API_KEY"] = ""
    with pytest.raises(SettingsError, match="forgehand keys set ANTHROPIC_API_KEY"):
        async with world.bot():
            pass
    untried = await forgehand(world.environment, "keys", "set", API_KEY, stdin=DEAD_KEY)
    assert untried.code == 1 and "does not work" in untried.err and "Nothing was stored" in untried.err
    assert (await forgehand(world.environment, "keys", "list", "--json")).json == []
    stored = await forgehand(world.environment, "keys", "set", API_KEY, stdin=MODEL_KEY + "\n")
    assert stored.code == 0, stored.text
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "no_change", world.replies()[0].body
    assert MODEL_KEY not in stored.text
    files = [path for path in (world.root / "data").rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if MODEL_KEY.encode() in path.read_bytes()]


@pytest.mark.acceptance("F12")
@pytest.mark.acceptance("F14")
async def test_a_revoked_key_is_replaced_and_the_ring_rotated_while_the_service_runs(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    world.environment["ANTHROPIC_API_KEY"] = ""
    await forgehand(world.environment, "keys", "set", API_KEY, "--no-check", stdin=DEAD_KEY)
    world.model.default(Script([Say("Done.")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome(1) == "failed"
        assert "does not accept the credential" in world.replies()[0].body
        refused = [request for request in world.model.requests if request.has_tools]
        assert len(refused) == 1, "no retry storm"
        tried = await forgehand(world.environment, "keys", "test")
        assert tried.code == 1 and "not accepted" in tried.err and "keys set ANTHROPIC_API_KEY" in tried.err
        assert (await forgehand(world.environment, "keys", "set", API_KEY, "--no-check", stdin=MODEL_KEY)).code == 0
        world.say("/claude go on")
        assert await world.outcome(2) == "no_change"
        early = await forgehand({**world.environment, "FORGEHAND_SECRET_KEY": f"{NEW_KEY},{SECRET_KEY}"}, *ROTATE)
        assert early.code == 1 and "does not have the new key yet" in early.err
    log = capfd.readouterr().err
    assert log.count("refuses the credential") == 1
    assert DEAD_KEY not in log and MODEL_KEY not in log
    world.environment["FORGEHAND_SECRET_KEY"] = f"{NEW_KEY},{SECRET_KEY}"
    world.model.default(
        Script(
            [
                Wait("rotated"),
                Call("Bash", {"command": "true", "description": "Wait"}),
                Say("Done."),
            ]
        )
    )
    async with world.bot():
        world.say("/claude once more [[scenario:none]]")
        await world.model.reached("rotated", timeout=60)
        rotated = await forgehand(world.environment, *ROTATE)
        assert rotated.code == 0 and rotated.out.startswith("1 secret encrypted again"), rotated.text
        world.model.release("rotated")
        assert await world.outcome(3) == "no_change"
    world.environment["FORGEHAND_SECRET_KEY"] = NEW_KEY
    async with world.bot():
        listed = await forgehand(world.environment, "keys", "list", "--json")
    assert [row["name"] for row in listed.json] == [API_KEY]


ROTATE = ("keys", "rotate")


async def test_an_installation_that_is_gone_takes_its_keys_with_it(world: World) -> None:
    async with world.bot():
        world.model.default(Script([Say("Done.")]))
        world.say("/claude fix this")
        await world.outcome()
        account = world.repo.owner.login
        stored = await forgehand(
            world.environment, "keys", "set", API_KEY, "--no-check", "--installation", account, stdin="key-of-their-own"
        )
        tried = await forgehand(world.environment, "keys", "test", "--installation", account)
        assert f"`forgehand keys set {API_KEY} --installation {world.installation.id}`" in tried.err, tried.err
        assert stored.code == 0 and account in stored.out, stored.text
        listed = await forgehand(world.environment, "keys", "list", "--json")
        assert [(row["name"], row["for"]) for row in listed.json] == [(API_KEY, account)]
        world.github.uninstall(world.installation)
        path = world.root / "data" / "state.db"

        async with asyncio.timeout(20):
            while await asyncio.to_thread(_of_installations, path):
                pass
        late = await forgehand(
            world.environment, "keys", "set", API_KEY, "--no-check", "--installation", account, stdin="x-y-z-w"
        )
        assert late.code == 1 and "There is no installation" in late.err


def _of_installations(path: Path) -> list[accounts.Sealed]:
    return [row for row in accounts.peek_credential(path) if row.installation]


# The command line by itself


async def test_a_list_shows_no_value_and_a_removed_key_is_gone(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    assert (await forgehand(environment, "keys", "list")).out == "No keys are stored.\n"
    await forgehand(environment, "keys", "set", API_KEY, "--no-check", stdin=MODEL_KEY)
    [row] = (await forgehand(environment, "keys", "list", "--json")).json
    assert row["fingerprint"] == vaults.fingerprint(Secret(MODEL_KEY))
    assert row["for"] == "everybody" and row["age_days"] < 1
    listed = await forgehand(environment, "keys", "list")
    assert row["fingerprint"] in listed.out and MODEL_KEY not in listed.text
    wrong = await forgehand({**environment, "FORGEHAND_SECRET_KEY": NEW_KEY}, "keys", "list")
    assert wrong.code == 1 and "is not the key" in wrong.err
    assert (await forgehand(environment, "keys", "remove", API_KEY)).code == 0
    assert (await forgehand(environment, "keys", "list", "--json")).json == []


async def test_when_the_key_is_lost_everything_can_be_forgotten_and_begun_anew(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    await forgehand(environment, "keys", "set", API_KEY, "--no-check", stdin=MODEL_KEY)
    lost = {**environment, "FORGEHAND_SECRET_KEY": NEW_KEY}
    assert (await forgehand(lost, "keys", "set", API_KEY, "--no-check", stdin=MODEL_KEY)).code == 1
    assert (await forgehand(lost, "keys", "remove", "--all")).code == 0
    assert (await forgehand(lost, "keys", "set", API_KEY, "--no-check", stdin=MODEL_KEY)).code == 0


async def test_a_key_is_tried_at_the_provider_and_what_is_wrong_is_said_in_words(world: World) -> None:
    environment = {**_environment(world.root), "ANTHROPIC_BASE_URL": world.model.url}
    nothing = await forgehand(environment, "keys", "test")
    assert nothing.code == 1 and "no credential for the model" in nothing.err
    await forgehand(environment, "keys", "set", API_KEY, "--no-check", stdin=MODEL_KEY)
    works = await forgehand(environment, "keys", "test")
    assert works.code == 0 and "ANTHROPIC_API_KEY from the vault works" in works.out, works.text
    assert [request.path for request in world.model.requests] == ["/v1/messages/count_tokens"]
    over = await forgehand({**environment, "ANTHROPIC_API_KEY": DEAD_KEY}, "keys", "test", "--json")
    assert over.code == 1 and "from the environment does not work" in over.out and DEAD_KEY not in over.text
    model = await forgehand({**environment, "FORGEHAND_MODEL": "gpt-9"}, "keys", "test")
    assert model.code == 1 and "no such model" in model.err
    away = await forgehand({**environment, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, "keys", "test")
    assert away.code == 1 and "could not be reached" in away.err


@pytest.mark.acceptance("F14")
async def test_out_of_credit_at_the_provider_is_said_neutrally(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    world.model.default(Script([Fail(400, message=NO_CREDIT), Say("unreachable")]))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome(timeout=30) == "failed"
    assert "out of credit" in world.replies()[0].body
    assert len([one for one in world.model.requests if one.has_tools]) == 1
    assert capfd.readouterr().err.count("the credit at the model's provider is used up") == 1


def _environment(folder: Path) -> dict[str, str]:
    return {
        "FORGEHAND_DATA_DIR": str(folder / "keys"),
        "FORGEHAND_SECRET_KEY": SECRET_KEY,
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
    }
