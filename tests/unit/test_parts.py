"""What only some turns have: typed, put in the place of what was there, and forgotten but for the facts."""

from __future__ import annotations

from bot.kinds.resolve import Merge
from bot.kinds.review import HandedOver
from bot.kinds.shape import AgentReading, OnFork, Places, part, with_parts, without_words
from bot.kinds.undo import TakenBack
from bot.models import Fork, Spot
from tests.unit.turns import TURN

SPOT = Spot(5, "a.py", 3, None, "@@ -1 +1 @@")
FORK = Fork(9, "eve/shop", "main")


def test_a_part_is_read_as_it_was_put_and_is_empty_where_there_is_none() -> None:
    turn = TURN.having(Places(SPOT, (SPOT,)), Merge("a" * 40, ("x.py",)))
    assert turn.part(Places) == Places(SPOT, (SPOT,))
    assert turn.part(Merge).conflicts == ("x.py",)
    assert turn.part(HandedOver) == HandedOver()
    assert turn.having(Merge()).payload.keys() == {"Places"}


def test_a_part_takes_the_place_of_the_one_before_it_and_of_no_other() -> None:
    payload = with_parts(with_parts({}, [TakenBack(1), Merge("a")]), [TakenBack(2)])
    assert part(payload, TakenBack) == TakenBack(2)
    assert part(payload, Merge) == Merge("a")


def test_the_words_of_a_repository_are_forgotten_and_the_facts_are_not() -> None:
    parts = [
        AgentReading("secret plans", notes=("of octo",)),
        Places(SPOT),
        OnFork(FORK, "work.patch"),
        Merge("a" * 40, ("secret.py",)),
        HandedOver({"summary": "secret"}, 17),
        TakenBack(3),
    ]
    left = without_words(with_parts({}, parts))
    assert "secret" not in str(left)
    assert part(left, OnFork) == OnFork(FORK)
    assert part(left, Merge) == Merge("a" * 40)
    assert part(left, HandedOver) == HandedOver(None, 17)
    assert part(left, TakenBack) == TakenBack(3)
    assert left.keys() == {"OnFork", "Merge", "HandedOver", "TakenBack"}
