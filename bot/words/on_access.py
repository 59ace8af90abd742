"""The refusals: somebody has no right, an account is not served, or the place takes no answer."""

from __future__ import annotations

from bot.text.markup import person


def no_write_access(login: str) -> str:
    return (
        f"Sorry, {person(login)}: I only take commands from people with write access to this repository. "
        "Somebody who has it can give me the command instead. (I say this once per thread; after that I only react "
        "with 😕.)"
    )


def another_account(login: str) -> str:
    return (
        f"The account that wrote this is no longer called {person(login)}, so I did nothing. If it was you, write the "
        "command again."
    )


def could_not_verify(login: str, status: int) -> str:
    return (
        f"I could not verify what {person(login)} may do here, because GitHub refused to say (it answered {status}), "
        "so I did nothing. Please write the command again in a few minutes."
    )


def account_not_served(owner: str) -> str:
    return (
        f"This service does not work for the account {person(owner)}. Its operator can add the account to "
        "`FORGEHAND_ACCOUNTS`."
    )


def thread_locked() -> str:
    return "This conversation is locked, so I started nothing: I could not report on it. Unlock it and ask again."


def repository_archived() -> str:
    return "This repository is archived, so I started nothing: I could not push to it. Unarchive it and ask again."
