"""Tell the users of the API why a request was refused."""

from __future__ import annotations

from bot.text.markup import shown


def ended(token: str) -> str:
    return f"The API token {shown(token, 60)} was revoked or has ended. Ask an owner of the account for another."


def spent(budget_usd: float) -> str:
    return (
        f"The token's budget of ${budget_usd:g} is spent, or its running turns may still spend the rest. Wait for "
        "them, or ask an owner of the account for another token."
    )


def no_repository(name: str) -> str:
    return f"{shown(name, 200)} is another repository now than when the token was made. Ask for a new token."


def no_thread(name: str, number: int) -> str:
    return f"There is no issue or pull request #{number} in {shown(name, 200)} that Forgehand may see."
