"""Notices to the outside: receivers hear signed bulletins of turns, each until it is taken, and nothing beside."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from bot import repo_config
from bot.errors import BadRepoConfig, UserError
from bot.keyring import KeyRing
from bot.loops import background
from bot.models import InstallationId, Outcome, Repo, RepoId, Thread, TurnKey
from bot.outside import posting, receivers, sending
from bot.outside.posting import Links
from bot.outside.receivers import ReceiverPlace, ReceiverWish
from bot.outside.sending import BulletinSender
from bot.repo_config.notify import BulletinEvent, NotifyRule
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.simulation.anthropic import Say, Script
from bot.store import approvals, bulletins, outside_services, sessions
from bot.store.approvals import ApprovalKind, ApprovalRequest
from bot.store.base import Address, Store
from bot.store.outside_services import Purpose
from bot.store.sessions import NewTurn
from bot.vault import Vault
from tests.world import CONFIG, SECRET_KEY, World
from tests.world.command_line import forgehand
from tests.world.plain_http import plain_client
from tests.world.receivers import PATH, BulletinReceiver
from tests.world.registries import INSIDE
from tests.world.visitor import visitor

NOTIFY = "notify:\n  - {to: team-chat, on: [asks, ended]}\n"
KEY = re.compile(r"whsec_[A-Za-z0-9+/]{43}=")
METRICS = "metrics-token-0123456789"
PLAN = "1. Canary words of the agent."
HERE = InsideHosts(frozenset({"127.0.0.1"}))
ACCOUNT, OTHER = InstallationId(1), InstallationId(2)
ISSUE = Thread(Repo(RepoId(7), "octo", "calc", True, "main"), ACCOUNT, 5, False)


async def test_receivers_hear_that_a_turn_asks_and_ends_also_after_a_restart(world: World) -> None:
    world.github.organization("octo-org", owners=["olga"], members=["alice"])
    world.github.commit(world.repo, "main", {CONFIG: NOTIFY})
    world.model.default(Script([Say(PLAN)]))
    at, began = f"/installations/{world.installation.id}/receivers", time.time()
    async with BulletinReceiver.running() as chat, BulletinReceiver.running() as everything:
        add = ("receivers", "add", "everything", "--on", "ended")
        refused = await forgehand(world.environment, *add, stdin=everything.url)
        assert refused.code == 1 and "FORGEHAND_INSIDE_HOSTS" in refused.text and PATH not in refused.text
        world.environment |= INSIDE
        stored = await forgehand(world.environment, *add, stdin=f"{everything.url}\n")
        everything.key, everything.status = KEY.findall(stored.out)[0], 503
        assert "stored for everybody" in stored.out and PATH not in stored.text
        async with world.bot(FORGEHAND_METRICS_TOKEN=METRICS) as service:
            wish = {"receiver": "team-chat", "address": chat.url}
            async with visitor(world, service.url, "alice") as alice:
                for path in ("", "/test", "/remove"):
                    assert (await alice.send(f"{at}{path}", **wish)).status_code == 404
            async with visitor(world, service.url, "olga") as olga:
                assert (await olga.client.post(at, data=wish)).status_code == 403, "a forged form"
                for wrong, words in (
                    ({"address": "http://10.0.0.1/canary-path"}, "plain http"),
                    ({"address": "https://u:canary@hooks.example/"}, "user name or password"),
                    ({"receiver": "Team Chat"}, "lower-case letters"),
                ):
                    answer = await olga.send(at, **{**wish, **wrong})
                    assert answer.status_code == 422 and words in answer.text and "canary" not in answer.text
                shown = await olga.send(at, **wish)
                [chat.key] = KEY.findall(shown.text)
                assert "answered 200" in (await olga.send(f"{at}/test", receiver="team-chat")).text
                page = (await olga.get(f"/installations/{world.installation.id}")).text
                assert "team-chat" in page and not KEY.search(page) and PATH not in shown.text + page
            world.say("/claude plan mending the canary discount")
            assert await world.outcome() == "planned"
            _, (_, asks), (ended_id, ended) = await chat.got(3)
            [(first_id, first)] = await everything.got(1)
            metrics = (await _text(service.url)).splitlines()
        assert 'forgehand_bulletins{state="sent"} 2.0' in metrics
        assert asks["forgehand"]["asks"] == "plan" and asks["forgehand"]["event"] == "asks"
        said, session = ended["forgehand"], world.states()[0]["session"]
        assert (said["outcome"], said["kind"], said["event"], said["asks"]) == ("planned", "plan", "ended", None)
        assert (said["repository"], said["number"]) == (world.repo.full_name, world.issue.number)
        assert (said["session"], said["turn"], said["id"]) == (session, 1, ended_id)
        assert said["thread_url"] == f"{world.github.url}/{world.repo.full_name}/issues/{world.issue.number}"
        assert said["session_url"] is None and said["cost_usd"] > 0
        assert ended["text"].startswith(f"{world.repo.full_name}#{world.issue.number}: plan has ended: planned ($")
        for foreign in ("canary", world.issue.title, str(world.issue.body), "alice", "Canary words"):
            assert foreign not in repr(chat.posts + everything.posts), foreign
        everything.status = 200
        async with world.bot(lambda: time.time() + sending.FIRST_PAUSE_SECONDS + 5):
            assert (await everything.got(2))[1] == (first_id, first), "the same id and body, after a restart too"
        assert len(chat.posts) == 3 and first_id != ended_id and time.time() - began < 120
        await world.change("UPDATE bulletins SET state = 'waiting', tries = 5, problem = 'x answered 503.'")
        listed = (await forgehand(world.environment, "receivers", "list", "--json")).json
        assert [(one["name"], one["waiting"], one["on"]) for one in listed] == [
            ("everything", 1, "ended"),
            ("team-chat", 2, ""),
        ]
        doctor = await forgehand(world.environment, "doctor")
        assert "everything does not take its bulletins" in doctor.out and PATH not in doctor.text
        trail = await forgehand(world.environment, "audit")
        assert "receiver stored" in trail.out and PATH not in trail.text
        tried = await forgehand(world.environment, "receivers", "test", "everything")
        assert tried.code == 0 and "answered 200" in tried.out
        assert (await forgehand(world.environment, "receivers", "remove", "everything")).code == 0
        assert (await forgehand(world.environment, "receivers", "test", "everything")).code == 1


async def _text(url: str) -> str:
    async with plain_client() as client:
        return (await client.get(f"{url}/metrics", headers={"authorization": f"Bearer {METRICS}"})).text


class Rig:
    """A store with an account, and senders on it whose clock the test moves."""

    def __init__(self, store: Store, vault: Vault, stack: AsyncExitStack) -> None:
        self.store = store
        self._vault = vault
        self._stack = stack
        self.acts = True

    async def receiver(self, name: str, *, on: str = "ended", account: InstallationId = ACCOUNT) -> BulletinReceiver:
        one = await self._stack.enter_async_context(BulletinReceiver.running())
        await self.store_at(name, one.url, one, on=on, account=account)
        return one

    async def store_at(
        self, name: str, url: str, one: BulletinReceiver, *, on: str = "ended", account: InstallationId = ACCOUNT
    ) -> None:
        wish = ReceiverWish(name, Secret(url), receivers.read_events(on.split()))
        place = ReceiverPlace(account, "octo", "olga")
        one.clock = self.store.now
        _, key = await receivers.keep(self.store, self._vault, wish, place, HERE)
        one.key = key.reveal()

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[BulletinSender]:
        links = Links("https://github.example", "https://pages.example/")
        sender = BulletinSender(self.store, self._vault, HERE, links, lambda: self.acts)
        async with background(sender.loop.run()):
            yield sender
        await sender.close()

    async def until(self, holds: Callable[[], Awaitable[bool]], sender: BulletinSender) -> None:
        async with asyncio.timeout(20):
            while not await holds():
                sender.loop.wake()
                await asyncio.sleep(0)

    async def count(self, name: str, state: str) -> int:
        sql = "SELECT COUNT(*) AS n FROM bulletins WHERE receiver = :name AND state = :state"
        row = await self.store.one(sql, name=name, state=state)
        assert row is not None
        return int(row["n"])

    async def tries(self, name: str) -> int:
        row = await self.store.one("SELECT MAX(tries) AS n FROM bulletins WHERE receiver = :name", name=name)
        assert row is not None
        return int(row["n"])

    async def ended(self, n: int, outcome: Outcome = Outcome.PULL_REQUEST, **columns: str) -> TurnKey:
        new = NewTurn(ISSUE, "run", "canary words", "alice", 11, f"comment:{n}", "model", 5.0, 3600.0)
        key = await sessions.begin_turn(self.store, new)
        assert key is not None
        if columns:
            await sessions.update_turn(self.store, key, **columns)
        for _ in range(2):
            await sessions.finish(self.store, key, outcome)
        return key


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def rig(address: Address, clock: Clock) -> AsyncIterator[Rig]:
    store = await Store.open(address, clock=clock)
    vault = Vault(store, KeyRing([Secret(SECRET_KEY)]))
    await vault.prepare()
    async with AsyncExitStack() as stack:
        yield Rig(store, vault, stack)
    await store.close()


async def test_notices_go_on_past_receivers_that_hang_refuse_or_redirect(rig: Rig, clock: Clock) -> None:
    good, hangs, bad = await rig.receiver("good"), await rig.receiver("hangs"), await rig.receiver("bad")
    hangs.holds, bad.status, bad.headers = True, 307, {"location": good.url.replace(PATH, "/elsewhere")}
    for n in range(3):
        await rig.ended(n)
    async with rig.sending() as sender:
        await good.got(3)
        await rig.until(lambda: _is(rig.count("bad", "waiting"), 3), sender)
        await hangs.got(1)
        assert len({made for made, _ in good.posts}) == 3 and good.most_at_once == 1
        assert len(bad.posts) == 1, "the rest waits with the first"
        assert [len(hangs.posts), hangs.most_at_once] == [1, 1] and not good.others, "no redirect is followed"
        await rig.until(lambda: _is(rig.tries("bad"), 1), sender)
    [first] = hangs.posts
    hangs.holds = False
    hangs.released.set()
    async with rig.sending() as sender:  # the sender before died between the post and its note
        await hangs.got(4)
        assert hangs.posts[1] == first and len({made for made, _ in hangs.posts}) == 3
        clock.ahead += sending.FIRST_PAUSE_SECONDS + 1
        sender.loop.wake()
        await bad.got(2)
        assert bad.posts[0] == bad.posts[1]
        await rig.until(lambda: _is(rig.tries("bad"), 2), sender)
        clock.ahead += sending.TELL_UP_TO_SECONDS
        rig.acts = False
        sender.loop.wake()
        assert len(bad.posts) == 2, "a replica that may have been given up sends nothing"
        rig.acts = True
        await rig.until(lambda: _is(rig.count("bad", "given_up"), 3), sender)
        assert len(bad.posts) == 3, "those as old are given up with it"
    [standing] = [one for one in await bulletins.standings(rig.store) if one.fails]
    assert standing.receiver == "bad" and PATH not in str(standing.problem) and "answered 307" in str(standing.problem)


async def test_notices_reach_whom_account_operator_and_config_name(rig: Rig) -> None:
    names = {"all": "ended asks", "money": "over_budget", "named": "", "stranger": "ended", "both": ""}
    heard = {name: await rig.receiver(name, on=on) for name, on in names.items() if name != "stranger"}
    heard["stranger"] = await rig.receiver("stranger", on="ended", account=OTHER)
    heard["operators"] = await rig.receiver("operators", on="asks", account=InstallationId(0))
    heard["shadowed"] = await rig.receiver("both", on="", account=InstallationId(0))
    config = repo_config.dump(repo_config.parse("notify:\n- {to: both, on: ended}\n- {to: nobody, on: [asks]}\n"))
    key = await rig.ended(1, Outcome.OVER_BUDGET, config=config)
    matter = {"plan": "canary"}
    for _ in range(2):
        await approvals.ask(rig.store, ApprovalRequest(key, ApprovalKind.PLAN, matter, rig.store.now() + 60))
    async with rig.sending() as sender:
        await rig.until(lambda: _is(_waiting(rig.store), 0), sender)
    got = {name: [post["forgehand"]["event"] for _, post in one.posts] for name, one in heard.items()}
    assert got == {
        "all": ["over_budget", "asks"],
        "money": ["over_budget"],
        "named": [],
        "stranger": [],
        "both": ["over_budget"],
        "operators": ["asks"],
        "shadowed": [],
    }
    [(_, post)] = heard["money"].posts
    assert post["forgehand"]["session_url"] == f"https://pages.example/sessions/{key.session}"
    assert "canary" not in repr([one.posts for one in heard.values()])
    [known] = await outside_services.of_installation(rig.store, Purpose.RECEIVER, OTHER)
    assert PATH not in repr(known)
    await rig.ended(2)
    await outside_services.remove(rig.store, known, by="olga", account="octo")
    own = await outside_services.of_installation(rig.store, Purpose.RECEIVER, ACCOUNT)
    await outside_services.remove(rig.store, next(one for one in own if one.name == "all"), by="olga", account="octo")
    async with rig.sending() as sender:
        await rig.until(lambda: _is(rig.count("all", "given_up"), 1), sender)


async def _is(found: Awaitable[int], wanted: int) -> bool:
    return await found == wanted


async def _waiting(store: Store) -> int:
    return len(await bulletins.due(store, store.now()))


def test_notify_in_the_config_takes_names_and_no_addresses() -> None:
    config = repo_config.parse("notify:\n- to: team-chat\n  on: [ended, asks]\n- {to: money, on: over_budget}\n")
    assert config.notify == (
        NotifyRule("team-chat", (BulletinEvent.ENDED, BulletinEvent.ASKS)),
        NotifyRule("money", (BulletinEvent.OVER_BUDGET,)),
    )
    assert repo_config.load(repo_config.dump(config)) == config
    for text, words in (
        ("notify: [{url: 'https://hooks.example/canary', on: [ended]}]", "write `to: NAME`"),
        ("notify: [{to: chat, on: [everything]}]", "ended, asks, over_budget"),
        ("notify: [{to: chat, on: []}]", "must list events in"),
        ("notify: [{to: chat, on: [[ended]]}]", "must list events in"),
        ("notify: [{to: chat}]", "needs `to` and `on`"),
        ("notify: [{to: chat, on: [ended], as: x}]", "needs `to` and `on`"),
        ("notify: [{to: CHAT, on: [ended]}]", "lower-case letters"),
        ("notify: [{to: chat, on: [ended]}, {to: chat, on: [asks]}]", "twice"),
        ("notify: https://hooks.example/canary", "must be a list"),
    ):
        with pytest.raises(BadRepoConfig, match=re.escape(words)) as caught:
            repo_config.parse(text)
        assert "canary" not in str(caught.value)
    with pytest.raises(UserError, match="must list events in"):
        receivers.read_events(["never"])


def test_notices_are_signed_as_standard_webhooks_says() -> None:
    """The example of https://www.standardwebhooks.com's reference libraries."""
    target = receivers.ReceiverTarget(Secret("https://x.example"), Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    found = dict(posting.headers(target, "msg_p5jXN8AQM9LWM0D4loKWxJek", '{"test": 2432232314}', 1614265330.7))
    assert found["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert found["webhook-timestamp"] == "1614265330"
