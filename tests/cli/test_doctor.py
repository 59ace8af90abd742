"""`forgehand doctor` beside a world that is well, and beside one thing after another that is not."""

from __future__ import annotations

import time

import pytest

from bot.checkup import NOWHERE
from bot.simulation.github import Fault
from tests.world import World
from tests.world.command_line import Ran, forgehand


async def doctor(world: World, url: str, **changes: str) -> tuple[Ran, dict[str, dict[str, str]]]:
    port = url.rpartition(":")[2]
    ran = await forgehand({**world.environment, "FORGEHAND_PORT": port, **changes}, "doctor", "--json")
    return ran, {one["name"]: one for one in ran.json}


async def test_all_is_well_and_said_line_by_line(world: World) -> None:
    async with world.bot() as service:
        world.say("hello")
        await world.github.idle()
        ran, found = await doctor(world, service.url)
        people = await forgehand({**world.environment, "FORGEHAND_PORT": service.url.rpartition(":")[2]}, "doctor")
    assert ran.code == 0, ran.out
    names = "disk database git model claude sandbox app permissions events clock installed webhook ping deliveries "
    names += "pages signatures"
    assert {*names.split(), "model key"} == found.keys()
    assert all(one["level"] == "good" for one in found.values()), found
    assert people.code == 0 and "✓ permissions" in people.out
    assert not [line for line in people.out.splitlines() if "canary" in line]


async def test_each_thing_that_is_wrong_comes_with_what_to_click(world: World) -> None:
    world.app.permissions["contents"] = "read"
    world.app.permissions.pop("checks")
    world.app.events.remove("issues")
    async with world.bot() as service:
        world.github.suspend(world.installation)
        await world.github.idle()
        ran, found = await doctor(
            world, service.url, FORGEHAND_WEBHOOK_SECRET="another", ANTHROPIC_API_KEY="sk-ant-api03-wrong"
        )
    assert ran.code == 1
    bad = {name for name, one in found.items() if one["level"] == "bad"}
    assert bad == {"permissions", "events", "ping", "model key", "installed"}
    assert "checks: write" in found["permissions"]["words"] and "contents: write" in found["permissions"]["words"]
    assert f"{world.github.url}/settings/apps/forgehand/permissions" in found["permissions"]["fix"]
    assert "a different webhook secret" in found["ping"]["words"]
    assert "/installations/new" in found["installed"]["fix"]
    assert f"suspended on {world.repo.owner.login}" in found["installed"]["words"]
    assert f"/settings/installations/{world.installation.id}" in found["installed"]["fix"]
    assert "Set another ANTHROPIC_API_KEY" in found["model key"]["fix"], "a stored one would not be used"
    assert "Set another" not in found["model key"]["words"], "said once"
    assert all(one["fix"] for one in found.values() if one["level"] != "good")


async def test_a_subscriptions_token_works_and_its_terms_are_named(world: World) -> None:
    world.model.oauth_tokens.append("sk-ant-oat01-of-somebody")
    async with world.bot() as service:
        given = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-of-somebody"}
        ran, found = await doctor(world, service.url, **given)
        stored = await forgehand(
            world.environment, "keys", "set", "CLAUDE_CODE_OAUTH_TOKEN", "--no-check", stdin="sk-ant-oat01-of-somebody"
        )
    assert ran.code == 0 and found["model key"]["level"] == "warning"
    assert "legal-and-compliance" in found["model key"]["fix"] and "legal-and-compliance" in stored.out


async def test_github_tells_that_the_secret_differs(world: World) -> None:
    async with world.bot() as service:
        world.app.webhook_secret = "changed at GitHub alone"
        world.say("hello")
        await world.github.idle()
        _, found = await doctor(world, service.url)
    assert found["ping"]["level"] == "good"
    assert found["deliveries"]["level"] == "bad" and "webhook secret" in found["deliveries"]["fix"]


async def test_an_id_and_a_key_that_do_not_belong_together(world: World) -> None:
    _, found = await doctor(world, "http://127.0.0.1:9", FORGEHAND_APP_ID="999")
    assert found["app"]["level"] == "bad" and "same App" in found["app"]["fix"]


async def test_a_clock_that_is_wrong(world: World) -> None:
    world.github.state.clock = lambda: time.time() + 400
    _, found = await doctor(world, "http://127.0.0.1:9")
    assert found["clock"]["level"] == "warning" and "behind" in found["clock"]["words"]


async def test_nothing_is_set(world: World) -> None:
    ran, found = await doctor(world, "http://127.0.0.1:9", FORGEHAND_APP_ID="")
    assert (
        ran.code == 1
        and found.keys() == {"disk", "database", "git", "settings"}
        and "FORGEHAND_APP_ID" in found["settings"]["words"]
    )


@pytest.mark.review("e2b-6")
async def test_a_gateway_at_a_port_that_no_sandbox_reaches_by_name(world: World) -> None:
    given = {"FORGEHAND_SANDBOX": "e2b", "E2B_API_KEY": "e2b_x", "FORGEHAND_PUBLIC_URL": "https://bot.example:8443"}
    ran, found = await doctor(world, "http://127.0.0.1:9", **given)
    assert ran.code == 1
    assert "FORGEHAND_PUBLIC_URL has the port 8443" in found["settings"]["words"]


async def test_github_that_does_not_answer_hides_nothing_else(world: World) -> None:
    world.github.faults.add(Fault("GET /app", "fail", status=503, times=None))
    ran, found = await doctor(world, "http://127.0.0.1:9")
    assert ran.code == 1 and found["app"]["level"] == "bad" and found["claude"]["level"] == "good"


async def test_polling_needs_no_webhook(world: World) -> None:
    world.app.webhook_url = NOWHERE
    environment = {**world.environment, "FORGEHAND_WEBHOOK_SECRET": ""}
    ran = await forgehand(environment, "doctor", "--poll", "--json")
    found = {one["name"]: one["level"] for one in ran.json}
    assert ran.code == 0 and found["webhook"] == "good" and "ping" not in found


@pytest.mark.parametrize(("arguments", "url"), [(["--poll"], None), ([], None), ([], NOWHERE)])
async def test_an_app_that_tells_nobody_is_named_with_what_to_click(
    world: World, arguments: list[str], url: str | None
) -> None:
    """GitHub keeps no log for an App without a webhook, and to an address that leads nowhere it is sent in vain."""
    world.app.webhook_url = url
    ran = await forgehand(world.environment, "doctor", "--json", *arguments)
    [webhook] = [one for one in ran.json if one["name"] == "webhook"]
    assert ran.code == 1 and webhook["level"] == "bad"
    assert f"{world.github.url}/settings/apps/forgehand" in webhook["fix"]
    meant = NOWHERE if arguments else "https://your-host/webhook"
    assert meant in webhook["fix"]


async def test_a_repository_that_wants_signed_commits_and_does_not_have_them_made(world: World) -> None:
    world.github.protect(world.repo, "forgehand/*", "Signed only.", ruleset=True, only="signatures")
    async with world.bot() as service:
        _, found = await doctor(world, service.url)
        world.github.commit(world.repo, "main", {".github/forgehand.yml": "commits: verified\n"}, by="alice")
        _, mended = await doctor(world, service.url)
    assert world.repo.full_name in found["signatures"]["words"] and "commits: verified" in found["signatures"]["fix"]
    assert mended["signatures"]["level"] == "good"
    assert "cannot see branch protection without a ruleset" in mended["signatures"]["words"]
