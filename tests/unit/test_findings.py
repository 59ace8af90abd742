"""What an agent hands over as a review, and which lines a diff shows: read with tolerance, and without mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent import diffs, findings
from bot.agent.findings import ReviewFinding, ReviewVerdict, Severity
from bot.repo_config.values import ForPaths
from bot.sessions.reviews.sameness import Fingerprint
from bot.words import on_reviews

GOOD: dict[str, Any] = {"path": "a.py", "line": 3, "severity": "major", "confidence": 0.8, "body": "Wrong."}
PATCH = """\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,2 +1,3 @@
 one
+++ b/not-a-name
+two
@@ -10 +11,0 @@ def f():
--- a/neither
diff --git a/old name.txt b/new name.txt
similarity index 90%
rename from old name.txt
rename to new name.txt
--- a/old name.txt\t
+++ b/new name.txt\t
@@ -5,1 +5,1 @@
-x
+y
diff --git a/gone b/gone
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-z
diff --git "a/t\\tab\\303\\251" "b/t\\tab\\303\\251"
--- /dev/null
+++ "b/t\\tab\\303\\251"
@@ -0,0 +1 @@
+w
\\ No newline at end of file
diff --git a/pic.png b/pic.png
Binary files a/pic.png and b/pic.png differ
"""


def test_a_diff_shows_the_lines_of_the_new_files() -> None:
    first, renamed, gone, odd, binary = diffs.parse(PATCH)
    assert (first.path, first.hunks) == ("a.py", ((1, 3),))
    assert first.shows(1, 3) and not first.shows(3, 4) and not first.shows(0, 1)
    assert (renamed.path, renamed.names) == ("new name.txt", ("old name.txt", "new name.txt"))
    assert renamed.hunks == ((5, 5),)
    assert (gone.path, gone.names, gone.hunks) == (None, ("gone",), ())
    assert (odd.path, odd.hunks) == ("t\tab\u00e9", ((1, 1),))
    assert (binary.path, binary.names) == (None, ("pic.png",))


@given(st.text())
def test_any_text_can_be_read_as_a_diff(text: str) -> None:
    diffs.parse(text)
    diffs.parse(f"diff --git a/x b/x\n{text}")


@pytest.mark.parametrize("raw", [None, {}, {"summary": 3}, {"comments": []}])
def test_what_is_no_review_is_none(raw: dict[str, Any] | None) -> None:
    assert findings.read(raw) is None


def test_a_comment_that_cannot_be_understood_costs_none_of_the_others() -> None:
    bad = [{**GOOD, **one} for one in ({"line": 0}, {"line": "3"}, {"line": True}, {"body": " "}, {"path": None})]
    review = findings.read({"verdict": "APPROVED", "summary": " ok ", "comments": [*bad, "x", GOOD, GOOD]})
    assert review is not None
    assert (review.verdict, review.summary, review.left_out) == (ReviewVerdict.APPROVE, "ok", 6)
    assert review.comments == (ReviewFinding("a.py", 3, "Wrong.", None, Severity.MAJOR, 0.8),)
    assert findings.load(findings.dump(review)) == review


@pytest.mark.parametrize(
    ("given_as", "share"), [(0.9, 0.9), (90, 0.9), ("85%", 0.85), ("high", 0.9), ("?", None), (None, None), (-1, None)]
)
def test_confidence_is_a_share(given_as: object, share: float | None) -> None:
    review = findings.read({"summary": "x", "comments": [{**GOOD, "confidence": given_as}]})
    assert review is not None and review.comments[0].confidence == share


def test_a_suggestion_cannot_leave_its_block() -> None:
    one = ReviewFinding("a.py", 1, "x", suggestion="```\n@octo\n````\n")
    body = on_reviews.on_line(one, "abcd1234-1-1", lambda text: text)
    assert body.endswith("`````suggestion\n```\n@octo\n````\n`````")
    assert "```suggestion\n```" in (on_reviews.suggestion(ReviewFinding("a.py", 1, "x", suggestion="")) or "")


def test_what_has_no_place_at_a_line_says_what_to_do_with_its_suggestion_and_what_was_said_before_has_its_head() -> (
    None
):
    below = [
        ReviewFinding("a.py", 1, "Wrong.", suggestion="right = 1"),
        ReviewFinding("b.py", 2, "Dead.", suggestion=""),
    ]
    account = on_reviews.ReviewAccount(
        verdict=ReviewVerdict.COMMENT, approves=False, summary="Fine.", on_lines=0, below=below, unsaid=0, left_out=2,
        repeated=1, resolved=(), notes=(), commit="1" * 40, base="main", base_now=None, moved_to=None,
    )  # fmt: skip
    text = on_reviews.summary(account, lambda text: text)
    assert "fit no line of the diff" in text and "Suggested instead:\n\n```text\nright = 1\n```" in text
    assert "Suggested: remove it." in text and "```text\n```" not in text
    assert "**My earlier findings:**\n\n- still open, said before and not repeated here: 1 finding\n" in text
    assert "2 findings more that named no line, or came after the first 200" in text


def test_the_words_of_a_finding_in_another_file_are_not_read() -> None:
    """Each new finding meets each earlier one: reading all their words would hold up the loop for a minute."""

    class Unread(str):
        __slots__ = ()

        def lower(self) -> str:
            raise AssertionError("read")

    known = Fingerprint("a.py", "", Unread("Wrong."))
    assert not Fingerprint("b.py", "", Unread("Wrong.")).is_same(known)
    assert Fingerprint("a.py", "", "Wrong.").is_same(Fingerprint("a.py", "", "wrong"))


@pytest.mark.parametrize(
    ("said", "severity"),
    [
        ("Critical", "critical"),
        ("🔴 CRITICAL!", "critical"),
        ("blocker", "critical"),
        ("P1", "major"),
        ("high severity", "major"),
        ("medium", "minor"),
        ("nitpick", "nit"),
        ("gruesome", "minor"),
        ("", "minor"),
        (None, "minor"),
        (7, "minor"),
        ("critical" * 5_000, "minor"),
    ],
)
def test_any_word_for_a_severity_is_one_of_four(said: object, severity: str) -> None:
    review = findings.read({"summary": "x", "comments": [{**GOOD, "severity": said}]})
    assert review is not None and review.comments[0].severity == severity


def test_the_worst_findings_come_first_and_are_counted() -> None:
    said = [{**GOOD, "line": n, "severity": name} for n, name in enumerate(("nit", "major", "critical", "major"), 1)]
    review = findings.read({"summary": "x", "comments": said})
    assert review is not None and [one.line for one in review.comments] == [3, 2, 4, 1]
    assert on_reviews.tally(one.severity for one in review.comments) == "1 critical, 2 major, 1 nit"


LONG = "The total is rounded before the discount is taken off, so cents are lost."


@pytest.mark.parametrize(
    ("mine", "theirs", "holds"),
    [
        (("a.py", "c0de", LONG), ("a.py", "c0de", LONG), True),
        (("a.py", "c0de", "Rounded before the discount: cents are lost."), ("a.py", "c0de", LONG), True),
        (("moved.py", "c0de", LONG), ("a.py", "c0de", LONG), True),
        (("moved.py", "c0de", f"{LONG} Also here."), ("a.py", "c0de", LONG), False),
        (("a.py", "0ther", LONG), ("a.py", "c0de", LONG), True),
        (("a.py", "0ther", "Wrong."), ("a.py", "c0de", "Wrong."), False),
        (("a.py", "c0de", "Somebody can inject SQL here."), ("a.py", "c0de", LONG), False),
        (("b.py", "", LONG), ("a.py", "", LONG), False),
    ],
)
def test_a_dismissal_holds_for_the_same_finding(
    mine: tuple[str, str, str], theirs: tuple[str, str, str], holds: bool
) -> None:
    assert (Fingerprint(*mine).likeness(Fingerprint(*theirs)) is not None) is holds


def test_a_dismissal_in_the_config_has_all_its_words_in_the_finding() -> None:
    config = [ForPaths("src/legacy/**", "prints to stdout"), ForPaths("**", "x")]
    assert Fingerprint("src/legacy/a.py", "", "It PRINTS a line to stdout.").is_dismissed_in(config)
    assert not Fingerprint("src/a.py", "", "It prints a line to stdout.").is_dismissed_in(config)
    assert not Fingerprint("src/legacy/a.py", "", "It prints a line, x.").is_dismissed_in(config)
