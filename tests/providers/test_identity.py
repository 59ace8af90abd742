"""Keys and tokens: where they come from, how long they serve, and what the operator reads if they do not."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot import settings
from bot.errors import SettingsError
from bot.sessions.money.budget import Prices
from bot.settings import BedrockSettings, Secret
from bot.simulation.anthropic import Say, Script
from bot.vendors import identity
from bot.vendors.amazon_keys import AmazonKeys
from bot.vendors.identity import IdentityUnavailable, Lasting, Renewed, SecretWitness
from bot.web import provider_trial
from tests.providers import bedrock_stand_in as amazon
from tests.providers import vertex_stand_in as google
from tests.providers.bedrock_stand_in import SimulatedBedrock
from tests.providers.standing import Standing, bedrock_values, gateway_to, standing
from tests.providers.vertex_stand_in import SimulatedVertex

ROLE = {"FORGEHAND_BEDROCK_ROLE": amazon.ROLE}
MODEL = "claude-sonnet-5-5"


@pytest.fixture
async def bedrock() -> AsyncIterator[SimulatedBedrock]:
    async with SimulatedBedrock.opened() as model:
        yield model


@pytest.fixture
async def vertex() -> AsyncIterator[tuple[SimulatedVertex, Standing]]:
    async with standing("vertex") as stand:
        assert isinstance(stand.model, SimulatedVertex)
        yield stand.model, stand


async def tried(values: dict[str, str], **changes: str) -> tuple[bool, str]:
    trial = await provider_trial.try_out(settings.read_model({**values, **changes}))
    return trial.works, trial.words


@pytest.mark.quick("bot.web.gateway.providers", "bot.vendors")
async def test_what_doctor_says_of_bedrock(bedrock: SimulatedBedrock) -> None:
    values = bedrock_values(bedrock)
    works, words = await tried(values)
    assert works and words == f"Amazon Bedrock accepts the key, and counted tokens for {MODEL}."
    for changes, said in (
        ({"FORGEHAND_BEDROCK_SECRET": "another"}, "does not accept the key"),
        ({"FORGEHAND_BEDROCK_KEY_ID": "AKIAANOTHER"}, "does not accept the key"),
        ({"FORGEHAND_BEDROCK_REGION": "us-east-1"}, "does not accept the key"),
        ({"FORGEHAND_MODEL_IDS": json.dumps({"sonnet": "us.anthropic.other"})}, "no such model in this region"),
        ({"FORGEHAND_BEDROCK_ROLE": f"{amazon.ROLE}-other"}, "Look at FORGEHAND_BEDROCK_ROLE"),
        ({"FORGEHAND_BEDROCK_URL": "http://127.0.0.1:1"}, "could not be reached"),
    ):
        works, words = await tried(values, **changes)
        assert not works and said in words, words
        assert amazon.SECRET not in words and "another" not in words.replace("-other", "")
    bedrock.skew = timedelta(minutes=20)
    assert "clock" in (await tried(values))[1]


async def test_a_role_is_taken_on_used_and_taken_on_again(
    bedrock: SimulatedBedrock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bedrock.default(Script([Say("Done.")]))
    stand = Standing("bedrock", bedrock, {**bedrock_values(bedrock), **ROLE}, [])
    async with gateway_to(stand, tmp_path) as rig:
        token, _ = await rig.token()
        assert [(await rig.ask(token)).status_code for _ in range(3)] == [200] * 3
        assert bedrock.roles_given == 1
        for key, (given, end) in bedrock.tokens.items():
            bedrock.tokens[key] = given, end - timedelta(hours=2)
        ended = await rig.ask(token)
        assert (ended.status_code, ended.json()["error"]["type"]) == (403, "permission_error")
        assert amazon.ROLE_TOKEN not in ended.text
        monkeypatch.setattr(identity, "DOUBT_SECONDS", 0.0)
        again = await rig.ask(token)
        assert (again.status_code, again.headers["retry-after"]) == (529, "1"), "the client asks again"
        assert (await rig.ask(token)).status_code == 200
        assert bedrock.roles_given == 2


async def test_a_profile_of_amazons_files_is_found_and_the_machine_is_not_asked(
    bedrock: SimulatedBedrock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        f"[work]\naws_access_key_id={amazon.KEY_ID}\naws_secret_access_key={amazon.SECRET}\n", encoding="utf-8"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{bedrock.url}/never")
    values = {
        name: value for name, value in bedrock_values(bedrock).items() if "KEY_ID" not in name and "SECRET" not in name
    }
    assert (await tried(values, FORGEHAND_BEDROCK_PROFILE="work"))[0]
    works, words = await tried(values, FORGEHAND_BEDROCK_PROFILE="other")
    assert not works and "Look at FORGEHAND_BEDROCK_PROFILE" in words
    assert not [one for one in bedrock.requests if one.path == "/never"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", bedrock.url)
    at = settings.read_model({**values, "FORGEHAND_BEDROCK_PROFILE": "work"}).provider.at
    assert isinstance(at, BedrockSettings)
    roles = AmazonKeys(at)._session().create_client("sts")
    assert roles.meta.endpoint_url == f"https://sts.{amazon.REGION}.amazonaws.com", "no other host gives out roles"
    await tried(values, FORGEHAND_BEDROCK_METADATA="1")
    assert [one for one in bedrock.requests if one.path == "/never"], "only if it is set"


async def test_what_doctor_says_of_vertex(vertex: tuple[SimulatedVertex, Standing], tmp_path: Path) -> None:
    model, stand = vertex
    assert await tried(stand.values) == (True, f"Google Vertex AI accepts the key, and counted tokens for {MODEL}.")
    subject = tmp_path / "token"
    subject.write_text(google.SUBJECT_TOKEN, encoding="utf-8")
    assert (await tried(stand.values, FORGEHAND_VERTEX_KEY=model.workload_file(str(subject))))[0]
    works, words = await tried(stand.values, FORGEHAND_VERTEX_PROJECT="other-project")
    assert not works and "roles/aiplatform.user" in words
    model.revoked = True
    works, words = await tried(stand.values)
    assert not works and "Invalid JWT Signature" in words and "FORGEHAND_VERTEX_KEY_FILE" in words
    assert "PRIVATE KEY" not in words


async def test_a_token_is_made_once_for_all_and_again_before_it_ends(
    vertex: tuple[SimulatedVertex, Standing], tmp_path: Path
) -> None:
    model, stand = vertex
    async with gateway_to(stand, tmp_path) as rig:
        token, _ = await rig.token()
        assert (await rig.ask(token)).status_code == 200
        assert (await rig.ask(token)).status_code == 200
        assert len(model.given) == 1
        model.given.clear()  # revoked
        refused = await rig.ask(token)
        assert refused.status_code == 403
        assert "Google Vertex AI: it does not accept" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"FORGEHAND_PROVIDER": "azure"}, "must be one of anthropic, bedrock, vertex"),
        ({"FORGEHAND_PROVIDER": "bedrock"}, "FORGEHAND_BEDROCK_REGION is not set"),
        ({"FORGEHAND_PROVIDER": "bedrock", "FORGEHAND_BEDROCK_REGION": "eu-central-1"}, "needs one identity at Amazon"),
        ({"FORGEHAND_PROVIDER": "vertex", "FORGEHAND_VERTEX_PROJECT": "p-1234"}, "needs one identity at Google"),
        ({"FORGEHAND_MODEL_IDS": '{"a": "b"}'}, "without FORGEHAND_PROVIDER"),
    ],
)
def test_wrong_settings_get_a_sentence(values: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        settings.read_model(values)


def test_a_broken_key_file_is_not_repeated() -> None:
    given = {"FORGEHAND_PROVIDER": "vertex", "FORGEHAND_VERTEX_PROJECT": "p-1234"}
    for key in ("canary", '{"type": "authorized_user", "secret": "canary"}', '{"type": "service_account"}'):
        with pytest.raises(SettingsError) as caught:
            settings.read_model({**given, "FORGEHAND_VERTEX_KEY": key})
        assert "canary" not in str(caught.value)


def test_prices_where_a_region_is_promised_are_a_tenth_higher() -> None:
    base = {
        "FORGEHAND_PROVIDER": "bedrock",
        "FORGEHAND_BEDROCK_REGION": "eu-central-1",
        "FORGEHAND_BEDROCK_METADATA": "1",
    }
    listed = Prices().of(MODEL).rates
    for more, factor in (
        ({}, 1.0),
        ({"FORGEHAND_BEDROCK_AREA": "eu"}, 1.1),
        ({"FORGEHAND_BEDROCK_AREA": "none"}, 1.1),
        (
            {
                "FORGEHAND_MODEL_IDS": json.dumps(
                    {MODEL: "arn:aws:bedrock:eu-central-1:1:application-inference-profile/x"}
                )
            },
            1.1,
        ),
        ({"FORGEHAND_BEDROCK_AREA": "eu", "FORGEHAND_MODEL_IDS": json.dumps({MODEL: "global.anthropic.x"})}, 1.0),
    ):
        found = Prices.at(settings.read_model({**base, **more})).of(MODEL).rates
        assert (found.input, found.cache_write_long) == pytest.approx(
            (listed.input * factor, listed.cache_write_long * factor)
        )
    own = {"FORGEHAND_BEDROCK_AREA": "eu", "FORGEHAND_PRICES": json.dumps({MODEL: {"input": 7, "output": 9}})}
    assert Prices.at(settings.read_model({**base, **own})).of(MODEL).rates.input == 7


async def test_a_credential_is_fetched_once_for_all_kept_while_it_serves_and_hidden_while_it_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(identity, "AGAIN_SECONDS", 0.0)
    lasts, fetched, hidden = 1.0, itertools.count(), set[str]()

    def fetch() -> Lasting[int]:
        number = next(fetched)
        if number == 5:
            raise IdentityUnavailable("nobody answers")
        return Lasting(number, time.time() + lasts, (Secret(f"secret-{number}"),))

    renewed = Renewed("Somebody", fetch, SecretWitness(hidden.add, hidden.discard))
    assert await asyncio.gather(*(renewed.current() for _ in range(5))) == [0] * 5
    assert [await renewed.current() for _ in range(3)] == [1, 2, 3], "each would end before it arrives"
    assert hidden == {"secret-2", "secret-3"}
    lasts = identity.EARLY_SECONDS - 1
    assert await renewed.current() == 4
    assert await renewed.current() == 4, "the next one is fetched beside it, in vain"
    monkeypatch.setattr(identity, "DOUBT_SECONDS", 0.0)
    assert renewed.doubt()
    assert renewed.doubt(), "also for the next request that was under way with it"
    monkeypatch.setattr(identity, "DOUBT_SECONDS", 60.0)
    with pytest.raises(IdentityUnavailable):
        await renewed.current()
    assert await renewed.current() == 6
    monkeypatch.setattr(identity, "LATE_SECONDS", 0.0)
    assert not renewed.doubt(), "the new one is refused as well"


def test_words_of_a_vendor_repeat_no_token_not_even_its_beginning() -> None:
    token = "IQoJb3JpZ2luX2VjEJ/" + "a1B2c3D4/+" * 60
    signed = f"does not match. The Canonical String should have been 'POST\n/\n\nx-amz-security-token:{token}\n'"
    subject = f"eyJhbGciOiJSUzI1NiJ9.{'eyJpc3MiOiJ4In0' * 5}.{'c2lnbmF0dXJl' * 20}"
    said = identity.plain(f"{signed} {'-' * 200}", 400)
    assert "x-amz" not in said and token[:12] not in said and "does not match" in said
    assert "c2lnb" not in identity.shown(ValueError("no subject token", subject))
    model = "`projects/mine/locations/europe-west1/publishers/anthropic/models/claude-sonnet-5-5` was not found"
    assert identity.plain(model, 400) == model.replace("projects/mine", "[redacted]")


async def test_a_key_of_which_an_sdk_makes_nothing_is_refused_in_a_sentence(
    vertex: tuple[SimulatedVertex, Standing], tmp_path: Path
) -> None:
    model, stand = vertex
    known = json.loads(model.workload_file(str(tmp_path)))
    for changes in ({}, {"credential_source": {"file": "/etc/hostname", "format": "canary"}}):
        works, words = await tried(stand.values, FORGEHAND_VERTEX_KEY=json.dumps({**known, **changes}))
        assert not works and "what is set does not fit" in words and "canary" not in words, words
