"""The whole way with files in a bucket: a machine may be lost, and what is wrong with the bucket is said."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.sessions.retention import LOOK_SECONDS
from bot.simulation.faults import Fault
from tests.world import World
from tests.world.command_line import forgehand
from tests.world.environments import until
from tests.world.plain_http import plain_client
from tests.world.postgres import PostgresServer
from tests.world.s3_bucket import SECRET, SimulatedBucket, Upload


@pytest.fixture
async def bucket() -> AsyncIterator[SimulatedBucket]:
    async with SimulatedBucket.running() as running:
        yield running


@pytest.mark.postgres
async def test_a_machine_that_is_lost_takes_no_memory_with_it(
    bucket: SimulatedBucket, tmp_path: Path, postgres: PostgresServer
) -> None:
    database = {"FORGEHAND_DATABASE_URL": postgres.fresh().reveal()}
    async with World.running(tmp_path, **database, **bucket.environment) as world:
        world.declare_checks()
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        folders = {key.split("/")[1] for key in bucket.objects}
        assert folders == {"transcripts", "checks", "changes"}
        await it_goes_on_elsewhere(world, tmp_path / "elsewhere")


async def test_with_a_file_of_sqlite_a_backup_and_the_bucket_are_all(bucket: SimulatedBucket, tmp_path: Path) -> None:
    async with World.running(tmp_path, **bucket.environment) as world:
        world.declare_checks()
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        saved = await forgehand(world.environment, "db", "backup", str(tmp_path / "backup.db"))
        assert "does not contain the files in the bucket forgehand-files" in saved.out
        lost = next(key for key in bucket.objects if "/checks/" in key)
        elsewhere = {**world.environment, "FORGEHAND_DATA_DIR": str(tmp_path / "elsewhere")}
        held = bucket.objects.pop(lost)
        restored = await forgehand(elsewhere, "db", "restore", str(tmp_path / "backup.db"))
        assert f"the stored file {lost[5:].rpartition('.')[0]} is missing" in restored.out, restored.text
        checked = await forgehand(elsewhere, "db", "check")
        assert (checked.code, "is missing" in checked.out) == (1, True)
        bucket.objects[lost] = held
        assert (await forgehand(elsewhere, "db", "check")).code == 0
        await it_goes_on_elsewhere(world, tmp_path / "elsewhere")


async def it_goes_on_elsewhere(world: World, folder: Path) -> None:
    elsewhere = {**world.environment, "FORGEHAND_DATA_DIR": str(folder)}
    session = str(world.states()[0]["session"])
    printed = await forgehand(elsewhere, "sessions", "logs", session, "--checks")
    assert "[exit 0" in printed.out, printed.text
    async with world.bot(FORGEHAND_DATA_DIR=str(folder)):
        world.say("/claude ask what did you change?")
        assert await world.outcome(2) == "answered", world.replies()[-1].body
    assert "never goes below zero" in str(world.model.requests[-1].body["messages"])


async def test_files_move_into_a_bucket_and_back(bucket: SimulatedBucket, tmp_path: Path) -> None:
    async with World.running(tmp_path) as world:
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        key = {name: value for name, value in bucket.environment.items() if not name.endswith("URL")}
        outside = {**world.environment, **key}
        told = await forgehand(outside, "db", "migrate", "--to", bucket.url.replace("//", f"//me:{SECRET}@", 1))
        assert (told.code, "FORGEHAND_FILES_SECRET" in told.text, SECRET in told.text) == (1, True, False)
        moved = await forgehand(outside, "db", "migrate", "--to", bucket.url)
        assert "files are in the bucket forgehand-files now" in moved.out, moved.text
        transcript = next((tmp_path / "data" / "transcripts").iterdir())
        assert any(transcript.name in one for one in bucket.objects)
        transcript.unlink()
        inside = {**world.environment, **bucket.environment}
        again = await forgehand(inside, "db", "migrate", "--to", bucket.url)
        assert (again.code, "already" in again.text) == (1, True)
        back = await forgehand(inside, "db", "migrate", "--to", "store", "--json")
        assert back.json["files"] == 2, "the transcript and the changes"
        assert (bucket.objects, transcript.is_file()) == ({}, True)
        async with world.bot():
            world.say("/claude ask what did you change?")
            assert await world.outcome(2) == "answered", world.replies()[-1].body


async def test_what_has_expired_or_was_left_by_a_crash_goes(
    bucket: SimulatedBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.sessions.retention.TIDY_SECONDS", LOOK_SECONDS)
    left = "team/turns/1/checkpoint.bundle.001790000000-" + "0" * 32
    async with World.running(tmp_path, FORGEHAND_RETENTION_DAYS="8", **bucket.environment) as world:
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        kept = sorted(bucket.objects)
        assert [one.split("/")[1] for one in kept] == ["changes", "transcripts"]
        bucket.objects[left] = b"of an interrupted save"
        bucket.uploads["0" * 32] = Upload(left)

        async def is_swept() -> bool:
            return left not in bucket.objects and not bucket.uploads

        async def is_empty() -> bool:
            return not bucket.objects

        async with world.bot():
            await until(is_swept, 20)
        assert sorted(bucket.objects) == kept
        async with world.bot(lambda: time.time() + 9 * 86_400):
            await until(is_empty, 20)
        checked = await forgehand(world.environment, "db", "check")
        assert checked.code == 0, checked.text


async def test_without_the_signer_nothing_starts(bucket: SimulatedBucket, tmp_path: Path) -> None:
    (tmp_path / "botocore.py").write_text("raise ImportError\n", encoding="utf-8")
    async with World.running(tmp_path, **bucket.environment, PYTHONPATH=str(tmp_path)) as world:
        refused = await forgehand(world.environment, "serve", under=["env"])
    assert (refused.code, "pip install 'forgehand[s3]'" in refused.text) == (1, True), refused.text


async def test_readyz_says_that_the_bucket_does_not_answer(bucket: SimulatedBucket, tmp_path: Path) -> None:
    bucket.faults.add(Fault("*", "hold", times=None))
    async with (
        World.running(tmp_path, **bucket.environment) as world,
        world.bot() as running,
        plain_client(base_url=running.url) as client,
    ):
        for _ in range(2):
            troubles = (await client.get("/readyz")).json()["troubles"]
            assert troubles["files"] == "The home of files did not answer in time."


@pytest.mark.parametrize("wrong", ["secret", "bucket", "region", "clock", "rights"])
async def test_doctor_and_readyz_say_what_is_wrong_with_the_bucket(
    wrong: str, bucket: SimulatedBucket, tmp_path: Path
) -> None:
    given = bucket.environment
    if wrong == "secret":
        given["FORGEHAND_FILES_SECRET"] = "hunter2"
    elif wrong in ("bucket", "region"):
        old = {"bucket": "forgehand-files", "region": "eu-central-1"}[wrong]
        given["FORGEHAND_FILES_URL"] = bucket.url.replace(old, "us-east-1")
    elif wrong == "clock":
        bucket.skew = timedelta(hours=1)
    else:
        bucket.denied = {"PUT", "GET"}
    words = {
        "secret": "Set FORGEHAND_FILES_SECRET",
        "bucket": "no such bucket",
        "region": "another region: eu-central-1",
        "clock": "our clock is wrong",
        "rights": "s3:PutObject",
    }[wrong]
    async with World.running(tmp_path, **given) as world:
        found = await forgehand(world.environment, "doctor", "--json")
        [line] = [one for one in found.json if one["name"] == "files"]
        assert (line["level"], words in line["words"] + line["fix"]) == ("bad", True), line
        async with world.bot() as running, plain_client(base_url=running.url) as client:
            ready = await client.get("/readyz")
        assert ready.status_code == 503
        assert words in ready.json()["troubles"]["files"]
        assert given["FORGEHAND_FILES_SECRET"] not in found.text + json.dumps(ready.json())


async def test_doctor_says_that_a_bucket_is_sound(bucket: SimulatedBucket, tmp_path: Path) -> None:
    async with World.running(tmp_path, **bucket.environment) as world:
        async with world.bot() as running, plain_client(base_url=running.url) as client:
            assert "files" not in (await client.get("/readyz")).json()["troubles"]
        found = await forgehand(world.environment, "doctor")
        assert "files: They are in the bucket forgehand-files" in found.text
        assert bucket.objects == {}
        assert SECRET not in found.text
