"""Messages to a running agent: given once, and never said to be given when they were not."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.agents.events import SideAnswered
from tests.execution.bench import Bench, until


async def test_steering_reaches_the_running_agent_once(bench: Bench) -> None:
    await bench.execution.start(bench.run(["hear"], ["hear"], ["hear"]))
    assert await bench.execution.steer(1, "m1", "first")
    assert await bench.again().steer(1, "m1", "first")
    assert await bench.execution.steer(1, "comment 17/é", "second")
    assert await bench.execution.steer(1, "m3", "third")
    assert await bench.texts() == ["heard first", "heard second", "heard third"]
    assert await bench.execution.steer(1, "m4", "late") is False
    assert await bench.execution.steer(1, "m1", "first") is True


async def test_steering_is_truthful_while_the_agent_finishes(bench: Bench) -> None:
    """Whatever the moment: True exactly when the agent was given the message."""
    await bench.execution.start(bench.run(["say", "go"]))
    answers: dict[str, bool] = {}
    for number in range(200):
        answers[f"m{number}"] = await bench.execution.steer(1, f"m{number}", f"m{number}")
        if not answers[f"m{number}"]:
            break
        if number > 3:
            await until(
                lambda: (bench.out / "turn-1" / "closed").exists() or (bench.out / "turn-1" / "closing").exists(),
                0.2 + 5,
            )
    heard = [text.removeprefix("heard ") for text in await bench.texts() if text.startswith("heard")]
    assert heard == [name for name, given in answers.items() if given]
    assert list(answers.values())[-1] is False


async def test_questions_do_not_keep_a_finished_agent(bench: Bench) -> None:
    """No final line follows them, so nobody may wait for one. Here the agent ends while the first is half sent."""
    go = bench.root / "go"
    inbox = bench.out / "turn-1" / "inbox"
    await bench.execution.start(bench.run(["wait_for", str(go)], timeout=10.0))
    asking: list[asyncio.Task[bool]] = []
    for number, words in enumerate(["x" * 500_000, "why"]):
        asking.append(asyncio.create_task(bench.execution.ask(1, f"q-{number}", words)))
        await until(lambda: len([*inbox.glob("*.json")]) == len(asking) + 1)
    go.touch()
    assert await asyncio.gather(*asking) == [True, True]
    lines = [line async for chunk in bench.execution.follow(1, 0) for line in chunk.lines]
    status = await bench.execution.status(1)
    assert (status.exit_code, status.timed_out) == (0, False)
    events = [event for line in lines for event in bench.execution.agent.decoder().feed(line)]
    assert SideAnswered("q-1", "about why", ok=True) in events


async def test_a_message_before_the_start_is_not_lost(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sandbox.following.WAIT_SECONDS", 0.0)
        assert await bench.execution.steer(1, "m1", "early") is False


async def test_a_message_larger_than_a_pipe(bench: Bench) -> None:
    await bench.execution.start(bench.run(["hear"], ["say", "x" * 200_000]))
    assert await bench.execution.steer(1, "m", "y" * 500_000)
    assert [text[:8] for text in await bench.texts()] == ["heard yy", "xxxxxxxx"]
