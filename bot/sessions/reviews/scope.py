"""Decides what of a pull request a review is about, as `review` in the repository's config says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bot.agent import diffs
from bot.agent.findings import Severity
from bot.agent.material import Diff, rule_names
from bot.proposal.push_policy import are_too_many, matches
from bot.repo_config import RepoConfig, Reviewing
from bot.repo_config.values import ForPaths
from bot.text.markup import shown
from bot.text.visible import as_written

MOST_NAMED = 20
MOST_PATTERN = 300


def is_ignored(path: str, config: Reviewing) -> bool:
    return any(matches(path, pattern) for pattern in config.ignore)


def ignored(paths: Iterable[str], config: Reviewing) -> list[str]:
    return [path for path in paths if is_ignored(path, config)] if config.ignore else []


def without_ignored(diff: Diff, config: Reviewing) -> Diff:
    """Leave out files whose old and new names are all ignored."""
    if not config.ignore:
        return diff
    kept = [part.text for part in diffs.parse(diff.text) if len(ignored(part.names, config)) < len(part.names)]
    unread = tuple(path for path in diff.unread if not is_ignored(path, config))
    return replace(diff, text="\n".join(kept), unread=unread)


def left_out(paths: Sequence[str]) -> str:
    """Say which changed files nobody wants reviewed."""
    named = ", ".join(map(rule_names, paths[:MOST_NAMED]))
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return f"files that `review.ignore` names: {named}{more}"


def rules(whole: RepoConfig, paths: Sequence[str] | None) -> str:
    """Word the repository's wishes for the agent. `paths` are the changed files; None: nobody knows them."""
    rows = list(_rules(whole, None if paths is None or are_too_many(paths) else paths))
    return "\n".join(["", "# Wishes of .github/forgehand.yml for reviews", "", *rows, ""]) if rows else ""


def _rules(whole: RepoConfig, paths: Sequence[str] | None) -> Iterator[str]:
    config = whole.review
    if config.ignore:
        named = ", ".join(shown(one, MOST_PATTERN) for one in config.ignore)
        yield f"- Do not review files that match {named}, and report nothing there."
    if config.threshold is not Severity.NIT:
        yield f"- Milder findings than {config.threshold} are not posted: leave them out."
    by_path = (ForPaths(at.pattern, words) for at in whole.paths for words in at.review)
    for one in _touching(by_path, paths):
        yield f"- For {shown(one.pattern, MOST_PATTERN)}: {_plainly(one)}"
    for one in _touching(config.dismissed, paths):
        yield f"- This is intended in {shown(one.pattern, MOST_PATTERN)}, so do not report it: {_plainly(one)}"


def _touching(entries: Iterable[ForPaths], paths: Sequence[str] | None) -> Iterator[ForPaths]:
    for one in entries:
        if paths is None or any(matches(path, one.pattern) for path in paths):
            yield one


def _plainly(one: ForPaths) -> str:
    """Leave out what the page hides: nobody has agreed to that."""
    return " ".join(as_written(one.words).text.split())
