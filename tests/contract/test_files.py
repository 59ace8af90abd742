"""What `sandbox.primitives` promises of files inside, kept by every provider."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from sandbox.errors import NotThere, TooLarge
from sandbox.primitives import EnvironmentPrimitives
from tests.world.environments import shell


async def test_write_read_stat_list(env: EnvironmentPrimitives) -> None:
    work = env.layout.work
    await env.write(f"{work}/a/b/c.txt", b"hello")
    await env.write_many({f"{work}/a/x": b"1", f"{work}/a/y": b"22"}, executable={f"{work}/a/y"})
    assert (await env.exec(["test", "-x", f"{work}/a/y"])).exit_code == 0
    assert (await env.exec(["test", "-x", f"{work}/a/x"])).exit_code == 1
    assert await env.read(f"{work}/a/b/c.txt") == b"hello"
    assert await env.read(f"{work}/a/b/c.txt", offset=1, limit=3) == b"ell"
    assert await env.read(f"{work}/a/b/c.txt", offset=5) == b""
    assert await env.read(f"{work}/a/b/c.txt", offset=99) == b""
    found = {one.name: (one.size if not one.is_dir else None) for one in await env.list(f"{work}/a")}
    assert found == {"b": None, "x": 1, "y": 2}
    about = await env.stat(f"{work}/a/b/c.txt")
    assert about is not None
    assert (about.name, about.size, about.is_dir) == ("c.txt", 5, False)
    folder = await env.stat(work)
    assert folder is not None
    assert folder.is_dir
    assert await env.stat(f"{work}/none") is None


async def test_what_was_written_belongs_to_the_inside(env: EnvironmentPrimitives) -> None:
    path = f"{env.layout.work}/new/tool"
    await env.write(path, b"#!/bin/sh\necho ran\n", executable=True)
    assert (await env.exec([path])).stdout == b"ran\n"
    assert (await env.exec(shell(f"echo more >> {path} && touch {env.layout.work}/new/other"))).exit_code == 0
    await env.write(path, b"replaced")
    assert await env.read(path) == b"replaced"


async def test_reading_what_is_not_there(env: EnvironmentPrimitives) -> None:
    work = env.layout.work
    await env.write(f"{work}/file", b"x")
    for path in (f"{work}/none", work, f"{work}/file/below", f"{work}/no/such", f"{work}/../file"):
        with pytest.raises(NotThere):
            await env.read(path)
    with pytest.raises(NotThere):
        await env.list(f"{work}/none")


async def test_upload_and_download(env: EnvironmentPrimitives, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    data = os.urandom(3 << 20)
    source.write_bytes(data)
    await env.upload(source, f"{env.layout.out}/deep/file")
    assert await env.download(f"{env.layout.out}/deep/file", target, max_bytes=len(data)) == len(data)
    assert target.read_bytes() == data


@pytest.mark.acceptance("C13")
async def test_download_past_the_cap_leaves_nothing(env: EnvironmentPrimitives, tmp_path: Path) -> None:
    await env.exec(shell(f"truncate -s 1G {env.layout.out}/sparse; head -c 5000 /dev/zero > {env.layout.out}/big"))
    for name in ("sparse", "big"):
        with pytest.raises(TooLarge):
            await env.download(f"{env.layout.out}/{name}", tmp_path / "target", max_bytes=4999)
    with pytest.raises(NotThere):
        await env.download(f"{env.layout.out}/none", tmp_path / "target", max_bytes=10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.acceptance("C13")
async def test_no_link_fifo_or_device_is_opened(env: EnvironmentPrimitives, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("host secret", encoding="utf-8")
    out = env.layout.out
    await env.exec(
        shell(
            f"cd {out}; ln -s {secret} link; ln -s {tmp_path} folder; ln -s / root; mkfifo fifo; ln -s /dev/zero zero; "
            f"ln -s {env.layout.work} inner; ln -s loop loop; mkdir real; ln -s /etc/passwd real/passwd"
        )
    )
    async with asyncio.timeout(10):
        for name in ("link", "folder/secret", "root/etc/passwd", "fifo", "zero", "loop", "real/passwd"):
            with pytest.raises(NotThere):
                await env.read(f"{out}/{name}")
            with pytest.raises(NotThere):
                await env.download(f"{out}/{name}", tmp_path / "got", max_bytes=100)
            assert await env.stat(f"{out}/{name}") is None
        assert [one.name for one in await env.list(out)] == ["real"]
        with pytest.raises(NotThere):
            await env.list(f"{out}/folder")
        with pytest.raises(NotThere):
            await env.write(f"{out}/folder/planted", b"x")
        await env.write(f"{out}/link", b"replaced, not followed")
    assert secret.read_text(encoding="utf-8") == "host secret"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["secret"]


async def test_watch_tells_of_growth_soon(env: EnvironmentPrimitives) -> None:
    path = f"{env.layout.out}/stream"
    await env.write(path, b"")
    stream = env.watch(path, 0)
    delays = []
    async with asyncio.timeout(20):
        for count in range(1, 6):
            telling = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            await env.exec(shell(f"printf x >> {path}; date +%s.%N > {env.layout.out}/when"))
            assert await telling == count
            delays.append(time.time() - float(await env.read(f"{env.layout.out}/when")))
    assert sorted(delays)[2] < 0.2


async def test_watch_speaks_every_second_of_a_file_that_does_not_change(env: EnvironmentPrimitives) -> None:
    started = time.monotonic()
    async with asyncio.timeout(5):
        assert await anext(env.watch(f"{env.layout.out}/none", 0)) == 0
    assert time.monotonic() - started < 2
