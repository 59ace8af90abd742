"""Pushes that did not happen: held for a person, refused by the remote, or too late."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.text import markup
from bot.text.markup import shown
from bot.words import endings

MOST_NAMED = 10
_SIGNED = re.compile(r"verified signatures|signed commits|must be signed", re.IGNORECASE)
_SIGNATURES = "signatures"
_RULE = (
    "Let the App bypass this rule for its own branches, or choose other branch names with `branch` in "
    "`.github/forgehand.yml`, then ask again."
)
_ADVICE = {
    _SIGNATURES: "The rule requires signed commits: with `commits: verified` in `.github/forgehand.yml` they are made "
    "through GitHub's API, which signs them.",
    "secret": "Ask for the change without the secret, or allow it at the link that GitHub gives and ask again.",
    "file_size": "Ask again with that file left out or stored elsewhere.",
    "lfs": "An object of Git LFS is missing at GitHub: upload it, or leave the file as it was, and ask again.",
    "protected": _RULE,
    "rules": _RULE,
    "unverified": "`.github/forgehand.yml` sets `commits: verified`, so nothing was pushed unsigned. On GitHub "
    "Enterprise Server, an administrator has to turn on signing for commits that are made on the web.",
    "permission": "The App needs *Contents: Read and write* here; its installation's settings show what it has.",
}


def there_already(branch: str, sha: str, login: str) -> str:
    return (
        f"This was pushed to the branch `{branch}` as `{sha[:12]}` while {login} had write access to this repository, "
        "and stays there. They no longer have it, so I stopped after that."
    )


def held(paths: Sequence[str], sha: str, patch: str, days: int, *, cut: bool) -> str:
    rest = "\n\n(Shortened: look at the rest in the bundle named below before you say yes.)" if cut else ""
    return (
        "Nothing was pushed yet: this changes workflow files, which run with the repository's secrets "
        f"({markup.named(paths, MOST_NAMED)}). The whole commit `{sha[:12]}` is held for up to {days} days, until "
        "somebody with write access has looked at it:\n\n"
        f"{markup.code(patch.strip(), 'diff')}{rest}"
    )


def waits(words: str, approval_id: str) -> str:
    return f"{words}\n\nIts id is `{approval_id}`."


def needs_permission(words: str, slug: str) -> str:
    """Add that a yes alone would not do."""
    return f"{words}\n\nGitHub would refuse this push today. {_remedy(slug)}"


def takes_a_yes(words: str, slug: str, sha: str, days: int) -> str:
    """Ask for a yes after the remote itself found workflow files in a push."""
    return (
        f"GitHub refused the push because of the workflow files in it:\n\n{markup.fenced(words)}\n\n"
        f"Somebody with write access has to approve them; that pushes commit `{sha[:12]}` as it is. It is held for "
        f"{days} days. {_remedy(slug)}"
    )


def no_permission(words: str, slug: str, sha: str, days: int) -> str:
    return (
        f"GitHub does not accept workflow files from this App:\n\n{markup.fenced(words)}\n\n{_remedy(slug)} Then "
        f"approve again to push commit `{sha[:12]}` as it is; it is held for {days} days."
    )


def _remedy(slug: str) -> str:
    return (
        f"For that, {shown(slug, 60)} needs the permission **Workflows: Read and write**: the App's owner gives it "
        "(the App's settings, *Permissions & events*), and an owner of this account accepts it in the installation's "
        "settings."
    )


def refused(words: str, kind: str) -> str:
    advice = _ADVICE.get(_SIGNATURES if _SIGNED.search(words) else kind, "")
    return endings.push_refused(words) + (f"\n\n{advice}" if advice else "")


def look_closely(report: Sequence[str]) -> str:
    """Point at risky changes of a push to an open pull request, whose text is not ours to change."""
    return "**Look closely at:**\n\n" + "\n".join(f"- {line}" for line in report) if report else ""


def labels_missing(labels: Sequence[str]) -> str:
    named = markup.named(labels, MOST_NAMED, 60)
    return (
        f"Not labelled with {named}: this repository has no such label (see `pull.labels` in `.github/forgehand.yml`)."
    )


def not_signed(reason: str) -> str:
    return f"GitHub made the commit but did not sign it (verification: {shown(reason, 60)})."


def another_tree(ours: str, theirs: str) -> str:
    return f"GitHub made a commit with other content than ours: tree {theirs[:12]} instead of {ours[:12]}."


def outdated() -> str:
    return (
        "Nothing was pushed: since this commit was held, the conversation has moved on, so it no longer fits. "
        "Ask for the change again."
    )


def too_late() -> str:
    return "Nothing was pushed: the held commit has expired. Ask for the change again."


def lost() -> str:
    return "Nothing was pushed: the held commit is no longer on this host. Ask for the change again."
