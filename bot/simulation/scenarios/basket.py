"""A pull request on the demo's shop with two planted faults, the scripted model's findings, and the next push."""

from __future__ import annotations

from bot.models import TokenUsage
from bot.simulation.anthropic import Call, ModelRequest, Say

AUTHOR = "noah"
BRANCH = "baskets"
TITLE = "Add the mean price of a basket"
BODY = "Shows what an item costs on average, with the discount taken off."
TASK = "Review the pull request under"
"""The words of a prompt by which the model knows that it reviews."""
FILE = "basket.py"
CODE = '''\
"""Baskets of the shop."""

from shop import discounted


def mean_price(prices: list[float], percent: float = 0) -> float:
    """What an item costs on average after the discount."""
    total = sum(discounted(price, percent) for price in prices)
    return total / len(prices)


def dearest(prices: list[float]) -> float:
    """The highest price of the basket."""
    return sorted(prices)[0]
'''
FILES = {FILE: CODE}
PUSH = {FILE: CODE.replace("sorted(prices)[0]", "max(prices)")}
"""The author's next push, which fixes one of the two."""
USAGE = TokenUsage(input_tokens=1_900, output_tokens=420, cache_read_tokens=9_500, cache_write_tokens=900)
_EMPTY = {
    "path": FILE,
    "line": 9,
    "severity": "major",
    "confidence": 0.9,
    "body": "An empty basket divides by zero here: `mean_price([])` raises `ZeroDivisionError`.",
    "suggestion": "    return total / len(prices) if prices else 0.0",
}
_LOWEST = {
    "path": FILE,
    "line": 14,
    "severity": "critical",
    "confidence": 0.97,
    "body": "`sorted` begins with the lowest price, so this returns the cheapest item, not the dearest.",
    "suggestion": "    return max(prices)",
}
_MEND = (
    "sed -i -e 's/sorted(prices)\\[0\\]/max(prices)/' "
    "-e 's/return total \\/ len(prices)$/return total \\/ len(prices) if prices else 0.0/' basket.py"
)
_FIXED = {"verdict": "comment", "summary": "The push fixes what it was to fix, and breaks nothing.", "comments": []}
FIX = "of your reviews: "
LOOK_AGAIN = "was to fix these findings"
"""The words of a prompt by which the model knows what it is to do."""
_LOOK = Call(
    "Bash", {"command": "git diff HEAD~1 --stat; cat basket.py shop.py", "description": "Read the change"}, usage=USAGE
)


def fix(step: int) -> Call | Say:
    """Fix what a person ticked, whichever finding it was."""
    if step == 0:
        return Call(
            "Bash", {"command": _MEND, "description": "Return the dearest, and mind empty baskets"}, usage=USAGE
        )
    return Say(
        "Title: Return the dearest price and mind empty baskets\n\n"
        "`dearest` returns the highest price now, and `mean_price` of an empty basket is zero.",
        usage=USAGE,
    )


def answer(request: ModelRequest, step: int) -> Call | Say:
    """Look first, then report; findings of an earlier review are found again, and the rest is new."""
    if step == 0:
        return _LOOK
    if step > 1:
        return Say("The review is handed over.", usage=USAGE)
    if LOOK_AGAIN in request.prompt:
        return Call("StructuredOutput", _FIXED, usage=USAGE)
    again = "which are still open" in request.prompt
    summary = (
        "`dearest` is right now. An empty basket still divides by zero."
        if again
        else "The idea is sound, but both functions go wrong: one on an empty basket, the other on every basket."
    )
    found = [_EMPTY] if again else [_EMPTY, _LOWEST]
    document = {"verdict": "request_changes", "summary": summary, "comments": found}
    return Call("StructuredOutput", document, usage=USAGE)
