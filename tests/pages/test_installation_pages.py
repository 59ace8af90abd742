"""An account's settings on the page: for its owner alone, and a key goes in and never comes out."""

from __future__ import annotations

from bot.repo_config import PATH as CONFIG
from bot.simulation.anthropic import Say, Script
from tests.world import MODEL_KEY, World
from tests.world.visitor import visitor

OWN_KEY = "sk-ant-api03-" + "canary-own-key" * 4


async def test_only_an_owner_of_the_account_sees_and_changes_its_settings(world: World) -> None:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    world.repo.grant("alice", "admin")
    world.github.user("mallory")
    path = f"/installations/{world.installation.id}"
    async with world.bot() as service:
        for login in ("alice", "mallory"):  # an administrator of the repository owns nothing of the account
            async with visitor(world, service.url, login) as other:
                for one in (path, f"{path}/spend", "/installations/1"):
                    assert (await other.get(one)).status_code == 404, login
                answer = await other.send(f"{path}/key", name="ANTHROPIC_API_KEY", value=OWN_KEY)
                assert answer.status_code == 404
                assert "octo-org" not in (await other.get("/installations")).text
        async with visitor(world, service.url, "olga") as olga:
            assert "octo-org" in (await olga.get("/installations")).text
            assert "Settings of octo-org" in (await olga.get(path)).text
            world.github.organization("octo-org", members=["olga"])
            answer = await olga.send(f"{path}/key", name="ANTHROPIC_API_KEY", value=OWN_KEY)
            assert answer.status_code == 404, "asked anew before anything is changed"


async def test_who_gives_a_name_up_to_an_owner_is_none(world: World) -> None:
    """A visit outlives the name that it was begun under; whoever has that name now is another person."""
    world.github.organization("octo-org", owners=["olga"])
    seller, path = world.github.user("boss"), f"/installations/{world.installation.id}"
    async with world.bot() as service, visitor(world, service.url, "boss") as visit:
        world.github.rename_user(seller, "somebody-else")
        world.github.rename_user(world.github.user("olga"), "boss")
        assert (await visit.get(path)).status_code == 404
        answer = await visit.send(f"{path}/key", name="ANTHROPIC_API_KEY", value=OWN_KEY)
        assert answer.status_code == 404


async def test_an_address_with_a_number_that_nothing_can_have_is_an_unknown_page(world: World) -> None:
    async with world.bot() as service, visitor(world, service.url, "alice") as alice:
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        session = f"/sessions/{world.states()[0]['session']}"
        for number in ("9" * 19, "9" * 5000, "-1", "1.0", "\N{ARABIC-INDIC DIGIT THREE}"):
            for page in (f"/installations/{number}", f"/installations/{number}/spend", f"{session}/patch/{number}"):
                assert (await alice.get(page)).status_code == 404, page[:60]
            assert (await alice.send(f"/installations/{number}/limits")).status_code == 404


async def test_a_key_is_tried_stored_used_and_never_shown(world: World) -> None:
    world.github.organization("octo-org", owners=["olga"])
    world.model.default(Script([Say("Nothing to do.")]))
    path = f"/installations/{world.installation.id}"
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        wrong = await olga.send(f"{path}/key", name="ANTHROPIC_API_KEY", value=OWN_KEY)
        assert wrong.status_code == 422 and "does not work" in wrong.text and OWN_KEY not in wrong.text
        odd = await olga.send(f"{path}/key", name="FORGEHAND_APP", value=MODEL_KEY)
        assert odd.status_code == 422
        forged = await olga.client.post(f"{path}/key", data={"name": "ANTHROPIC_API_KEY", "value": MODEL_KEY})
        assert forged.status_code == 403
        before = (await olga.get(path)).text
        assert "has not set a key" in before and "legal-and-compliance" in before
        stored = await olga.send(f"{path}/key", name="ANTHROPIC_API_KEY", value=MODEL_KEY)
        assert stored.status_code == 200 and "is stored, encrypted" in stored.text
        for page in (stored, await olga.get(path)):
            assert "fingerprint" in page.text and MODEL_KEY not in page.text
        forgotten = await olga.send(f"{path}/forget", name="ANTHROPIC_API_KEY")
        assert "is forgotten" in forgotten.text
        assert "has not set a key" in (await olga.get(path)).text


async def test_what_was_spent_is_drawn_for_this_installation(world: World) -> None:
    world.github.organization("octo-org", owners=["olga"])
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        page = await olga.get(f"/installations/{world.installation.id}/spend")
        for words in ("By day", "By repository", "octo-org/shop", "By person", "alice", '<rect width="100.0"'):
            assert words in page.text, words


async def test_without_the_permission_to_read_members_it_says_which_one_is_missing(world: World) -> None:
    world.github.organization("octo-org", owners=["olga"])
    world.installation.permissions.pop("members")
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        answer = await olga.get(f"/installations/{world.installation.id}")
        assert answer.status_code == 403 and "Members: read" in answer.text


async def test_why_nothing_came_of_a_comment_is_for_who_can_write(world: World) -> None:
    world.github.user("mallory")
    world.github.user("rita")
    world.repo.grant("rita", "read")
    async with world.bot() as service:
        world.say("/claude fix this", by="rita")
        await world.github.changed(world.replies)
        async with visitor(world, service.url, "alice") as alice:
            page = (await alice.get("/deliveries")).text
            assert "it takes write access" in page and "issue_comment" in page
        async with visitor(world, service.url, "rita") as rita:
            assert "it takes write access" not in (await rita.get("/deliveries")).text


async def test_the_state_of_each_config_is_shown_as_it_was_last_read(world: World) -> None:
    world.github.organization("octo-org", owners=["olga"])
    world.model.default(Script([Say("Nothing to do.")]))
    path = f"/installations/{world.installation.id}"
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        assert "has not worked in any repository" in (await olga.get(path)).text
        world.say("/claude look around")
        assert await world.outcome() == "no_change"
        assert "no config file" in (await olga.get(path)).text
        world.github.commit(world.repo, "main", {CONFIG: "chekcs: [make]\n"})
        world.say("/claude look again")
        await world.outcome(2)
        page = (await olga.get(path)).text
        assert "config cannot be used" in page and "chekcs" in page
        assert f'href="{world.github.url}/octo-org/shop"' in page
        world.github.commit(world.repo, "main", {CONFIG: "budget: 3\n"})
        world.say("/claude look once more")
        await world.outcome(3)
        page = (await olga.get(path)).text
        assert "config is fine" in page and "chekcs" not in page
