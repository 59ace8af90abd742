"""Plan, yes, work: a plan changes nothing and costs nothing while it waits; a yes is to the plan that was shown."""

from __future__ import annotations

import time

import pytest

from bot.sessions.services import APPROVAL_DAYS
from bot.simulation.anthropic import Call, ModelRequest, Say, Script
from tests.world import World
from tests.world.plain_http import plain_client

PLAN = "1. Clamp the discount.\n2. Add a test."
WRITE = Call("Bash", {"command": "echo planned > planned.txt", "description": "Carry it out"})


def asked(world: World) -> list[ModelRequest]:
    return [one for one in world.model.requests if one.has_tools]


async def said(world: World, count: int) -> str:
    await world.github.changed(lambda: len(world.replies()) >= count, 20)
    return world.replies()[count - 1].body


async def planned(world: World) -> str:
    """The approval's id, once the plan is there."""
    world.say("/claude plan mending the discount")
    assert await world.outcome() == "planned", world.replies()[0].body
    return f"{world.states()[0]['session']}-1"


async def test_a_plan_is_carried_out_after_a_yes_in_the_same_session(world: World) -> None:
    world.model.default(Script([WRITE, Call("Write", {"file_path": "a.txt", "content": "x"}), Say(PLAN)]))
    async with world.bot():
        approval = await planned(world)
        live = world.replies()[0].body
        assert "Clamp the discount" in live and approval in live and "/claude approve" in live
        assert world.repo.branches().keys() == {"main"} and not world.pulls()
        assert not {"Write", "Edit"} & set(asked(world)[0].tool_names)
        assert "planned.txt" not in str(world.repo.file("main", "planned.txt"))
        assert not list((world.root / "data" / "environments").glob(f"{approval}*")), "waiting costs nothing"
        world.model.default(Script([WRITE, Say("Done as planned.")]))
        world.say("/claude approve")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    assert "> **alice**: mending the discount (by the plan that was approved)\n" in world.replies()[-1].body
    assert world.states()[1]["session"] == world.states()[0]["session"]
    assert "Carry out this plan" in asked(world)[-1].prompt or "Carry out this plan" in str(asked(world)[-1].body)
    assert str(asked(world)[-1].body["messages"]).count("mending the discount") >= 2, "the agent remembers its planning"


async def test_a_yes_counts_also_after_a_restart_and_an_edited_plan_is_what_is_done(world: World) -> None:
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        approval = await planned(world)
    async with world.bot(FORGEHAND_DAY_BUDGET="0.01"):
        world.say("/claude approve")
        assert "budget of $0.01" in await said(world, 2)
    world.model.default(Script([WRITE, Say("Done.")]))
    async with world.bot():
        world.say(f"/claude approve {approval}\n\n> 1. Clamp it at zero only.")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    assert "Clamp it at zero only." in str(asked(world)[-1].body["messages"])
    assert "2. Add a test" not in asked(world)[-1].prompt


async def test_a_plan_is_answered_once(world: World) -> None:
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        approval = await planned(world)
        world.say("/claude deny")
        world.say(f"/claude approve {approval}")
        assert "already has an answer: denied by `alice`" in await said(world, 2)
    assert len(world.states()) == 1


async def test_words_below_a_no_to_a_plan_are_not_swallowed(world: World) -> None:
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        await planned(world)
        world.say("/claude deny\n\nToo much: the first point alone.")
        assert "`/claude plan …` for another plan" in await said(world, 2)
    assert len(world.states()) == 1


async def test_a_new_plan_takes_the_place_of_the_old_one(world: World) -> None:
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        first = await planned(world)
        world.say("/claude plan it differently")
        assert await world.outcome(2) == "planned"
        await world.github.changed(lambda: "can no longer be approved" in world.replies()[0].body, 20)
        assert "approve the plan for 7 days" not in world.replies()[0].body
        world.say(f"/claude approve {first}")
        assert "something newer has taken its place" in await said(world, 3)
        world.say("/claude approve abcd1234-9")
        assert "Nothing on this thread is called `abcd1234-9`" in await said(world, 4)
        elsewhere = world.github.open_issue(world.repo, title="Other", body="x", by="alice")
        world.say(f"/claude approve {first.removesuffix('1')}2", on=elsewhere)
        await world.github.changed(lambda: bool(world.replies(elsewhere)), 20)
        assert "Nothing on this thread is called" in world.replies(elsewhere)[0].body


async def test_a_yes_without_a_name_is_none_to_what_was_asked_after_it(world: World) -> None:
    """Its delivery may come late, or a second time under another name: by then something else waits for an answer."""
    world.model.default(Script([Say(PLAN)]))
    ahead = 0.0
    async with world.bot(lambda: time.time() + ahead):
        await planned(world)
        world.app.hook_active = False
        late = world.github.comment_webhook(world.say("/claude approve"))
        world.app.hook_active = True
        ahead = 60.0
        world.say("/claude plan something worse")
        assert await world.outcome(2) == "planned"
        async with plain_client() as client:
            await client.post(str(world.app.webhook_url), headers=late.headers, content=late.body)
        name = f"{world.states()[1]['session']}-2"
        assert f"(`{name}`) after you had written that" in await said(world, 3)
    assert len(world.states()) == 2


@pytest.mark.parametrize(("words", "command"), [("yes, please!", "approve"), ("LGTM", "approve"), ("no", "deny")])
async def test_a_mere_yes_begins_no_work_and_is_told_how_it_is_said(world: World, words: str, command: str) -> None:
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        approval = await planned(world)
        count = len(asked(world))
        world.say(f"/claude {words}")
        assert f"comment `/claude {command} {approval}`" in await said(world, 2)
    assert len(world.states()) == 1 and len(asked(world)) == count


async def test_only_people_with_write_access_approve(world: World) -> None:
    world.github.user("eve")
    world.repo.grant("eve", "triage")
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        await planned(world)
        world.say("/claude approve", by="eve")
        assert "only take commands from people with write access" in await said(world, 2)
    assert len(world.states()) == 1


async def test_a_plan_that_nobody_approves_expires_with_a_word(world: World) -> None:
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        approval = await planned(world)
    later = time.time() + (APPROVAL_DAYS + 1) * 24 * 3600
    async with world.bot(lambda: later):
        assert "Nobody approved the plan" in await said(world, 2)
    async with world.bot():
        world.say(f"/claude approve {approval}")
        assert "can no longer be answered" in await said(world, 3)


async def test_a_yes_after_its_time_counts_for_nothing_though_nobody_has_swept_yet(world: World) -> None:
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        await planned(world)
        world.say("/claude continue +3")
        assert "The plan is still waiting: `/claude approve" in await said(world, 2)
        await world.change("UPDATE approvals SET expires_at = asked_at - 5")
        world.say("/claude approve")
        assert "Nobody approved the plan" in await said(world, 3)
    assert len(world.states()) == 1


async def test_a_yes_in_the_last_moment_counts_though_github_tells_of_it_later(world: World) -> None:
    world.model.default(Script([Say(PLAN)]))
    ahead = 0.0
    async with world.bot(lambda: time.time() + ahead):
        await planned(world)
        world.app.hook_active = False
        late = world.github.comment_webhook(world.say("/claude approve"))
        world.app.hook_active = True
        await world.change("UPDATE approvals SET expires_at = :at", at=time.time())
        ahead = 300.0
        world.model.default(Script([WRITE, Say("Done.")]))
        await world.deliver(late)
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body


async def test_a_repository_may_want_plans_only(world: World) -> None:
    config = "permission: plan\nsetup:\n  - echo made > made-by-setup.txt\n"
    world.github.commit(world.repo, "main", {".github/forgehand.yml": config}, by="alice")
    world.model.default(Script([WRITE, Say(PLAN)]))
    async with world.bot():
        world.say("/claude mend the discount")
        assert await world.outcome() == "planned", world.replies()[0].body
        assert world.repo.branches().keys() == {"main"}, "whatever the tree looks like"
        world.model.default(Script([WRITE, Say("Done.")]))
        world.say("/claude approve")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body


async def test_leaving_plan_mode_is_no_way_to_begin_the_work(world: World) -> None:
    world.model.default(Script([Call("ExitPlanMode"), WRITE, Say(PLAN)]))
    async with world.bot():
        await planned(world)
    results = [one.text for request in asked(world) for one in request.tool_results]
    assert any("People decide about the plan" in text for text in results)
    assert any("Bash was not run" in text for text in results), "plan mode itself refuses what writes"
    assert "Clamp the discount" in world.replies()[0].body


@pytest.mark.parametrize("words", ["/claude approve", "/claude deny"])
async def test_nothing_waits(world: World, words: str) -> None:
    async with world.bot():
        world.say(words)
        assert "Nothing here is waiting for a yes or no" in await said(world, 1)


async def test_a_tick_is_the_yes_of_the_one_who_ticked(world: World) -> None:
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        approval = await planned(world)
        live = world.replies()[0]
        box = f"- [ ] **Approve the plan** · `/claude approve {approval}`"
        assert box in live.body
        world.model.default(Script([WRITE, Say("Done.")]))
        world.github.edit_comment(live, live.body.replace(box, box.replace("[ ]", "[x]")), by="alice")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
        await world.github.changed(lambda: "Approve the plan" not in live.body, 20)
        assert "`alice` said yes" in live.body and "waits" not in live.body, live.body
