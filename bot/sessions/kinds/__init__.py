"""The kinds of turns at work, by name. A kind with steps of its own has a module here that ends with its `KIND`."""

from importlib import import_module
from pkgutil import iter_modules

from bot.kinds import TRAITS
from bot.sessions.kinds.base import TurnKind, Usual
from bot.store.sessions import Turn

_OWN = {one.name for one in iter_modules(__path__)}
KINDS: dict[str, TurnKind] = {
    name: import_module(f"{__name__}.{name}").KIND if name in _OWN else Usual(traits) for name, traits in TRAITS.items()
}


def of(turn: Turn) -> TurnKind:
    return KINDS[turn.kind]
