"""The dashboard of a repository, and the answers of its command."""

from __future__ import annotations

TITLE = "Forgehand dashboard"
QUESTIONS = {
    "plan": "A plan waits",
    "price": "A price waits",
    "push": "A held commit waits",
    "fork": "A fork's work waits",
    "tool": "The agent asks",
}


def about(command: str) -> str:
    return (
        "This issue shows what Forgehand does in this repository. Tick a box to give its command; that needs write "
        f"access. `{command} dashboard` says more. To switch this off, close the issue."
    )


def nothing() -> str:
    return "Nothing runs, nothing waits, and nothing needs a look."


def is_off(*, by_config: bool) -> str:
    config = " The config of this repository still asks for it (`dashboard: true`)." if by_config else ""
    return f"This dashboard is switched off. Reopen the issue to switch it on again.{config}"


def and_more(count: int) -> str:
    return f"… and {count} more."


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def is_on(number: int) -> str:
    return (
        f"The dashboard of this repository is [#{number}](../issues/{number}). To switch it off, close that issue; to "
        "switch it on again, reopen it."
    )


def cannot_be(why: str) -> str:
    return f"I could not open an issue for the dashboard: {why}"
