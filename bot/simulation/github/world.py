"""The base of the world's methods: the state, and the actions on it."""

from __future__ import annotations

from bot.simulation.github.accounts import Account
from bot.simulation.github.actions import Actions
from bot.simulation.github.state import State
from bot.simulation.github.threads import Issue, Pull


class World:
    """The base of the world's methods, which subclasses group by subject."""

    state: State
    actions: Actions

    def person(self, who: str | Account) -> Account:
        return self.state.user(who) if isinstance(who, str) else who


def thread(of: Issue | Pull) -> Issue:
    return of.issue if isinstance(of, Pull) else of
