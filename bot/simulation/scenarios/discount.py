"""The demo's shop, whose discount is wrong, the issue about it, and the scripted model's work."""

from __future__ import annotations

import re
from dataclasses import replace

from bot.models import TokenUsage
from bot.simulation.anthropic import Call, Calls, ModelRequest, Say, Script, Slow, Step, Wait
from bot.simulation.anthropic.reading import texts
from bot.simulation.scenarios import basket

REPOSITORY = "octo-org/shop"
ISSUE_TITLE = "Discounts above 100 % make prices negative"
ISSUE_BODY = """\
`discounted(50.0, 120)` gives `-10.0`. A price must never be below zero, and a discount below zero should be refused.

`python3 -m unittest` shows it.
"""
COMMENT = "/claude fix this and keep the tests green"

SHOP = '''\
"""Prices of the shop."""


def discounted(price: float, percent: float) -> float:
    """The price after a discount in percent."""
    return round(price - price * percent / 100, 2)
'''

FIXED = '''\
    """The price after a discount in percent: never below zero, and no negative discounts."""
    if percent < 0:
        raise ValueError(f"a discount cannot be negative: {percent}")
    return round(max(0.0, price - price * percent / 100), 2)'''

TESTS = """\
import unittest

from shop import discounted


class Discounts(unittest.TestCase):
    def test_half_price(self) -> None:
        self.assertEqual(discounted(50.0, 50), 25.0)

    def test_never_below_zero(self) -> None:
        self.assertEqual(discounted(50.0, 120), 0.0)

    def test_no_negative_discount(self) -> None:
        with self.assertRaises(ValueError):
            discounted(50.0, -1)
"""

CONFIG = ".github/forgehand.yml"
FILES = {
    "README.md": "# shop\n\nPrices and discounts.\n",
    "shop.py": SHOP,
    "test_shop.py": TESTS,
    ".gitignore": "__pycache__/\n",
    CONFIG: "checks:\n  - python3 -m unittest -q\n",
}

CHECK = "python3 -m unittest 2>&1"
SWEEP = (
    "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; "
    "find / \\( -path /proc -o -path /sys -o -path /usr \\) -prune -o -type f -size -64k -print0 2>/dev/null | "
    "xargs -0 -r grep -haE 'sk-ant|ghs_|PRIVATE KEY|secret' 2>/dev/null | cut -c1-300 | head -50; true"
)
ONE_MORE = "Add a test and run them all"
PAUSE = Slow(first_token_seconds=1.2)
MIDDLE = "the middle of the work"
"""The model waits here if the story has an event while it works."""
MIDDLE_STEP = 4
WHILE_IT_WORKS = "says while you work"
PERCENT = re.compile(r"\b(\d{1,3}) ?%")
USAGE = TokenUsage(input_tokens=1_400, output_tokens=260, cache_read_tokens=9_500, cache_write_tokens=900)

PLAN = """\
1. Reproduce it: `python3 -m unittest` has two failing tests.
2. `shop.py`: clamp the price at zero, and refuse a negative discount with a `ValueError`.
3. Run all tests again.

Nothing else has to change."""


def script(*, paced: bool, sweeping: bool = False, interrupted: bool = False) -> Script:
    """Script the agent. `paced` leaves a person time to watch, `sweeping` lets it look for credentials first, and
    `interrupted` lets it wait at MIDDLE until that is released."""
    agent = _Agent(sweeping)
    pause: list[Step] = [PAUSE] if paced else []
    begun: list[Step] = [step for _ in range(MIDDLE_STEP) for step in (*pause, agent.answer)]
    wait: list[Step] = [Wait(MIDDLE)] if interrupted else []
    return Script([*begun, *wait, *pause, agent.answer, *pause], after=agent.answer)


class _Agent:
    """The model, which reads from the conversation its task and what is already done."""

    def __init__(self, sweeping: bool) -> None:
        sweep = Call("Bash", {"command": SWEEP, "description": "Look for credentials"}, usage=USAGE)
        self._work = [WORK[0], *([sweep] * sweeping), *WORK[1:]]

    def answer(self, request: ModelRequest) -> Calls | Call | Say:
        task, step = _task_of(request)
        if basket.TASK in task:
            return basket.answer(request, step)
        if basket.FIX in task:
            return basket.fix(step)
        if "Change no file" in task:
            return ANSWER
        if "Write a plan for the request" in task:
            return LOOK if step == 0 else Say(PLAN, usage=USAGE)
        if _was_fixed(request, step):
            return _one_more_test(request, task) if step == 0 else _added(request)
        return self._work[step] if step < len(self._work) else _end(request)


def _task_of(request: ModelRequest) -> tuple[str, int]:
    """Return the turn's task and the number of answers since; words of people meanwhile are no new task."""
    asked = [at for at, words in enumerate(request.spoken) if words and WHILE_IT_WORKS not in words]
    begun = asked[-1] if asked else 0
    return request.spoken[begun], sum(one.get("role") == "assistant" for one in request.messages[begun:])


def _was_fixed(request: ModelRequest, step: int) -> bool:
    """Decide whether an earlier turn of the conversation fixed the price."""
    answers = [one for one in request.messages if one.get("role") == "assistant"]
    earlier = replace(request, body={"messages": answers[: len(answers) - step]})
    return any(call["name"] == "Edit" for call in earlier.tool_calls)


def _one_more_test(request: ModelRequest, words: str) -> Call:
    percent = _percent(words, len(_tests_added(request)))
    text = f"A discount of {percent} % has no test yet: I will add one."
    return Call("Bash", {"command": _adding(percent), "description": ONE_MORE}, text, USAGE)


def _added(request: ModelRequest) -> Say:
    percent = _tests_added(request)[-1]
    return Say(
        f"Title: Test a discount of {percent} %\n\n"
        f"I added a test for a discount of {percent} % to `test_shop.py`; all tests pass.\n\n"
        "My words are scripted: whatever more you ask for in this demo, I do this.",
        usage=USAGE,
    )


def _end(request: ModelRequest) -> Call | Say:
    """Return the tests for what people said meanwhile, which come last, one each."""
    said, added = _said_meanwhile(request), _tests_added(request)
    if len(added) < len(said):
        return _one_more_test(request, said[len(added)])
    also = "".join(
        f"- `test_shop.py`: a test for a discount of {percent} %, as you said meanwhile\n" for percent in added
    )
    tests = "all three tests" if not added else f"all {3 + len(set(added))} tests"
    return Say(
        "Title: Clamp discounted prices at zero\n\n"
        "`discounted` now never goes below zero and refuses negative discounts with a `ValueError`.\n\n"
        f"- `shop.py`: clamps the result at zero and checks the percentage first\n{also}\n"
        f"I ran `python3 -m unittest`: {tests} pass.",
        usage=USAGE,
    )


def _said_meanwhile(request: ModelRequest) -> list[str]:
    """Return the words of people meanwhile, in order, as the client passes them on."""
    heard = "\n".join(text for one in request.messages if one.get("role") != "assistant" for text in texts(one))
    return heard.split(WHILE_IT_WORKS)[1:]


def _tests_added(request: ModelRequest) -> list[int]:
    """Return the percentages of the added tests, in order."""
    commands = [call["input"] for call in request.tool_calls if call["input"].get("description") == ONE_MORE]
    return [int(found[1]) for one in commands if (found := re.search(r"def test_(\d+)_percent", one["command"]))]


def _percent(words: str, added: int) -> int:
    """Return the percentage that the person names, or a different one each time."""
    found = PERCENT.search(words)
    return int(found[1]) if found else 10 * (1 + added % 9)


def _adding(percent: int) -> str:
    return f"""\
cat >> test_shop.py <<'END'

    def test_{percent}_percent(self) -> None:
        self.assertEqual(discounted(50.0, {percent}), {max(0.0, 50 - percent / 2)})
END
{CHECK}"""


def _task(subject: str, form: str) -> Call:
    return Call("TaskCreate", {"subject": subject, "description": subject, "activeForm": form})


def edit() -> dict[str, str]:
    old = SHOP.split("\n", 4)[4].rstrip("\n")
    return {"file_path": "shop.py", "old_string": old, "new_string": FIXED}


ANSWER = Say(
    "`discounted` takes a price and a percentage and rounds to cents. It is in `shop.py`; its tests are in "
    "`test_shop.py`.",
    usage=USAGE,
)
LOOK = Call("Bash", {"command": "cat shop.py test_shop.py", "description": "Read the code"}, usage=USAGE)
WORK: tuple[Call | Calls, ...] = (
    Calls(
        [
            _task("Reproduce the failure", "Reproducing the failure"),
            _task("Clamp the price and refuse negative discounts", "Fixing the price"),
            _task("Run the tests", "Running the tests"),
        ],
        text="I will look at the code, reproduce the failure, fix it and run the tests.",
        usage=USAGE,
    ),
    Calls([Call("TaskUpdate", {"taskId": "1", "status": "in_progress"}), LOOK], usage=USAGE),
    Call("Bash", {"command": CHECK, "description": "Run the tests"}, usage=USAGE),
    Calls(
        [
            Call("TaskUpdate", {"taskId": "1", "status": "completed"}),
            Call("TaskUpdate", {"taskId": "2", "status": "in_progress"}),
            Call("Read", {"file_path": "shop.py"}),
        ],
        text="Two tests fail: the price goes below zero, and a negative discount is accepted.",
        usage=USAGE,
    ),
    Call("Edit", edit(), usage=USAGE),
    Calls(
        [
            Call("TaskUpdate", {"taskId": "2", "status": "completed"}),
            Call("TaskUpdate", {"taskId": "3", "status": "in_progress"}),
            Call("Bash", {"command": CHECK, "description": "Run the tests again"}),
        ],
        usage=USAGE,
    ),
    Call("TaskUpdate", {"taskId": "3", "status": "completed"}, usage=USAGE),
)
