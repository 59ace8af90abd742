"""Who may start us."""

from __future__ import annotations

import pytest

from bot import authorisation
from bot.authorisation import AccessAnswer, ServedBy
from bot.models import Permission, Person

SERVICE = ServedBy(bot_id=900, app_owner="Octo")
ALICE = Person(7, "alice")


def screen(author: Person = ALICE, owner: str = "octo", via_app: int | None = None) -> authorisation.AccessDecision:
    return authorisation.screen(author, repo_owner=owner, service=SERVICE, via_app=via_app)


@pytest.mark.parametrize("permission", [Permission.WRITE, Permission.MAINTAIN, Permission.ADMIN])
def test_people_with_write_access_may(permission: Permission) -> None:
    assert screen().allowed
    assert authorisation.authorise(ALICE, answered_id=7, permission=permission).allowed


@pytest.mark.acceptance("B01")
@pytest.mark.parametrize("permission", [Permission.READ, Permission.TRIAGE, Permission.NONE])
def test_people_without_it_are_told_politely(permission: Permission) -> None:
    decision = authorisation.authorise(ALICE, answered_id=7, permission=permission)
    assert decision.answer is AccessAnswer.REFUSED
    assert permission.value in decision.reason
    assert decision.sentence is not None
    assert decision.sentence.startswith("Sorry, `alice`: I only take commands from people with write access")


@pytest.mark.acceptance("B02")
@pytest.mark.parametrize(
    "author",
    [
        Person(8, "evil[bot]", "Bot"),
        Person(9, "Copilot", "Bot"),
        Person(10, "evil[bot]", "User"),
        Person(11, "old-name", "Mannequin"),
        Person(12, "octo", "Organization"),
        Person(13, "odd", ""),
        Person(authorisation.GHOST, "ghost"),
        Person(900, "forgehand[bot]", "Bot"),
        Person(900, "renamed", "User"),
    ],
)
def test_what_is_no_person_is_ignored_in_silence(author: Person) -> None:
    decision = screen(author)
    assert decision.answer is AccessAnswer.IGNORED
    assert decision.sentence is None
    assert decision.reason


@pytest.mark.acceptance("B12")
def test_our_own_text_is_ignored() -> None:
    assert screen(Person(900, "forgehand[bot]", "Bot")).reason == "it is our own text"


@pytest.mark.acceptance("B02")
def test_text_that_an_app_wrote_in_a_persons_name_is_ignored() -> None:
    assert screen(via_app=5).answer is AccessAnswer.IGNORED


@pytest.mark.acceptance("B02")
def test_a_login_that_changed_hands_gives_no_rights() -> None:
    decision = authorisation.authorise(ALICE, answered_id=8, permission=Permission.ADMIN)
    assert decision.answer is AccessAnswer.REFUSED
    assert "another account" in decision.reason


def test_only_the_operators_accounts_are_served() -> None:
    assert screen(owner="OCTO").allowed
    decision = screen(owner="stranger")
    assert decision.answer is AccessAnswer.REFUSED
    assert "FORGEHAND_ACCOUNTS" in (decision.sentence or "")
    listed = ServedBy(bot_id=900, app_owner="octo", accounts=("acme",))
    assert authorisation.screen(ALICE, repo_owner="Acme", service=listed).allowed
    assert not authorisation.screen(ALICE, repo_owner="octo", service=listed).allowed


@pytest.mark.acceptance("B03")
def test_without_an_answer_nobody_is_let_in() -> None:
    decision = authorisation.unverified(ALICE, 403)
    assert not decision.allowed
    assert "could not verify" in (decision.sentence or "")
