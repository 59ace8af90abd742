"""Sessions that install private packages: setup, agent and checks read them through the gateway, and hold no secret."""

from __future__ import annotations

import pytest

from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.registries import archives
from bot.store import packages
from bot.store.base import Store
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
