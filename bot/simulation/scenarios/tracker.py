"""The demo's tracker: an MCP server that the account has stored, and the scripted model that notes its work there."""

from __future__ import annotations

from bot.simulation.anthropic import Call, Say, Script, Step
from bot.simulation.scenarios import discount
from bot.simulation.scenarios.discount import PAUSE, SWEEP, USAGE

NAME = "tracker"
OPENING = "/claude fix this, and note in the tracker what was wrong"
CONFIG = """\
mcp:
  tracker: {tools: [find_issue, create_issue], permission: ask}
"""
FILES = {**discount.FILES, discount.CONFIG: discount.FILES[discount.CONFIG] + CONFIG}
NOTE = {"title": "Discounts above 100 % made prices negative", "description": "Fixed in shop.py."}
WORK: tuple[Step, ...] = (
    Call("ToolSearch", {"query": f"select:mcp__{NAME}__find_issue,mcp__{NAME}__create_issue", "max_results": 5}),
    Call("Edit", discount.edit(), "The price must not go below zero.", USAGE),
    Call("Bash", {"command": discount.CHECK, "description": "Run the tests"}, usage=USAGE),
    Call(f"mcp__{NAME}__create_issue", NOTE, "I note it in the tracker.", USAGE),
)
END = Say(
    "Title: Clamp discounted prices at zero\n\n"
    "`discounted` now never goes below zero and refuses negative discounts. The tracker has a note about it.",
    usage=USAGE,
)


def script(*, paced: bool, sweeping: bool) -> Script:
    """Script the agent, as `discount.script` does."""
    sweep: list[Step] = [Call("Bash", {"command": SWEEP, "description": "Look for credentials"}, usage=USAGE)]
    steps = [WORK[0], Call("Read", {"file_path": "shop.py"}), *(sweep if sweeping else ()), *WORK[1:], END]
    return Script([one for step in steps for one in ((PAUSE, step) if paced else (step,))])
