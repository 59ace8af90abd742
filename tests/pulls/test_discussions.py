"""Words at lines of a diff, over the wire: in the prompt, answered in their own discussion, and resolved there."""

from __future__ import annotations

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github.threads import Pull, ReviewComment
from tests.reviews.test_reviews import ZERO, reviewer, verdict
from tests.world import World
from tests.world.pulls import WRITE, live, permit, pull_of

CODE = {"calc.py": "a = 1\nb = 2\n", "shop.txt": "x\ny\n"}
MEND = Call("Bash", {"command": "printf 'a = 1\\nb = 3\\n' > calc.py", "description": "Mend"})


def ours(world: World, pull: Pull, first: ReviewComment) -> list[str]:
    """What we wrote in a discussion."""
    written = [(review, one) for review in pull.reviews for one in review.comments]
    return [one.body for review, one in written if review.author is world.app.bot and one.reply_to is first]


def prompts(world: World) -> list[str]:
    return list(dict.fromkeys(one.prompt for one in world.model.requests if one.has_tools))


async def test_a_word_at_a_line_is_worked_on_answered_there_and_resolved(world: World) -> None:
    world.model.default(Script([MEND, Say("Mended b.\n\nD1: b is three now, @octo.")]))
    async with world.bot():
        pull = pull_of(world, CODE)
        other = world.github.review_line(pull, ("calc.py", 1), "And this?", by="alice")
        asked = world.github.review_line(pull, ("calc.py", 2), "/claude this should be 3", by="alice")
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    [said] = ours(world, pull, asked)
    assert "b is three now" in said and pull.head_sha[:12] in said and "@octo" not in said and "D1" not in said
    assert asked.resolved_by is world.app.bot and other.resolved_by is None and not ours(world, pull, other)
    [prompt] = prompts(world)
    assert "- D1: line 2 of calc.py" in prompt and "D1: the lines of the diff that the request is about" in prompt
    assert "@@ -0,0 +1,2 @@\n+a = 1\n+b = 2" in prompt


async def test_a_word_at_a_line_that_was_taken_away_names_it_so(world: World) -> None:
    world.model.default(Script([Say("It was in the way.")]))
    world.github.commit(world.repo, "main", CODE, by="alice")
    async with world.bot():
        pull = pull_of(world, {"calc.py": "a = 1\nc = 3\n"})
        asked = world.github.review_line(pull, ("calc.py", 2), "/claude ask why?", by="alice", side="LEFT")
        assert await world.outcome(on=pull) == "answered", live(world, pull)
    [prompt], [said] = prompts(world), ours(world, pull, asked)
    assert "- D1: line 2 of calc.py as it was before" in prompt and "-b = 2" in prompt and "in the way" in said


async def test_all_comments_of_a_review_are_answered_and_what_is_settled_resolved(world: World) -> None:
    words = "Did it.\n\nD1: b is three now.\n\nD2 (open): that is for you to decide.\n\nD3 (done): calc.py does it."
    world.model.default(Script([MEND, Say(words)]))
    lines = [("calc.py", 2, "Make it 3"), ("calc.py", 1, "Is this right?"), ("shop.txt", 1, "Do it in calc")]
    async with world.bot():
        pull = pull_of(world, CODE)
        review = world.github.review(pull, "/claude", by="alice", state="CHANGES_REQUESTED", lines=lines)
        for one in review.comments:  # they are handed in with it, and yet of a later second
            one.created_at += 2
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    said = [ours(world, pull, one) for one in review.comments]
    assert [len(one) for one in said] == [1, 1, 1]
    assert "b is three now." in said[0][0] and "for you to decide" in said[1][0] and "calc.py does it" in said[2][0]
    assert [one.resolved_by is world.app.bot for one in review.comments] == [True, False, True]
    [prompt] = prompts(world)
    assert "Do what the discussions of the diff" in prompt
    for number, (path, line, body) in enumerate(lines, 1):
        assert f"- D{number}: line {line} of {path}" in prompt and body in prompt
        assert f"INSTRUCTION: D{number}: comment on line {line} of {path} by alice" in prompt


async def test_what_was_not_touched_or_not_pushed_stays_open(world: World) -> None:
    world.model.default(Script([MEND, Say("Done.")]))
    async with world.bot():
        pull = pull_of(world, CODE)
        asked = world.github.review_line(pull, ("shop.txt", 1), "/claude mend calc", by="alice")
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
        world.model.default(Script([Say("It is two.")]))
        question = world.github.review_line(pull, ("calc.py", 2), "/claude ask what is b?", by="alice")
        assert await world.outcome(2, on=pull) == "answered"
        world.model.default(
            Script([Call("Bash", {"command": "echo > calc.py", "description": "Empty it"}), Say("Done.")])
        )
        beside = world.github.review_line(pull, ("calc.py", 1), "/claude empty it --new-branch", by="alice")
        assert await world.outcome(3, on=pull) == "pull_request"
    for one in (asked, question, beside):
        assert one.resolved_by is None and len(ours(world, pull, one)) == 1
    assert "It is two." in ours(world, pull, question)[0]


async def test_words_at_a_line_to_an_agent_at_work_are_answered_there_too(world: World) -> None:
    heard = Call("Bash", {"command": "true", "description": "Go on"})
    world.model.default(Script([MEND, Wait("work"), heard, Say("D1: mended.\n\nD2 (open): not this.")]))
    async with world.bot():
        pull = pull_of(world, CODE)
        first = world.github.review_line(pull, ("calc.py", 2), "/claude this should be 3", by="alice")
        await world.model.reached("work", timeout=60)
        second = world.github.review_line(pull, ("calc.py", 1), "/claude and this 4", by="alice")
        await world.github.changed(lambda: [one for one in second.reactions if one.content == "rocket"], 20)
        world.model.release("work")
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    assert "mended" in ours(world, pull, first)[0] and "not this" in ours(world, pull, second)[0]
    assert first.resolved_by is world.app.bot and second.resolved_by is None
    assert any("This is discussion D2 of the diff" in str(one.body) for one in world.model.requests)


async def test_a_turn_that_ends_otherwise_says_so_once_and_not_at_each_line(world: World) -> None:
    world.model.default(Script([MEND, Wait("work"), Say("unreachable")]))
    async with world.bot():
        pull = pull_of(world, CODE)
        lines = [("calc.py", 2, "Make it 3"), ("calc.py", 1, "Is this right?")]
        review = world.github.review(pull, "/claude do these", by="alice", lines=lines)
        await world.model.reached("work", timeout=60)
        world.say("/claude stop", on=pull)
        assert await world.outcome(on=pull, timeout=20) == "stopped"
    assert [ours(world, pull, one) for one in review.comments] == [[], []]
    assert not any(one.resolved_by for one in review.comments)


async def test_asked_anew_it_is_still_about_the_same_discussions(world: World) -> None:
    world.model.default(Script([Say("I see nothing to do.")]))
    async with world.bot():
        pull = pull_of(world, CODE)
        review = world.github.review(pull, "/claude", by="alice", lines=[("calc.py", 2, "Make it 3")])
        assert await world.outcome(on=pull) == "no_change", live(world, pull)
        world.model.default(Script([MEND, Say("D1: it is three now.")]))
        world.say("/claude retry", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
    [asked] = review.comments
    assert "it is three now" in ours(world, pull, asked)[-1] and asked.resolved_by is world.app.bot


async def test_a_plan_that_is_approved_is_about_the_same_discussion(world: World) -> None:
    world.model.default(Script([Say("1. Make b three.")]))
    async with world.bot():
        pull = pull_of(world, CODE)
        asked = world.github.review_line(pull, ("calc.py", 2), "/claude plan to make it 3", by="alice")
        assert await world.outcome(on=pull) == "planned", live(world, pull)
        assert "D1" not in prompts(world)[0].split("DATA")[0], "a plan is one thing"
        world.model.default(Script([MEND, Say("D1: it is three now.")]))
        world.say("/claude approve", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
    assert "it is three now" in ours(world, pull, asked)[-1] and asked.resolved_by is world.app.bot


async def test_a_held_commit_that_is_let_go_answers_and_resolves_what_it_was_asked_at(world: World) -> None:
    permit(world)
    both = Call("Bash", {"command": f"{WRITE}; printf 'a = 1\\nb = 3\\n' > calc.py", "description": "Write"})
    world.model.default(Script([both, Say("Did it.\n\nD1: b is three now.")]))
    async with world.bot():
        pull = pull_of(world, CODE)
        asked = world.github.review_line(pull, ("calc.py", 2), "/claude this should be 3, and tested", by="alice")
        assert await world.outcome(on=pull) == "refused", live(world, pull)
        assert not asked.resolved_by
        world.say("/claude approve", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
    said = ours(world, pull, asked)
    assert len(said) == 2 and pull.head_sha[:12] in said[1] and "b is three now" in said[1]
    assert asked.resolved_by is world.app.bot
    assert "1 file changed" in live(world, pull) or "files changed" in live(world, pull)


async def test_a_finding_that_is_answered_by_a_command_is_read_mended_and_done_with(world: World) -> None:
    zero = {**ZERO, "path": "calc.py", "line": 2, "body": "This was to be three."}
    world.model.default(reviewer(verdict(zero, {**zero, "line": 1, "body": "Say why it is one."})))
    async with world.bot():
        pull = pull_of(world, CODE)
        world.say("/claude review", on=pull)
        assert await world.outcome(on=pull) == "reviewed", live(world, pull)
        [review] = [one for one in pull.reviews if one.author is world.app.bot]
        world.model.default(Script([MEND, Say("It is three.")]))
        world.github.answer_review(review.comments[0], pull, "/claude fix this", by="alice")
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
        assert "1 finding of my reviews is still open: `/claude review`" in live(world, pull)
        world.model.default(Script([Say("It is the first.")]))
        world.say("/claude ask what else did you find?", on=pull)
        assert await world.outcome(3, on=pull) == "answered", live(world, pull)
    [_, mending, asking] = prompts(world)
    assert "D1: what you said there" in mending and "This was to be three." in mending
    assert review.comments[0].resolved_by is world.app.bot and review.comments[1].resolved_by is None
    assert "Say why it is one." in asking and "This was to be three." not in asking
