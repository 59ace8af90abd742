"""Payloads become events; what cannot be used is ignored with a reason, and nothing raises."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot import events
from bot.events.accounts import InstallationChanged, InstalledRepo
from bot.events.ignored import Ignored
from bot.events.threads import (
    CommentCreated,
    CommentDeleted,
    CommentEdited,
    IssueOpened,
    Labeled,
    PullOpened,
    Remark,
    ReviewCommentCreated,
    ReviewSubmitted,
    ReviewWanted,
    ThreadChanged,
)
from bot.models import DeliveryId, InstallationId, Person, Repo, RepoId, Spot, Thread

GUID = DeliveryId("72d3162e-cc78-11e3-81ab-4c9367dc0958")
AT = "2026-11-18T10:00:00Z"
NOW = datetime(2026, 11, 18, 10, 0, 30, tzinfo=UTC).timestamp()
ALICE = {"id": 7, "login": "alice", "type": "User"}
REPO = {
    "id": 11,
    "name": "calc",
    "full_name": "octo/calc",
    "owner": {"login": "octo", "id": 5, "type": "Organization"},
    "private": True,
    "default_branch": "main",
}
ISSUE = {"number": 3, "title": "t", "user": ALICE, "body": "/claude fix", "created_at": AT, "updated_at": AT}
COMMENT = {"id": 99, "user": ALICE, "body": "/claude fix", "created_at": AT, "updated_at": AT}
THREAD = Thread(Repo(RepoId(11), "octo", "calc", True, "main"), InstallationId(42), 3, False)


def payload(action: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "sender": ALICE, "repository": REPO, "installation": {"id": 42}, **more}


def decode(name: str, found: Any, now: float = NOW) -> events.Event:
    return events.decode(name, json.dumps(found), delivery=GUID, now=now)


def reason(event: events.Event) -> str:
    assert isinstance(event, Ignored)
    assert event.delivery == GUID
    return event.reason


def test_a_comment() -> None:
    event = decode("issue_comment", payload("created", issue=ISSUE, comment=COMMENT, unknown={"x": [1]}))
    assert isinstance(event, CommentCreated)
    assert event.thread == THREAD
    assert event.author == Person(7, "alice", "User")
    assert (event.body, event.comment_id, event.created_at) == ("/claude fix", 99, NOW - 30)
    assert (event.is_bot, event.via_app, event.source) == (False, None, "comment:11:99")
    assert event.origin.action == "created"


def test_a_comment_on_a_pull_request_by_a_bot_through_an_app() -> None:
    bot = {"id": 8, "login": "evil[bot]", "type": "Bot"}
    comment = {**COMMENT, "user": bot, "performed_via_github_app": {"id": 77, "slug": "evil"}}
    issue = {**ISSUE, "pull_request": {"url": "https://api.github.com/x"}}
    event = decode("issue_comment", {**payload("created", issue=issue, comment=comment), "sender": bot})
    assert isinstance(event, CommentCreated)
    assert event.thread.is_pull
    assert event.is_bot
    assert event.via_app == 77


@pytest.mark.parametrize(
    ("name", "found", "kind"),
    [
        ("issue_comment", payload("edited", issue=ISSUE, comment=COMMENT), CommentEdited),
        ("issue_comment", payload("deleted", issue=ISSUE, comment=COMMENT), CommentDeleted),
        ("issues", payload("opened", issue=ISSUE), IssueOpened),
        ("issues", payload("labeled", issue=ISSUE, label={"name": "claude"}), Labeled),
        ("pull_request", payload("opened", pull_request=ISSUE), PullOpened),
        ("pull_request", payload("ready_for_review", pull_request={**ISSUE, "head": {"sha": "1" * 40}}), ReviewWanted),
        ("pull_request", payload("labeled", pull_request=ISSUE, label={"name": "x"}), Labeled),
        (
            "pull_request_review",
            payload("submitted", pull_request=ISSUE, review={"id": 5, "user": ALICE, "body": "x", "submitted_at": AT}),
            ReviewSubmitted,
        ),
        ("pull_request_review_comment", payload("created", pull_request=ISSUE, comment=COMMENT), ReviewCommentCreated),
    ],
)
def test_the_kinds(name: str, found: dict[str, Any], kind: type[Any]) -> None:
    event = decode(name, found)
    assert type(event) is kind
    assert isinstance(event, Remark | ThreadChanged)
    assert event.thread.is_pull == ("pull_request" in found)


def test_the_same_text_has_one_source_whatever_brought_it() -> None:
    first = decode("issue_comment", payload("created", issue=ISSUE, comment=COMMENT))
    again = decode("issue_comment", payload("edited", issue=ISSUE, comment=COMMENT))
    opened = decode("issues", payload("opened", issue=ISSUE))
    assert isinstance(first, CommentCreated)
    assert isinstance(again, CommentEdited)
    assert isinstance(opened, IssueOpened)
    assert first.source == again.source
    assert opened.source == "issue:11:3"


def test_an_issue_without_a_body_is_empty() -> None:
    event = decode("issues", payload("opened", issue={**ISSUE, "body": None}))
    assert isinstance(event, IssueOpened)
    assert event.body == ""


@pytest.mark.acceptance("A06")
def test_what_is_old_is_not_acted_upon() -> None:
    later = NOW + 4 * 24 * 3600
    found = payload("created", issue=ISSUE, comment=COMMENT)
    assert isinstance(decode("issue_comment", found, NOW + 3 * 24 * 3600), CommentCreated)
    assert "4 days" in reason(decode("issue_comment", found, later))
    assert "4 days" in reason(decode("issues", payload("opened", issue=ISSUE), later))
    fresh = {**COMMENT, "updated_at": "2026-11-22T10:00:00Z"}
    assert isinstance(decode("issue_comment", payload("edited", issue=ISSUE, comment=fresh), later), CommentEdited)


@pytest.mark.acceptance("A12")
@pytest.mark.parametrize(
    ("name", "found", "words"),
    [
        ("ping", {"zen": "x"}, "not act on `ping`"),
        ("workflow_run", payload("completed"), "not act on `workflow_run`"),
        ("issue_comment", payload("pinned"), "the action `pinned`"),
        ("issues", payload("milestoned", issue=ISSUE), "the action `milestoned`"),
        ("installation", payload("renamed", installation={"id": 42}), "the action `renamed`"),
        ("issue_comment", payload("created", issue=ISSUE), "lacks something"),
        ("issue_comment", payload("created", comment=COMMENT), "lacks something"),
        ("issue_comment", payload("created", issue=ISSUE, comment={**COMMENT, "user": None}), "no account"),
        ("issue_comment", payload("created", issue=ISSUE, comment={**COMMENT, "created_at": None}), "created_at"),
        ("issue_comment", {**payload("created", issue=ISSUE, comment=COMMENT), "installation": None}, "installation"),
        (
            "issue_comment",
            {**payload("created", issue=ISSUE, comment=COMMENT), "sender": {"id": 9, "login": "mallory"}},
            "not the author",
        ),
        ("issues", payload("labeled", issue=ISSUE), "no label"),
    ],
)
def test_what_is_ignored_has_a_reason(name: str, found: dict[str, Any], words: str) -> None:
    assert words in reason(decode(name, found))


@pytest.mark.acceptance("A10")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xef\xbb\xbf{}",
        b'{"action": "\\ud800"}',
        b'{"action": "\xff"}',
        b'{"action": NaN}',
        "{}".encode("utf-16"),
        b'{"sender": {"id": 1' + b"0" * 400 + b"}}",
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"\x00",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_no_json_is_ignored(body: bytes) -> None:
    for name in events.HANDLED_EVENTS:
        assert reason(events.decode(name, body, delivery=GUID, now=NOW))


def test_numbers_that_the_store_could_not_hold_are_refused() -> None:
    for wrong in (0, -1, 2**63, True, "7", 1.5):
        found = payload("created", issue=ISSUE, comment={**COMMENT, "id": wrong})
        assert "lacks something" in reason(decode("issue_comment", found))


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just("x" * 400),
)


@pytest.mark.acceptance("A11")
@settings(max_examples=150)
@given(st.data())
def test_any_field_may_be_wrong_or_missing(data: st.DataObject) -> None:
    found = json.loads(json.dumps(payload("created", issue=ISSUE, comment=COMMENT, label={"name": "x"})))
    for _ in range(data.draw(st.integers(1, 3))):
        place = found
        while nested := [key for key, value in place.items() if isinstance(value, dict) and value]:
            if data.draw(st.booleans()):
                break
            place = place[data.draw(st.sampled_from(nested))]
        if place:
            key = data.draw(st.sampled_from(sorted(place)))
            if data.draw(st.booleans()):
                del place[key]
            else:
                place[key] = data.draw(_VALUES)
    for name in sorted(events.HANDLED_EVENTS):
        event = decode(name, found)
        assert not isinstance(event, Ignored) or event.reason


OCTO = {"id": 5, "login": "octo", "type": "Organization"}


@pytest.mark.parametrize(
    ("name", "action", "more", "state"),
    [
        ("installation", "created", {}, "active"),
        ("installation", "deleted", {}, "deleted"),
        ("installation", "suspend", {"suspended_at": AT}, "suspended"),
        ("installation", "unsuspend", {"suspended_at": None}, "active"),
        ("installation", "new_permissions_accepted", {}, "active"),
        ("installation_repositories", "added", {}, "active"),
        ("installation_repositories", "added", {"suspended_at": AT}, "suspended"),
    ],
)
def test_installations(name: str, action: str, more: dict[str, Any], state: str) -> None:
    event = decode(name, {"action": action, "sender": ALICE, "installation": {"id": 42, "account": OCTO, **more}})
    assert isinstance(event, InstallationChanged)
    assert (event.installation, event.account.login, event.state) == (42, "octo", state)


def test_repositories_of_an_installation() -> None:
    repos = [{"id": 11, "name": "calc", "full_name": "octo/calc", "private": True}, {"id": 12, "full_name": "odd"}]
    found = {"action": "removed", "sender": ALICE, "installation": {"id": 42, "account": OCTO}}
    event = decode("installation_repositories", {**found, "repositories_added": [], "repositories_removed": repos})
    assert isinstance(event, InstallationChanged)
    assert event.added == ()
    assert event.removed == (InstalledRepo(RepoId(11), "octo", "calc", True),)


def test_a_place_in_the_diff_comes_with_its_file_line_and_hunk() -> None:
    place = {"path": "a.py", "line": None, "original_line": 7, "start_line": None, "diff_hunk": "@@ -1 +1 @@"}
    answered = {**COMMENT, **place, "in_reply_to_id": 98}
    event = decode("pull_request_review_comment", payload("created", pull_request=ISSUE, comment=answered))
    assert isinstance(event, ReviewCommentCreated)
    assert event.spot == Spot(98, "a.py", 7, None, "@@ -1 +1 @@", older=True)
    assert (event.react_to, event.thread.is_pull) == (99, True)


def test_a_label_asks_as_often_as_it_is_put_on_and_is_no_replay() -> None:
    first = decode("issues", payload("labeled", issue=ISSUE, label={"name": "claude"}))
    assert isinstance(first, Labeled) and first.author.login == "alice" and first.label == "claude"
    assert re.fullmatch(f"label:11:3:{NOW - 30:.0f}:[0-9a-f]{{8}}", first.source), "of what is signed alone"
    later = {**ISSUE, "updated_at": "2026-11-18T10:00:20Z"}
    for issue, name in ((later, "claude"), (ISSUE, "bug")):
        other = decode("issues", payload("labeled", issue=issue, label={"name": name}))
        assert isinstance(other, Labeled) and other.source != first.source
    late = decode("issues", payload("labeled", issue=ISSUE, label={"name": "claude"}), NOW + 5 * 24 * 3600)
    assert "4 days old" in reason(late)


def test_a_review_as_a_whole_takes_no_reaction() -> None:
    review = {"id": 5, "user": ALICE, "body": "/claude fix", "submitted_at": AT}
    event = decode("pull_request_review", payload("submitted", pull_request=ISSUE, review=review))
    assert isinstance(event, ReviewSubmitted) and event.react_to is None and event.comment_id == 5
