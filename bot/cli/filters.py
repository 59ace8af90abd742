"""The filters of lists: the same options at each command that lists something."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import console
from bot.cli.period import began

if TYPE_CHECKING:
    from bot.store.sought import Sought

_OPTIONS: dict[str, Any] = {
    "repo": Annotated[str, typer.Option("--repo", metavar="OWNER/NAME", help="Only this repository.")],
    "state": Annotated[str, typer.Option("--state", metavar="STATE", help="Only this state.")],
    "outcome": Annotated[str, typer.Option("--outcome", metavar="OUTCOME", help="Only this outcome.")],
    "by": Annotated[str, typer.Option("--by", metavar="LOGIN", help="Only what this person asked for or did.")],
    "since": Annotated[
        str, typer.Option("--since", metavar="DATE|30d", help="A day (UTC), or a time ago (h, d, w); all otherwise.")
    ],
    "limit": Annotated[int, typer.Option("--limit", metavar="N", min=1, max=100_000, help="How many at most.")],
}


@dataclass(frozen=True)
class ListFilters:
    repo: str = ""
    state: str = ""
    outcome: str = ""
    by: str = ""
    since: str = ""
    limit: int = 100

    def sought(
        self, *, states: Collection[str] = (), outcomes: Collection[str] = (), without: tuple[str, ...] = ()
    ) -> Sought:
        """Return the search; fail for a word that can match nothing."""
        from bot.store.sought import Sought

        for name, word, known in (("--state", self.state, states), ("--outcome", self.outcome, outcomes)):
            if word and word not in known:
                console.fail(f"{name} takes one of {', '.join(known)}, not {word!r}.", 2)
        since = began(self.since, time.time()) if self.since else 0.0
        return Sought(self.repo, self.state, self.outcome, self.by, since, without, self.limit)


def filtered(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options; it gets them as `filters`, its first parameter."""
    defaults = {one.name: one.default for one in fields(ListFilters)}

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            command(ListFilters(**{name: given.pop(name) for name in names}), **given)

        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [inspect.Parameter(one, keyword, default=defaults[one], annotation=_OPTIONS[one]) for one in names]
        rest = [one.replace(kind=keyword) for one in own]
        called.__signature__ = inspect.Signature([*added, *rest])  # type: ignore[attr-defined]
        called.__annotations__ = {}  # typer reads the signature
        return called

    return with_options
