"""The kinds of turns, by name. A new one is a module here and a line below (.github/CONTRIBUTING.md)."""

from bot.kinds import adopt, ask, fix_ci, init, plan, release, resolve, review, run, undo
from bot.kinds.shape import Traits

__all__ = ["TRAITS", "Traits"]

TRAITS: dict[str, Traits] = {
    one.TRAITS.name: one.TRAITS for one in (run, ask, plan, review, resolve, fix_ci, undo, release, adopt, init)
}
