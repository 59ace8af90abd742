"""Limits and triggers that an account's owner sets on the page: they narrow what the operator allows, at once."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from bot.account_settings import SettingChoice, effective, narrowed, read_limits
from bot.settings import Limits
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github.threads import Issue
from bot.store import audit
from bot.store.base import Store
from tests.world import World
from tests.world.command_line import forgehand
from tests.world.visitor import Visitor, visitor


@pytest.fixture
def path(world: World) -> str:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    return f"/installations/{world.installation.id}"


async def sent(who: Visitor, path: str, form: str, **fields: str) -> tuple[int, str]:
    """As the browser sends the form: with the version that stands in it."""
    page = (await who.get(path)).text
    found = re.search(r'name="version" value="(\d+)"', page)
    assert found
    answer = await who.send(f"{path}/{form}", **{"version": found[1], **fields})
    return answer.status_code, answer.text


async def trail(world: World) -> list[tuple[str, str, str | None]]:
    store = await Store.open_reader(world.database)
    try:
        return [(one.actor, one.action, one.detail) for one in await audit.listing(store)]
    finally:
        await store.close()


async def test_an_owner_narrows_the_limits_and_the_trail_says_who_and_what(world: World, path: str) -> None:
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        before = (await olga.get(path)).text
        assert "Now <strong>$50.00</strong>, set by the operator" in before
        status, text = await sent(olga, path, "limits", day_budget="$20.50", sessions="2")
        assert (
            status == 200 and "Changed: dollars for all repositories in a day (UTC), threads that are worked on" in text
        )
        assert "Now <strong>$20.50</strong>, set here by olga" in text
        assert "Now <strong>2</strong>, set here by olga" in text and "day_budget: not set → 20.5" in text
        status, text = await sent(olga, path, "limits", sessions="2")
        assert "Now <strong>$50.00</strong>, set by the operator; olga removed this account&#39;s own" in text
    assert ("olga", "setting changed", "day_budget: not set → 20.5") in await trail(world)
    assert ("olga", "setting changed", "day_budget: 20.5 → not set") in await trail(world)
    shown = await forgehand(world.environment, "config", "show", "octo-org", "--json")
    rows = {one["name"]: one for one in shown.json}
    assert rows["sessions"]["value"] == 2 and rows["sessions"]["source"].startswith("set here by olga")
    assert rows["day_budget"]["value"] == 50


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("day_budget", "60", "It may be $50.00 at most, which is the operator&#39;s limit."),
        ("day_budget", "a lot", "It must be an amount in US dollars above zero"),
        ("month_budget", "0", "It must be an amount in US dollars above zero"),
        ("session_budget", "-1", "It must be an amount in US dollars above zero"),
        ("sessions", "1.5", "It must be a whole number from 1"),
        ("sessions", "９", "It must be a whole number from 1"),
        ("label", "x" * 51, "It must be the name of a label"),
        ("review_team", "a b", "It must be a name of letters"),
    ],
)
async def test_what_cannot_be_is_explained_at_its_field_and_changes_nothing(
    world: World, path: str, field: str, text: str, said: str
) -> None:
    form = "triggers" if field in ("label", "review_team") else "limits"
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        other = {"month_budget": "99"} if field == "day_budget" else {}
        status, page = await sent(olga, path, form, **{field: text}, **other)
        assert status == 422
        assert re.search(rf'<p class="bad" id="{field}-wrong">{re.escape(said)}', page), page
        assert re.search(rf'aria-describedby="[^"]*{field}-wrong" aria-invalid="true"', page)
        assert f'value="{text}"' in page, "what was typed is not lost"
        assert not other or 'value="99"' in page
    assert "setting changed" not in [action for _, action, _ in await trail(world)]


async def test_nobody_else_and_no_other_site_changes_them(world: World, path: str) -> None:
    world.repo.grant("alice", "admin")
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        async with visitor(world, service.url, "alice") as alice:
            for form in ("limits", "triggers"):
                assert (await alice.send(f"{path}/{form}", version="0")).status_code == 404
        forged = await olga.client.post(f"{path}/limits", data={"version": "0", "day_budget": "1"})
        assert forged.status_code == 403
        assert (await sent(olga, path, "limits", day_budget="10"))[0] == 200
        status, text = await sent(olga, path, "limits", version="0", day_budget="20")
        assert status == 422 and "Someone changed these settings in the meantime" in text
        assert "Now <strong>$10.00</strong>" in text
    assert [who for who, action, _ in await trail(world) if action == "setting changed"] == ["olga"]


async def test_a_turn_is_held_by_what_the_account_has_set(world: World, path: str) -> None:
    world.model.default(Script([Call("Bash", {"command": "true", "description": "Look"}), Wait("stuck"), Say("Done.")]))
    other = world.github.open_issue(world.repo, title="Another", by="alice")
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        await sent(olga, path, "limits", sessions="1", session_budget="0.75")
        world.say("/claude ask what is this?")
        await world.model.reached("stuck", timeout=60)
        world.say("/claude ask and this?", on=other)
        await world.github.changed(lambda: world.states(other))
        session = world.states()[0]["session"]
        async with visitor(world, service.url, "alice") as alice:
            assert "$0.75" in (await alice.get(f"/sessions/{session}")).text
        assert world.states(other)[0]["state"] == "queued", "one at once"
        world.model.release("stuck")
        assert await world.outcome() == "answered"
        assert await world.outcome(on=other) == "answered"


async def test_the_accounts_day_is_over_before_the_operators(world: World, path: str) -> None:
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        await sent(olga, path, "limits", day_budget="0.01")
        world.say("/claude ask and now?")
        await world.github.changed(lambda: len(world.replies()) == 2)
        assert "$0.01" in world.replies()[1].body and world.replies()[1].body.count("this installation") == 1


@pytest.fixture
def bare(world: World) -> Issue:
    world.repo = world.github.create_repo("octo-org/bare", files={"README.md": "Bare.\n"}, private=True)
    world.repo.grant("alice", "write")
    world.github.add_repos(world.installation, world.repo)
    world.issue = world.github.open_issue(world.repo, title="Set it up", body="Please.", by="alice")
    return world.issue


async def test_triggers_count_where_a_repository_has_no_file(world: World, path: str, bare: Issue) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot() as service, visitor(world, service.url, "olga") as olga:
        status, text = await sent(olga, path, "triggers", label="do-it", issue_opened="yes")
        assert status == 200 and "Changed: label, issue opened." in text
        assert re.search(r'name="issue_opened" value="yes" [^>]*checked', text) and "Set here by olga" in text
        world.github.label(bare, "do-it", by="alice")
        assert await world.outcome() == "no_change"
        world.github.commit(world.repo, "main", {".github/forgehand.yml": "draft: false\n"})
        world.issue = world.github.open_issue(world.repo, title="Two", body="More.", by="alice")
        world.say("/claude ask is this on?")
        assert await world.outcome() == "answered"
        assert len(world.states()) == 1, "its own file says nothing of new issues"


def test_a_limit_is_narrowed_and_never_widened() -> None:
    limits = Limits(session_budget_usd=5, day_budget_usd=50, month_budget_usd=500, max_sessions=8)
    own: Mapping[str, SettingChoice] = {
        "day_budget": SettingChoice(80.0, "olga", 0.0),
        "month_budget": SettingChoice(100.0, "olga", 0.0),
        "sessions": SettingChoice(3, "olga", 0.0),
    }
    assert (narrowed(limits, own).day_budget_usd, narrowed(limits, own).month_budget_usd) == (50, 100)
    assert {one.key.name: (one.value, one.source) for one in effective(limits, own)} == {
        "session_budget": (5, "the operator"),
        "day_budget": (50, "the operator"),
        "month_budget": (100, "this account"),
        "sessions": (3, "this account"),
    }
    assert read_limits({"day_budget": "7.5"}, limits)[0]["day_budget"] == 7.5
