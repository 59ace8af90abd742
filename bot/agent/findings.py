"""The answer of a reviewing agent: its schema, and how it is read."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeGuard

import msgspec

MOST = 200
MAX_BODY = 6_000
MAX_SUMMARY = 12_000
MAX_SUGGESTION = 8_000

_STRING = {"type": "string"}
_LINE = {"type": "integer", "minimum": 1}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["verdict", "summary", "comments"],
    "properties": {
        "verdict": {**_STRING, "description": "comment, request_changes or approve"},
        "summary": {**_STRING, "description": "the review as a whole, in Markdown, without the comments again"},
        "comments": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["path", "line", "severity", "confidence", "body"],
                "properties": {
                    "path": {**_STRING, "description": "from the root of the repository"},
                    "line": {**_LINE, "description": "the (last) line that it is about, in the new version"},
                    "start_line": {**_LINE, "description": "the first line, if it is about several"},
                    "severity": {**_STRING, "description": "critical, major, minor or nit"},
                    "confidence": {"type": ["number", "string"], "description": "from 0 to 1"},
                    "body": {**_STRING, "description": "what is wrong, why it matters, what would be right"},
                    "suggestion": {
                        **_STRING,
                        "description": "replaces the whole lines start_line to line, indent included",
                    },
                },
            },
        },
        "resolved": {
            "type": "array",
            "items": _STRING,
            "description": "the names of earlier findings of yours that the pull request has fixed since",
        },
    },
}
"""Others may rely on it. It is lenient: a refused answer is paid for twice."""


class ReviewVerdict(StrEnum):
    COMMENT = "comment"
    REQUEST_CHANGES = "request_changes"
    APPROVE = "approve"


_VERDICTS = {
    **dict.fromkeys(
        ("request_changes", "changes_requested", "requested_changes", "reject"), ReviewVerdict.REQUEST_CHANGES
    ),
    **dict.fromkeys(("approve", "approved"), ReviewVerdict.APPROVE),
}


class Severity(StrEnum):
    """How bad a finding is, the worst first."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"
    NIT = "nit"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return _RANKS[self]


_RANKS = {one: rank for rank, one in enumerate(Severity)}
_SEVERITIES = {
    **{one.value: one for one in Severity},
    **dict.fromkeys(("blocker", "blocking", "severe", "fatal", "urgent", "security", "p0"), Severity.CRITICAL),
    **dict.fromkeys(("high", "error", "important", "serious", "bug", "p1"), Severity.MAJOR),
    **dict.fromkeys(("nitpick", "info", "note", "style", "trivial", "cosmetic", "suggestion", "p3"), Severity.NIT),
}
_CONFIDENCES = {"low": 0.3, "medium": 0.6, "high": 0.9}


@dataclass(frozen=True)
class ReviewFinding:
    """A finding at lines of the new version of a file."""

    path: str
    line: int
    body: str
    start_line: int | None = None
    severity: Severity = Severity.MINOR
    confidence: float | None = None
    """0 to 1."""
    suggestion: str | None = None

    @property
    def first(self) -> int:
        return self.start_line or self.line


@dataclass(frozen=True)
class KeptBack:
    """How many findings of a review are not posted, by the reason."""

    threshold: Severity = Severity.NIT
    mild: int = 0
    """Milder than the threshold."""
    ignored: int = 0
    """In paths that the repository does not want reviewed."""
    dismissed: int = 0
    """Said by people to be no bug."""

    @property
    def any(self) -> bool:
        return bool(self.mild or self.ignored or self.dismissed)


@dataclass(frozen=True)
class ReviewReport:
    verdict: ReviewVerdict
    summary: str
    comments: tuple[ReviewFinding, ...] = ()
    resolved: tuple[str, ...] = ()
    left_out: int = 0


def read(document: dict[str, Any] | None) -> ReviewReport | None:
    """Read a review, or None; a comment that cannot be understood does not affect the others."""
    if document is None or not isinstance(document.get("summary"), str):
        return None
    raw, said = document.get("comments"), str(document.get("verdict"))
    listed = raw if isinstance(raw, list) else []
    found = [one for one in map(_finding, listed[:MOST]) if one is not None]
    resolved = document.get("resolved")
    return ReviewReport(
        verdict=_VERDICTS.get(re.sub(r"[^a-z]+", "_", said.lower()).strip("_"), ReviewVerdict.COMMENT),
        summary=document["summary"].strip()[:MAX_SUMMARY],
        comments=tuple(sorted(dict.fromkeys(found), key=lambda one: one.severity.rank)),
        resolved=tuple(one for one in resolved[:MOST] if isinstance(one, str)) if isinstance(resolved, list) else (),
        left_out=len(listed) - len(found),
    )


def dump(review: ReviewReport) -> dict[str, Any]:
    return asdict(review)


def load(document: dict[str, Any]) -> ReviewReport:
    return msgspec.convert(document, ReviewReport)


def _finding(raw: Any) -> ReviewFinding | None:
    if not isinstance(raw, dict):
        return None
    path, line, body = raw.get("path"), raw.get("line"), raw.get("body")
    if not isinstance(path, str) or not isinstance(body, str) or not _is_line(line) or not body.strip():
        return None
    start, suggestion, severity = raw.get("start_line"), raw.get("suggestion"), raw.get("severity")
    return ReviewFinding(
        path=path.removeprefix("./")[:1_000],
        line=line,
        body=body.strip()[:MAX_BODY],
        start_line=start if _is_line(start) and start < line else None,
        severity=severity_of(severity),
        confidence=_confidence(raw.get("confidence")),
        suggestion=suggestion if isinstance(suggestion, str) and len(suggestion) <= MAX_SUGGESTION else None,
    )


def severity_of(said: Any) -> Severity:
    """Read the first word that we know; any other is minor, because nobody should lose a finding for its grade."""
    words = re.findall(r"[a-z]+\d?", said[:100].lower()) if isinstance(said, str) else []
    return next((_SEVERITIES[one] for one in words if one in _SEVERITIES), Severity.MINOR)


def _is_line(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10_000_000


def _confidence(value: Any) -> float | None:
    """Read a share, a percentage, or one of the words for them."""
    if isinstance(value, str):
        value = _CONFIDENCES.get(value.strip().lower(), value)
    try:
        share = float(str(value).rstrip("% "))
    except ValueError:
        return None
    share = share / 100 if share > 1 else share
    return share if 0 <= share <= 1 else None
