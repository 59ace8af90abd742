"""The bucket: each call may be lost, fail or stall once; a refusal says what to do, and never the secret."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from bot.settings import BucketSettings, Secret
from bot.simulation.faults import Fault
from bot.store.base import Store
from bot.store.bucket.client import BucketClient
from bot.store.bucket.faults import BucketTrouble
from bot.store.bucket.home import PART_BYTES, BucketHome
from bot.store.bucket.trial import try_out
from bot.store.file_home import StoredFile
from bot.store.files import KeptFiles
from bot.vendors.amazon import AmazonKey, RequestSigner
from tests.store.test_files import content, put
from tests.world.s3_bucket import SECRET, SimulatedBucket, Upload

NAME = "kept/large.bundle"
BUSY = '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'
STALL_SECONDS = 2.0


@pytest.fixture
async def bucket() -> AsyncIterator[SimulatedBucket]:
    async with SimulatedBucket.running() as running:
        yield running


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "data" / "state.db")
    yield opened
    await opened.close()


async def journey(store: Store, bucket: SimulatedBucket, root: Path) -> None:
    """Save a file in two parts, fetch it elsewhere, forget it; the bucket is as before."""
    home = BucketHome(store, bucket.settings(), STALL_SECONDS)
    here, there = KeptFiles(store, root / "here", (home,)), KeptFiles(store, root / "there", (home,))
    data = content(PART_BYTES + 1)
    put(here, data, NAME)
    await here.save(NAME)
    assert await here.missing() == []
    path = await there.fetch(NAME)
    assert path is not None
    assert path.read_bytes() == data
    [key] = bucket.objects
    assert key.startswith(f"team/{NAME}.")
    assert bucket.uploads == {}
    await there.forget(NAME)
    await there.sweep()
    assert bucket.objects == {}
    await home.close()


@pytest.mark.parametrize("kind", ["fail", "fail_after", "lose", "reset", "truncate"])
async def test_each_call_may_go_wrong_once(kind: str, store: Store, bucket: SimulatedBucket, tmp_path: Path) -> None:
    await journey(store, bucket, tmp_path / "before")
    for at in range(len(bucket.calls)):
        fault = bucket.faults.add(Fault("*", kind, status=503, body=BUSY, skip=at))
        await journey(store, bucket, tmp_path / str(at))
        left = {upload.key for upload in bucket.uploads.values()}
        assert not left, f"{kind} at {at}: {left}"
        assert fault.hits == 1
        bucket.faults.clear()


async def test_each_call_may_stall_once(store: Store, bucket: SimulatedBucket, tmp_path: Path) -> None:
    await journey(store, bucket, tmp_path / "before")
    for at in range(len(bucket.calls)):
        fault = bucket.faults.add(Fault("*", "hold", skip=at))
        await journey(store, bucket, tmp_path / str(at))
        assert fault.hits == 1
        bucket.faults.clear()


async def test_a_service_that_stays_away_is_trouble_that_may_pass(
    store: Store, bucket: SimulatedBucket, tmp_path: Path
) -> None:
    files = KeptFiles.of(store, tmp_path / "here", bucket.settings())
    put(files, content(PART_BYTES + 1), NAME)
    bucket.faults.add(Fault("PUT *", "fail", status=503, body=BUSY, times=None))
    with pytest.raises(BucketTrouble, match=r"answered 503 \(SlowDown\)"):
        await files.save(NAME)
    assert (bucket.objects, bucket.uploads) == ({}, {}), "an upload that was given up leaves nothing"
    bucket.faults.clear()
    await files.save(NAME)
    assert len(bucket.objects) == 1
    await files.close()


async def test_an_error_behind_a_200_is_no_success(store: Store, bucket: SimulatedBucket, tmp_path: Path) -> None:
    files = KeptFiles.of(store, tmp_path / "here", bucket.settings())
    put(files, content(PART_BYTES + 1), NAME)
    late = '<?xml version="1.0"?>\n  <Error><Code>InternalError</Code></Error>'
    fault = bucket.faults.add(Fault("POST *", "fail", status=200, body=late, skip=1))
    await files.save(NAME)
    assert fault.hits == 1
    assert await files.missing() == []
    await files.close()


@pytest.mark.quick("bot.store.bucket")
async def test_a_file_may_hold_what_looks_like_an_error(store: Store, bucket: SimulatedBucket, tmp_path: Path) -> None:
    here, there = (KeptFiles.of(store, tmp_path / one, bucket.settings()) for one in ("here", "there"))
    put(here, b"<Error><Code>AccessDenied</Code></Error>", NAME)
    await here.save(NAME)
    path = await there.fetch(NAME)
    assert path is not None
    assert path.read_bytes() == here.path(NAME).read_bytes()
    await here.close()
    await there.close()


async def test_listings_are_read_to_their_end(store: Store, bucket: SimulatedBucket, tmp_path: Path) -> None:
    files = KeptFiles.of(store, tmp_path, bucket.settings())
    rows = [StoredFile(f"kept/{n}", f"001790000000-{n:032x}", 1, "x") for n in range(2100)]
    for one in rows:
        bucket.objects[f"team/{one.name}.{one.version}"] = b"x"
    bucket.objects["team/README"] = b"not ours"
    bucket.objects["other/kept/1.001790000000-" + "0" * 32] = b"not ours"
    insert = "INSERT INTO files (name, version, size, sha256, at) VALUES (:name, :version, 1, 'x', 1.0)"
    for one in rows[::2]:
        await store.run(insert, name=one.name, version=one.version)
    assert await files.missing() == []
    await store.run(insert, name="kept/lost", version="001790000000-" + "f" * 32)
    assert await files.missing() == ["the stored file kept/lost is missing or incomplete"]
    for n in range(1001):
        bucket.uploads[f"{n:032x}"] = Upload(f"team/kept/{n}.001790000000-{n:032x}")
    await files.sweep()
    assert bucket.uploads == {}
    assert len(bucket.objects) == 1050 + 2, "what has no row is gone; what is not ours stays"
    await files.close()


def skewed(bucket: SimulatedBucket) -> BucketSettings:
    bucket.skew = timedelta(minutes=16)
    return bucket.settings()


def denying(bucket: SimulatedBucket) -> BucketSettings:
    bucket.denied = {"PUT"}
    return bucket.settings()


REFUSALS: dict[str, tuple[Callable[[SimulatedBucket], BucketSettings], str]] = {
    "secret": (lambda bucket: bucket.settings(secret="another secret"), "FORGEHAND_FILES_SECRET"),
    "key": (lambda bucket: replace(bucket.settings(), key_id=Secret("AKIANOBODY")), "FORGEHAND_FILES_KEY_ID"),
    "region": (lambda bucket: replace(bucket.settings(), region="us-east-1"), "eu-central-1"),
    "bucket": (lambda bucket: replace(bucket.settings(), name="nowhere"), "no such bucket"),
    "service": (lambda bucket: replace(bucket.settings(), endpoint="http://127.0.0.1:9"), "does not answer"),
    "clock": (skewed, "clock"),
    "rights": (denying, "s3:PutObject"),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_says_what_to_do_and_no_secret(
    name: str, bucket: SimulatedBucket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    make, words = REFUSALS[name]
    with pytest.raises(BucketTrouble, match=words) as caught:
        await try_out(make(bucket))
    assert caught.value.fix
    told = caplog.text + "".join(traceback.format_exception(caught.value)) + repr(bucket.settings())
    assert SECRET not in told
    assert "another secret" not in told
    bucket.skew, bucket.denied = timedelta(), set()
    await try_out(bucket.settings())
    assert bucket.objects == {}


async def test_the_stand_in_refuses_what_s3_refuses(bucket: SimulatedBucket) -> None:
    settings = bucket.settings()
    signer, base = RequestSigner("s3", settings.region, "the test"), f"{settings.endpoint}/{settings.name}"
    key = AmazonKey(settings.key_id.reveal(), settings.secret)

    async def code(
        method: str, path: str, body: bytes = b"", sent: bytes | None = None, headers: dict[str, str] | None = None
    ) -> str:
        signed = {**signer.headers(key, method, f"{base}/{path}", body), **(headers or {})}
        async with httpx.AsyncClient() as client:
            answer = await client.request(
                method, f"{base}/{path}", content=body if sent is None else sent, headers=signed
            )
        return answer.text.partition("<Code>")[2].partition("<")[0] or str(answer.status_code)

    assert await code("PUT", "a", b"x") == "200"
    assert await code("PUT", "a", b"x", sent=b"y") == "XAmzContentSHA256Mismatch"
    assert await code("PUT", "a", b"x", headers={"x-amz-meta-more": "unsigned"}) == "AccessDenied"
    assert await code("PUT", "a", b"x", headers={"X-Amz-Content-SHA256": "0" * 64}) == "SignatureDoesNotMatch"
    assert await code("GET", "a", headers={"Authorization": "none"}) == "AccessDenied"
    assert await code("GET", "b") == "NoSuchKey"
    assert await code("PUT", "a?partNumber=1&uploadId=unknown", b"x") == "NoSuchUpload"
    bucket.skew = timedelta(minutes=-16)
    assert await code("GET", "a") == "RequestTimeTooSkewed"
    bucket.skew = timedelta()
    client = BucketClient(settings, 10.0)
    upload = await client.begin("a")
    tags = [await client.put_part("a", upload, n, b"small") for n in (1, 2)]
    for given, refusal in ((tags, "EntityTooSmall"), (["x"], "InvalidPart"), ([], "InvalidPart")):
        with pytest.raises(BucketTrouble, match=refusal):
            await client.complete("a", upload, given, 10)
    await client.complete("a", upload, tags[:1], 5)
    assert bucket.objects["a"] == b"small"
    await client.close()
