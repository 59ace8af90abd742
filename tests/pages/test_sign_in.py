"""Signing in with GitHub over the wire: bound to one browser, once, and over when it is to be over."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

from tests.world import World
from tests.world.visitor import visitor


async def test_in_and_out_again(world: World) -> None:
    async with world.bot() as service, visitor(world, service.url) as alice:
        answer = await alice.sign_in("alice", "/deliveries")
        assert answer.status_code == 303 and answer.headers["location"] == "/deliveries"
        cookie = next(one for one in answer.headers.get_list("set-cookie") if one.startswith("forgehand="))
        for word in ("HttpOnly", "SameSite=lax", "Path=/", "Max-Age=28800"):
            assert word in cookie
        assert "alice" in (await alice.get("/deliveries")).text
        stale = alice.client.cookies["forgehand"]
        assert (await alice.send("/sign-out")).headers["location"] == "/sign-in"
        again = await alice.client.get("/", headers={"Cookie": f"forgehand={stale}"})
        assert again.status_code == 401
    assert not [one for one in world.github.state.user_tokens if one in _data(world)], "the person's token is not kept"


async def test_another_browser_cannot_use_the_way_back(world: World) -> None:
    async with world.bot() as service, visitor(world, service.url) as alice, visitor(world, service.url) as victim:
        address = await alice.leave_for_github()
        asked = parse_qs(urlsplit(address).query)
        assert asked["code_challenge_method"] == ["S256"]
        back = urlsplit(await alice.agree(address, "alice"))
        path = f"{back.path}?{back.query}"
        for browser in (victim, victim):
            answer = await browser.get(path)
            assert answer.status_code == 400 and "belongs to another browser" in answer.text
        await victim.leave_for_github()
        assert (await victim.get(path)).status_code == 400, "a trip of its own does not help"
        assert (await alice.get(path)).status_code == 303
        assert (await alice.get(path)).status_code == 400, "the trip is used up"


async def test_a_code_is_good_with_our_verifier_alone(world: World) -> None:
    async with world.bot() as service, visitor(world, service.url) as alice, visitor(world, service.url) as mallory:
        world.github.user("mallory")
        back = urlsplit(await alice.agree(await alice.leave_for_github(), "alice"))
        code = parse_qs(back.query)["code"][0]
        state = parse_qs(urlsplit(await mallory.leave_for_github()).query)["state"][0]
        answer = await mallory.get(f"/oauth/callback?code={code}&state={state}")
        assert answer.status_code == 403 and "did not sign you in" in answer.text
        assert (await mallory.get("/")).status_code == 401


async def test_a_way_on_leads_nowhere_else(world: World) -> None:
    async with world.bot() as service, visitor(world, service.url) as alice:
        for evil in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\r\nX: y"):
            assert (await alice.sign_in("alice", evil)).headers["location"] == "/", evil


async def test_a_visit_ends_by_itself(world: World) -> None:
    skipped = [0.0]
    async with (
        world.bot(lambda: time.time() + skipped[0]) as service,
        visitor(world, service.url, "alice") as alice,
    ):
        assert (await alice.get("/")).status_code == 200
        skipped[0] += 8 * 3600 + 1
        assert (await alice.get("/")).status_code == 401


async def test_who_has_taken_over_a_login_is_somebody_else(world: World) -> None:
    skipped = [0.0]
    async with world.bot(lambda: time.time() + skipped[0]) as service:
        world.say("/claude ask what is this?")
        await world.outcome()
        path = f"/sessions/{world.states()[0]['session']}"
        async with visitor(world, service.url, "alice") as alice:
            assert (await alice.get(path)).status_code == 200
            world.github.rename_user(world.github.user("alice"), "alicia")
            world.repo.grant("alice", "write")
            skipped[0] += 61
            assert (await alice.get(path)).status_code == 404


async def test_without_a_client_id_it_says_what_is_missing(world: World) -> None:
    async with world.bot(FORGEHAND_CLIENT_ID="") as service, visitor(world, service.url) as alice:
        answer = await alice.get("/sign-in")
        assert "FORGEHAND_CLIENT_ID" in answer.text and "Sign in with GitHub" not in answer.text


async def test_while_github_does_not_answer_nobody_is_let_in(world: World) -> None:
    skipped = [0.0]
    async with world.bot(lambda: time.time() + skipped[0]) as service:
        world.say("/claude ask what is this?")
        await world.outcome()
        path = f"/sessions/{world.states()[0]['session']}"
        async with visitor(world, service.url, "alice") as alice:
            assert (await alice.get(path)).status_code == 200
            skipped[0] += 61
            await world.github.stop()
            answer = await alice.get(path)
            assert answer.status_code == 503 and "GitHub isn&#39;t responding" in answer.text


async def test_behind_a_proxy_the_public_address_counts_and_no_header(world: World) -> None:
    public = "https://bot.example"
    for setting in (public, "https://Bot.Example:443/"):
        async with world.bot(FORGEHAND_PUBLIC_URL=setting) as service, visitor(world, service.url) as alice:
            for headers in ({}, {"X-Forwarded-Proto": "http"}, {"X-Forwarded-Proto": "https,http", "Host": "inner"}):
                moved = await alice.client.get("/sessions/aaaaaaaa/", headers=headers)
                assert moved.headers["location"] == f"{public}/sessions/aaaaaaaa"
                left = await alice.client.get("/sign-in/github", headers=headers)
                assert parse_qs(urlsplit(left.headers["location"]).query)["redirect_uri"] == [
                    f"{public}/oauth/callback"
                ]
                trip = left.headers["set-cookie"]
                assert trip.startswith("__Host-forgehand_trip=") and "; Secure" in trip
    async with world.bot() as service, visitor(world, service.url) as alice:
        told = await alice.client.get("/sign-in/github", headers={"X-Forwarded-Proto": "https,http"})
        assert "; Secure" in told.headers["set-cookie"], "no address is set, so the proxy is believed"


def _data(world: World) -> str:
    files = (world.root / "data").rglob("state.db*")
    return "".join(file.read_bytes().decode("latin-1") for file in files)
