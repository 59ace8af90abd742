"""Sessions that install private packages: setup, agent and checks read them through the gateway, and hold no secret."""

from __future__ import annotations

import pytest

from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.registries import archives
from bot.store import packages
from bot.store.base import Store
from sandbox.runner import web
from tests.world import CONFIG, World
from tests.world.registries import REGISTRY_SECRET, with_registries

PIP = "python3 -m pip --no-cache-dir --disable-pip-version-check"
GET = f"{PIP} install -q --no-deps --target"
SAYS = "python3 -c 'import acme_pay; print(acme_pay.SAYS)'"


@pytest.mark.quick("bot.outside", "bot.simulation.registries")
async def test_setup_agent_and_checks_install_a_private_package(world: World) -> None:
    world.github.commit(
        world.repo,
        "main",
        {
            CONFIG: "registries: [pypi]\n"
            f"setup:\n  - {GET} ~/setup acme-pay==1.0\n"
            f"checks:\n  - {GET} ~/checks acme-pay==1.0 && PYTHONPATH=~/checks {SAYS}\n"
        },
    )
    world.model.default(
        Script(
            [
                Call("Bash", {"command": f"{GET} ~/mine acme-pay==1.0 && PYTHONPATH=~/setup:~/mine {SAYS}"}),
                Call("Bash", {"command": "echo '# done' >> shop.py", "description": "Work"}),
                Say("Installed it."),
            ]
        )
    )
    async with with_registries(world, "pypi") as registries:
        shelf = registries.shelf("pypi")
        one = shelf.put(archives.wheel("acme-pay", "1.0", says="paid in full"))
        async with world.bot():
            world.say("/claude install it")
            assert await world.outcome() == "pull_request", world.replies()[0].body
        heard = "\n".join(str(request.body) for request in world.model.requests)
        assert "paid in full" in heard, "the agent has it"
        [live] = world.replies()
        assert "exit 0" in live.body and "1 package" in live.body
        assert len(registries.asked(one.file)) == 1, "then the cache answers"
        assert not registries.leaks
    assert REGISTRY_SECRET not in heard
    store = await Store.open(world.database)
    [found] = await packages.of_session(store, str(world.states()[0]["session"]), 10)  # type: ignore[arg-type]
    assert (found.name, found.version, found.downloads, found.from_cache) == ("acme-pay", "1.0", 4, 3)
    alive = await store.many("SELECT * FROM gateway_tokens WHERE revoked_at IS NULL")
    assert not alive
    await store.close()


LOOK = Call("Bash", {"command": f"{PIP} download --no-deps -d /tmp/got acme-pay 2>&1; env | grep -c PIP_CONFIG; true"})


async def test_code_of_a_fork_reads_no_registry_unless_the_account_says_so(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "registries: [pypi]\n"})
    world.model.default(Script([LOOK, Say("I looked.")]))
    async with with_registries(world, "pypi") as registries:
        registries.shelf("pypi").put(archives.wheel("acme-pay", "1.0"))
        async with world.bot():
            fork = world.github.fork(world.repo, "mallory")
            world.github.commit(fork, "feature", {"more.py": "MORE = 1\n"}, by="mallory")
            pull = world.github.open_pull(world.repo, head="mallory:feature", by="mallory", title="More")
            world.say("/claude ask what does it do?", on=pull)
            assert await world.outcome(on=pull) == "answered", world.replies(pull)[0].body
            assert not registries.requests
            await world.change(
                "INSERT INTO installation_settings (installation_id, name, value, set_by, set_at) "
                "VALUES (:id, 'registries_on_forks', '\"open\"', 'olga', 1.0)",
                id=world.installation.id,
            )
            world.say("/claude ask and now?", on=pull)
            assert await world.outcome(2, on=pull) == "answered", world.replies(pull)[1].body
            assert registries.asked("acme_pay-1.0")


async def test_a_registry_that_nobody_has_stored_is_named(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "registries: [pypi, internal]\n"})
    async with world.bot():
        world.say("/claude install it")
        assert await world.outcome() == "failed"
    [live] = world.replies()
    assert "registries that this account has not stored: `pypi`, `internal`" in live.body
    assert not world.model.requests


def test_a_request_over_the_network_says_which_address_is_valid_inside() -> None:
    target = web.Target.of("https://forgehand.example", {})
    head, _ = web.renamed(
        b"GET /gateway/packages/pypi/simple/ HTTP/1.1\r\nHost: 127.0.0.1:9\r\nX-Forgehand-Inside: a\r\n\r\n", target
    )
    assert b"host: forgehand.example" in head and head.count(b"127.0.0.1:9") == 1
    assert head.rindex(b"x-forgehand-inside: 127.0.0.1:9") > head.rindex(b"X-Forgehand-Inside: a")
    head, _ = web.renamed(b"POST /gateway/anthropic HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\r\n", target)
    assert b"127.0.0.1" not in head
