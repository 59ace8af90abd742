"""An owner or the operator stores registries: tried at once, listed, forgotten, and no secret ever comes out again."""

from __future__ import annotations

from pathlib import Path

from bot.simulation.registries import SimulatedRegistries
from tests.world import World
from tests.world.command_line import forgehand
from tests.world.registries import INSIDE, REGISTRY_SECRET
from tests.world.visitor import visitor


async def test_an_owner_stores_tries_and_forgets_a_registry_on_the_page(world: World) -> None:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    world.repo.grant("alice", "admin")
    at = f"/installations/{world.installation.id}"
    async with SimulatedRegistries.running(f"Bearer {REGISTRY_SECRET}") as registries, world.bot(**INSIDE) as service:
        wish = {"registry": "internal", "kind": "cargo", "address": registries.address("cargo"), "scope": ""}
        wish |= {"hosts": "", "credential": "bearer", "credential_name": "", "secret": REGISTRY_SECRET}
        async with visitor(world, service.url, "alice") as alice:
            for path in ("", "/test", "/remove", "/forks"):
                assert (await alice.send(f"{at}/registries{path}", **wish)).status_code == 404
        async with visitor(world, service.url, "olga") as olga:
            forged = await olga.client.post(f"{at}/registries", data=wish)
            assert forged.status_code == 403
            for change, words in (
                ({"address": "http://10.0.0.1/"}, "plain http"),
                ({"address": "https://u:p@packages.example/"}, "user name or password"),
                ({"kind": "ftp"}, "The kind of a registry"),
                ({"registry": "In ternal"}, "lower-case letters"),
                ({"scope": "<script>", "kind": "npm"}, "Each scope"),
                ({"secret": ""}, "needs its secret"),
                ({"credential": "nothing"}, "Choose the kind"),
            ):
                refused = await olga.send(f"{at}/registries", **{**wish, **change})
                assert refused.status_code == 422 and words in refused.text, words
                assert REGISTRY_SECRET not in refused.text
            wrong = await olga.send(f"{at}/registries", **{**wish, "secret": "outdated-secret"})
            assert "internal is stored" in wrong.text and "The credential is wrong" in wrong.text
            stored = await olga.send(f"{at}/registries", **wish)
            assert stored.status_code == 200 and "it works" in stored.text
            assert "it works" in (await olga.send(f"{at}/registries/test", registry="internal")).text
            page = (await olga.get(at)).text
            assert "internal" in page and "registry stored" in page
            assert REGISTRY_SECRET not in stored.text + page
            opened = await olga.send(f"{at}/registries/forks", registries_on_forks="open", version="0")
            assert "Changed: registries for code of forks" in opened.text
            gone = await olga.send(f"{at}/registries/remove", registry="internal")
            assert "is forgotten" in gone.text and "stored no registry" in (await olga.get(at)).text
            again = await olga.send(f"{at}/registries/test", registry="internal")
            assert again.status_code == 422


async def test_the_operator_stores_one_for_all_accounts_on_the_command_line(world: World, tmp_path: Path) -> None:
    async with SimulatedRegistries.running(f"Bearer {REGISTRY_SECRET}") as registries:
        environment = {**world.environment, **INSIDE}
        add = ("registries", "add", "internal", "pypi", registries.address("pypi"))
        stored = await forgehand(environment, *add, stdin=f"{REGISTRY_SECRET}\n")
        assert stored.code == 0 and "internal is stored for everybody" in stored.out, stored.text
        tried = await forgehand(environment, "registries", "test", "internal")
        assert tried.code == 0 and REGISTRY_SECRET not in tried.text, tried.text
        listed = await forgehand(environment, "registries", "list", "--json")
        assert [(one["name"], one["for"], one["credential"]) for one in listed.json] == [
            ("internal", "everybody", "bearer")
        ]
        file = tmp_path / "secret"
        file.write_text("outdated\n")
        again = await forgehand(environment, *add, "--secret-file", str(file))
        assert "wrong, or may not read" in again.out
        failed = await forgehand(environment, "registries", "test", "internal")
        assert failed.code == 1 and "answered 401" in failed.text and "outdated" not in failed.text
        both = await forgehand(environment, *add, "--user", "u", "--public")
        assert both.code == 2
        inside = await forgehand(world.environment, *add, stdin="x")
        assert inside.code == 1 and "FORGEHAND_INSIDE_HOSTS" in inside.text
        removed = await forgehand(environment, "registries", "remove", "internal")
        assert "is forgotten" in removed.out
        assert (await forgehand(environment, "registries", "remove", "internal")).code == 1
        trail = await forgehand(environment, "audit")
        assert "registry stored" in trail.out and "registry removed" in trail.out
        assert REGISTRY_SECRET not in trail.text
