"""The demo's story: a small shop whose discount is wrong, an issue about it, and what the scripted model does."""

from __future__ import annotations

from bot.models import Usage
from bot.simulation.anthropic import Call, Calls, ModelRequest, Say, Script, Slow

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

FILES = {
    "README.md": "# shop\n\nPrices and discounts.\n",
    "shop.py": SHOP,
    "test_shop.py": TESTS,
    ".gitignore": "__pycache__/\n",
    ".github/forgehand.yml": "checks:\n  - python3 -m unittest -q\n",
}

CHECK = "python3 -m unittest 2>&1"
SWEEP = (
    "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; "
    "find / \\( -path /proc -o -path /sys -o -path /usr \\) -prune -o -type f -size -64k -print0 2>/dev/null | "
    "xargs -0 -r grep -haE 'sk-ant|ghs_|PRIVATE KEY|secret' 2>/dev/null | cut -c1-300 | head -50; true"
)
ONE_MORE = "Add a test and run them all"
PAUSE = Slow(first_token_seconds=0.8)
USAGE = Usage(input_tokens=1_400, output_tokens=260, cache_read_tokens=9_500, cache_write_tokens=900)


def script(*, paced: bool, sweeping: bool = False) -> Script:
    """`paced` leaves a person time to watch; `sweeping` has the agent look for credentials before it works."""
    pause = [PAUSE] if paced else []
    return Script(
        [
            *pause,
            _begin,
            *([Call("Bash", {"command": SWEEP, "description": "Look for credentials"}, usage=USAGE)] * sweeping),
            *pause,
            _look,
            *pause,
            Call("Bash", {"command": CHECK, "description": "Run the tests"}, usage=USAGE),
            *pause,
            Calls(
                [
                    Call("TaskUpdate", {"taskId": "1", "status": "completed"}),
                    Call("TaskUpdate", {"taskId": "2", "status": "in_progress"}),
                    Call("Read", {"file_path": "shop.py"}),
                ],
                text="Two tests fail: the price goes below zero, and a negative discount is accepted.",
                usage=USAGE,
            ),
            *pause,
            Call("Edit", _edit(), usage=USAGE),
            *pause,
            Calls(
                [
                    Call("TaskUpdate", {"taskId": "2", "status": "completed"}),
                    Call("TaskUpdate", {"taskId": "3", "status": "in_progress"}),
                    Call("Bash", {"command": CHECK, "description": "Run the tests again"}),
                ],
                usage=USAGE,
            ),
            *pause,
            Call("TaskUpdate", {"taskId": "3", "status": "completed"}, usage=USAGE),
            Say(
                "`discounted` now never goes below zero and refuses negative discounts with a `ValueError`.\n\n"
                "- `shop.py`: clamps the result at zero and checks the percentage first\n\n"
                "I ran `python3 -m unittest`: all three tests pass.",
                usage=USAGE,
            ),
        ]
    )


def _begin(request: ModelRequest) -> Calls | Call | Say:
    if "Change no file" in request.prompt:
        return Say(
            "`discounted` takes a price and a percentage and rounds to cents. It is in `shop.py`; its tests are in "
            "`test_shop.py`.",
            usage=USAGE,
        )
    if _goes_on(request):
        percent = _percent(request)
        words = f"A discount of {percent} % has no test yet: I will add one."
        return Call("Bash", {"command": _one_more_test(percent), "description": ONE_MORE}, words, USAGE)
    return Calls(
        [
            Call("TaskCreate", _task("Reproduce the failure", "Reproducing the failure")),
            Call("TaskCreate", _task("Clamp the price and refuse negative discounts", "Fixing the price")),
            Call("TaskCreate", _task("Run the tests", "Running the tests")),
        ],
        text="I will look at the code, reproduce the failure, fix it and run the tests.",
        usage=USAGE,
    )


def _look(request: ModelRequest) -> Calls | Say:
    if _goes_on(request):
        return Say(
            f"I added a test for a discount of {_percent(request)} % to `test_shop.py`; all tests pass.\n\n"
            "My words are scripted: whatever more you ask for in this demo, I do this.",
            usage=USAGE,
        )
    return Calls(
        [
            Call("TaskUpdate", {"taskId": "1", "status": "in_progress"}),
            Call("Bash", {"command": "cat shop.py test_shop.py", "description": "Read the code"}),
        ],
        usage=USAGE,
    )


def _goes_on(request: ModelRequest) -> bool:
    """Whether the price was mended in an earlier turn of the conversation."""
    return any(call["name"] == "Edit" for call in request.tool_calls)


def _percent(request: ModelRequest) -> int:
    """Another one for each time that it goes on."""
    added: int = sum(call["input"].get("description") == ONE_MORE for call in request.tool_calls)
    return 10 * (1 + (added - request.step) % 9)


def _one_more_test(percent: int) -> str:
    return f"""\
cat >> test_shop.py <<'END'

    def test_{percent}_percent(self) -> None:
        self.assertEqual(discounted(50.0, {percent}), {50 - percent / 2})
END
{CHECK}"""


def _task(subject: str, form: str) -> dict[str, str]:
    return {"subject": subject, "description": subject, "activeForm": form}


def _edit() -> dict[str, str]:
    old = SHOP.split("\n", 4)[4].rstrip("\n")
    return {"file_path": "shop.py", "old_string": old, "new_string": FIXED}
