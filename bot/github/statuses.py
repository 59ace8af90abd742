"""The statuses of a commit: the older way in which CI systems report, told in the words of checks."""

from __future__ import annotations

import msgspec

from bot.github.api import Call
from bot.github.checks import Result
from bot.github.reads import MAX_PAGES, PAGE, Caller, base, segment
from bot.github.types import Purpose
from bot.models import Repo

APP = "commit status"
_CONCLUSIONS = {"success": "success", "failure": "failure", "error": "failure"}


class _Status(msgspec.Struct):
    context: str
    state: str
    description: str | None = None
    target_url: str | None = None

    def result(self) -> Result:
        """Of no App and in no suite: whoever may push may set one, and it has neither a log nor annotations."""
        return Result(
            id=0,
            name=self.context,
            app_id=0,
            app=APP,
            suite=0,
            status="in_progress" if self.state == "pending" else "completed",
            conclusion=_CONCLUSIONS.get(self.state),
            url=self.target_url or "",
            title=self.description or "",
            summary=self.target_url or "",
        )


class _Combined(msgspec.Struct):
    statuses: list[_Status]


async def of_commit(caller: Caller, repo: Repo, sha: str) -> list[Result]:
    """The latest of each context; GitHubRefused where the App may not read them."""
    found: list[Result] = []
    for page in range(1, MAX_PAGES + 1):
        call = Call("GET", f"{base(repo)}/commits/{segment(sha)}/status", {"per_page": PAGE, "page": page})
        statuses = (await caller.call(call, Purpose.STATUSES, repo.id)).decode(_Combined).statuses
        found += [one.result() for one in statuses]
        if len(statuses) < PAGE:
            break
    return found
