"""One suite over every provider of environments: what `sandbox.primitives` promises, kept by each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from sandbox.errors import EnvironmentBusy, EnvironmentGone, IsolationMissing, NotThere, SandboxError, TooLarge
from sandbox.primitives import (
    EnvironmentPrimitives,
    EnvironmentProvider,
    EnvironmentSpec,
    EnvironmentState,
    Liveness,
)
from tests.e2b_world import e2b_maker
from tests.environment_world import shell, short_folder, small_agent, until, until_size

SPEC = EnvironmentSpec(labels={"session": "abcd1234", "kind": "test"}, public_repository=False)


def make_local(root: Path, agent: Path) -> EnvironmentProvider:
    from sandbox.local.provider import LocalProvider

    return LocalProvider(root, agent)


def make_plain(root: Path, agent: Path) -> EnvironmentProvider:
    from sandbox.plain import PlainProvider, PlainSettings

    (root / "sockets").mkdir(parents=True, exist_ok=True)
    return PlainProvider(PlainSettings(root / "plain", root / "sockets", agent))


MAKERS: dict[str, Callable[[Path, Path], EnvironmentProvider]] = {"local": make_local, "plain": make_plain}
KINDS = [*MAKERS, "e2b"]


@pytest.fixture
def root() -> Iterator[Path]:
    with short_folder() as found:
        yield found


@pytest.fixture(params=KINDS)
async def make(request: pytest.FixtureRequest, root: Path) -> AsyncIterator[Callable[[], EnvironmentProvider]]:
    agent = small_agent(root)
    if request.param == "e2b":
        async with e2b_maker(root, agent) as found:
            yield found
    else:
        yield lambda: MAKERS[request.param](root / "env", agent)


@pytest.fixture
async def provider(make: Callable[[], EnvironmentProvider]) -> AsyncIterator[EnvironmentProvider]:
    found = make()
    try:
        await found.find({})
    except IsolationMissing as error:
        pytest.skip(str(error))
    yield found
    for environment in await found.find({}):
        await environment.terminate()
    await found.close()


@pytest.fixture
async def env(provider: EnvironmentProvider) -> EnvironmentPrimitives:
    return await provider.create("one", SPEC)


# --- creating and finding


async def test_create_finds_what_the_key_made_before(provider: EnvironmentProvider) -> None:
    first = await provider.create("same", SPEC)
    await first.write(f"{first.layout.work}/kept", b"1")
    second = await provider.create("same", SPEC)
    assert second.id == first.id
    assert await second.read(f"{second.layout.work}/kept") == b"1"


async def test_concurrent_creates_of_one_key_make_one(provider: EnvironmentProvider) -> None:
    made = await asyncio.gather(*(provider.create("same", SPEC) for _ in range(5)))
    assert len({one.id for one in made}) == 1
    assert len(await provider.find({})) == 1


async def test_find_by_labels(provider: EnvironmentProvider) -> None:
    one = await provider.create("one", SPEC)
    await provider.create("two", EnvironmentSpec({"session": "other"}, False))
    assert [found.id for found in await provider.find({"session": "abcd1234"})] == [one.id]
    assert await provider.find({"session": "abcd1234", "kind": "no"}) == []
    assert len(await provider.find({})) == 2


async def test_a_new_client_finds_environment_files_and_processes(
    make: Callable[[], EnvironmentProvider], provider: EnvironmentProvider
) -> None:
    env = await provider.create("one", SPEC)
    await env.launch("run", shell("exec sleep 60"))
    await env.write(f"{env.layout.home}/note", b"here")
    again = make()
    found = await again.attach(env.id)
    assert await found.liveness("run") is Liveness.RUNNING
    assert await found.read(f"{found.layout.home}/note") == b"here"
    await found.kill("run")
    assert await env.liveness("run") is Liveness.EXITED
    await again.close()


async def test_attach_to_what_is_not_there(provider: EnvironmentProvider) -> None:
    with pytest.raises(EnvironmentGone):
        await provider.attach("nothing")


# --- rest and end


async def test_at_rest_nothing_runs_and_the_files_stay(provider: EnvironmentProvider) -> None:
    env = await provider.create("one", SPEC)
    await env.launch("run", shell("setsid sleep 300 & exec sleep 300"))
    await env.write(f"{env.layout.work}/built", b"here")
    await provider.rest("one")
    await provider.rest("one")
    again = await provider.attach("one")
    assert await again.liveness("run") is Liveness.EXITED
    assert await again.read(f"{again.layout.work}/built") == b"here"
    with pytest.raises(EnvironmentGone):
        await provider.rest("nothing")


async def test_end_also_what_is_at_rest_and_what_is_gone(provider: EnvironmentProvider) -> None:
    await provider.create("one", SPEC)
    await provider.create("two", SPEC)
    await provider.rest("one")
    for name in ("one", "two", "two", "nothing"):
        await provider.end(name)
    assert await provider.find({}) == []
    with pytest.raises(EnvironmentGone):
        await provider.attach("one")


async def test_how_long_it_may_still_run(env: EnvironmentPrimitives) -> None:
    left = await env.left()
    assert left is None or 3500 < left <= 3600


# --- exec


async def test_exec_gives_output_and_exit_code(env: EnvironmentPrimitives) -> None:
    result = await env.exec(shell("cat; echo err >&2; exit 7"), stdin=b"in")
    assert (result.exit_code, result.stdout, result.stderr) == (7, b"in", b"err\n")
    assert not result.timed_out
    assert not result.truncated


async def test_exec_environment_and_folder(env: EnvironmentPrimitives) -> None:
    result = await env.exec(shell('echo "$X"; pwd; echo "$HOME"'), env={"X": "a b\n'\"$"}, cwd=env.layout.out)
    assert result.stdout.decode().splitlines() == ["a b", "'\"$", env.layout.out, env.layout.home]
    assert (await env.exec(["pwd"])).stdout.decode().strip() == env.layout.work


async def test_exec_does_not_inherit_the_hosts_environment(
    env: EnvironmentPrimitives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGEHAND_CANARY", "canary-value")
    assert b"canary-value" not in (await env.exec(["env"])).stdout


async def test_exec_caps_output_and_reads_on(env: EnvironmentPrimitives) -> None:
    result = await env.exec(shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; exit 3"))
    assert (result.exit_code, len(result.stdout), len(result.stderr)) == (3, 1 << 20, 1 << 20)
    assert result.truncated


async def test_exec_kills_the_whole_tree_at_its_timeout(env: EnvironmentPrimitives) -> None:
    ticks = f"{env.layout.out}/ticks"
    loop = f"while :; do echo . >> {ticks}; sleep 0.02; done"
    started = time.monotonic()
    result = await env.exec(shell(f"({loop}) & {loop}"), timeout=0.7)
    assert result.timed_out
    assert time.monotonic() - started < 5
    size = len(await env.read(ticks))
    assert size
    await env.exec(["sleep", "0.2"])
    assert len(await env.read(ticks)) == size


async def test_exec_with_a_closed_stdin_and_much_input(env: EnvironmentPrimitives) -> None:
    result = await env.exec(["true"], stdin=b"x" * (4 << 20))
    assert result.exit_code == 0


async def test_exec_of_what_is_not_there(env: EnvironmentPrimitives) -> None:
    for network in (False, True):
        result = await env.exec(["no-such-command"], network=network)
        assert result.exit_code == 127
        assert b"no-such-command" in result.stderr
    with pytest.raises(SandboxError):
        await env.exec(["true"], cwd=f"{env.layout.work}/none")
    with pytest.raises(SandboxError):
        await env.exec(["true"], env={"A": "b\0c"})


async def test_exec_with_network_names_gateway_and_proxy(env: EnvironmentPrimitives) -> None:
    result = await env.exec(["env"], network=True)
    values = dict(line.split("=", 1) for line in result.stdout.decode().splitlines() if "=" in line)
    assert values["FORGEHAND_GATEWAY"].startswith("http://127.0.0.1:")
    assert values["HTTPS_PROXY"] == values["https_proxy"] == values["HTTP_PROXY"] == values["http_proxy"]
    assert "127.0.0.1" in values["NO_PROXY"]


async def test_the_tools_of_the_layout_are_there(env: EnvironmentPrimitives) -> None:
    assert (await env.exec([env.layout.agent])).stdout == b"agent 1.0\n"
    assert b"git version" in (await env.exec([env.layout.git, "--version"])).stdout
    assert (await env.exec([env.layout.python, "-c", "print(1)"])).stdout == b"1\n"
    assert (await env.exec(["ls", f"{env.layout.runner}/forwarder.py"])).exit_code == 0


# --- launch, liveness, kill


async def test_launch_runs_once_under_a_name(env: EnvironmentPrimitives) -> None:
    command = shell(f'echo "$A" >> {env.layout.out}/log; pwd >> {env.layout.out}/log; exec sleep 60')
    assert await env.liveness("run") is Liveness.ABSENT
    await asyncio.gather(*(env.launch("run", command, env={"A": "b"}, cwd=env.layout.home) for _ in range(3)))
    await env.launch("run", command)
    expected = f"b\n{env.layout.home}\n".encode()
    await until_size(env, f"{env.layout.out}/log", len(expected))
    assert await env.read(f"{env.layout.out}/log") == expected
    assert await env.liveness("run") is Liveness.RUNNING


async def test_an_ended_name_stays_ended(env: EnvironmentPrimitives) -> None:
    await env.launch("run", shell(f"echo once >> {env.layout.out}/log"))

    async def ended() -> bool:
        return await env.liveness("run") is Liveness.EXITED

    await until(ended)
    await env.launch("run", shell(f"echo twice >> {env.layout.out}/log"))
    assert await env.liveness("run") is Liveness.EXITED
    assert await env.read(f"{env.layout.out}/log") == b"once\n"
    await env.kill("run")


async def test_kill_takes_the_tree_and_only_that(env: EnvironmentPrimitives) -> None:
    def loop(name: str) -> list[str]:
        one = f"while :; do echo . >> {env.layout.out}/{name}; sleep 0.02; done"
        return shell(f"({one}) & trap '' TERM INT HUP; {one}")

    await env.launch("one", loop("one"))
    await env.launch("two", loop("two"))
    await until_size(env, f"{env.layout.out}/one", 6)
    await until_size(env, f"{env.layout.out}/two", 6)
    await env.kill("one")
    assert await env.liveness("one") is Liveness.EXITED
    before = await env.stat(f"{env.layout.out}/one")
    assert before is not None
    alive = len(await env.read(f"{env.layout.out}/two"))
    await until_size(env, f"{env.layout.out}/two", alive + 20)
    assert await env.stat(f"{env.layout.out}/one") == before
    assert await env.liveness("two") is Liveness.RUNNING
    await env.kill("one")
    await env.kill("never-launched")


async def test_names_are_checked(env: EnvironmentPrimitives) -> None:
    for name in ("", "../x", "A", "a/b", "a b", "-x", "a" * 200):
        with pytest.raises(SandboxError):
            await env.launch(name, ["true"])


# --- files


async def test_write_read_stat_list(env: EnvironmentPrimitives) -> None:
    work = env.layout.work
    await env.write(f"{work}/a/b/c.txt", b"hello")
    await env.write_many({f"{work}/a/x": b"1", f"{work}/a/y": b"22"})
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


# --- watch


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


# --- the rest of its life


async def test_pause_and_resume(env: EnvironmentPrimitives) -> None:
    ticks = f"{env.layout.out}/ticks"
    await env.launch("run", shell(f"while :; do echo . >> {ticks}; sleep 0.01; done"))
    await until_size(env, ticks, 6)
    await env.pause()
    try:
        before = len(await env.read(ticks))
        # Longer than many ticks, and not a sleep: one look of the watch.
        assert await anext(env.watch(ticks, before)) == before
    except EnvironmentBusy:
        before = 6  # a machine that is frozen as a whole does not answer
        assert not await env.is_running()
    await env.resume()
    await until_size(env, ticks, before + 10)
    assert await env.is_running()


async def test_an_overview_tells_who_is_paused_and_wakes_nobody(provider: EnvironmentProvider) -> None:
    began = time.time()
    for name in ("one", "two"):
        env = await provider.create(name, SPEC)
        await env.launch("run", shell("exec sleep 60"))
    await env.pause()
    for _ in range(2):
        found = await provider.overview({"session": "abcd1234"})
        assert [(one.id, one.state) for one in found] == [
            ("one", EnvironmentState.RUNNING),
            ("two", EnvironmentState.PAUSED),
        ]
    assert all(dict(one.labels) == dict(SPEC.labels) for one in found)
    assert all(began - 5 < one.since < time.time() + 5 for one in found)
    assert len({one.kind for one in found}) == 1
    assert await provider.overview({"session": "other"}) == []


async def test_a_lease_is_told_while_what_is_paid_for_runs(
    provider: EnvironmentProvider, env: EnvironmentPrimitives
) -> None:
    first = await env.lease()
    told = [await provider.leases(env.id)]
    await env.pause()
    told.append(await provider.leases(env.id))
    assert await env.lease() is None, "and nothing has woken it"
    await env.resume()
    second = await env.lease()
    told.append(await provider.leases(env.id))
    if first is None:
        assert (second, told) == (None, [[], [], []])
        return
    assert second is not None
    assert [[one.since for one in each] for each in told] == [[first.since], [first.since], [second.since]]
    assert first.since < first.until
    assert second.since > first.since, "another run of it"
    assert first.cpus > 0
    assert first.memory_gib > 0
    assert (first.cpu_usd, first.gib_usd) == (0.000014, 0.0000045)


async def test_metrics(env: EnvironmentPrimitives) -> None:
    await env.write(f"{env.layout.work}/blob", os.urandom(2 << 20))
    await env.launch("run", shell("while :; do :; done"))

    async def busy() -> bool:
        return (await env.metrics()).cpu_percent > 10

    await until(busy)
    found = await env.metrics()
    assert found.memory_bytes > 100_000
    assert found.disk_bytes >= 2 << 20


async def test_expose_reaches_a_port_inside(env: EnvironmentPrimitives) -> None:
    serve = (
        "import http.server,sys;"
        "s=http.server.HTTPServer(('127.0.0.1',0),http.server.SimpleHTTPRequestHandler);"
        f"open('{env.layout.out}/port','w').write('%05d'%s.server_port);s.serve_forever()"
    )
    await env.write(f"{env.layout.work}/page", b"from inside")
    await env.launch("web", [env.layout.python, "-c", serve], cwd=env.layout.work)
    await until_size(env, f"{env.layout.out}/port", 5)
    address = await env.expose(int(await env.read(f"{env.layout.out}/port")))
    host, port = address.removeprefix("http://").rsplit(":", 1)
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /page HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    assert b"from inside" in answer


async def test_extend_is_accepted(env: EnvironmentPrimitives) -> None:
    await env.extend(3600)
    assert await env.is_running()


async def test_terminate_ends_everything_and_can_be_repeated(
    provider: EnvironmentProvider, env: EnvironmentPrimitives, root: Path
) -> None:
    await env.launch("run", shell("setsid sleep 60 & exec sleep 60"))
    await env.exec(shell(f"mkdir -p {env.layout.work}/a/b && chmod 000 {env.layout.work}/a"))
    await env.terminate()
    await env.terminate()
    assert not await env.is_running()
    assert await provider.find(SPEC.labels) == []
    with pytest.raises(EnvironmentGone):
        await provider.attach(env.id)
    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: env.exec(["true"]),
        lambda: env.launch("x", ["true"]),
        lambda: env.read(f"{env.layout.out}/x"),
        lambda: env.write(f"{env.layout.out}/x", b""),
        lambda: env.liveness("run"),
    )
    for call in calls:
        with pytest.raises(EnvironmentGone):
            await call()
    again = await provider.create("one", SPEC)
    assert await again.list(again.layout.work) == []
    assert await again.liveness("run") is Liveness.ABSENT


async def test_close_leaves_environments(
    make: Callable[[], EnvironmentProvider], provider: EnvironmentProvider
) -> None:
    other = make()
    env = await other.create("kept", SPEC)
    await env.launch("run", ["sleep", "60"])
    await other.close()
    assert await (await provider.attach(env.id)).liveness("run") is Liveness.RUNNING
