"""What reviewers wrote on a pull request: on its lines, and of it as a whole."""

from __future__ import annotations

from dataclasses import replace

from bot.github import wire
from bot.github.api import Call
from bot.github.reads import FULL, PAGE, Caller, base
from bot.github.types import Comment, Purpose
from bot.models import Repo


class _OnLine(wire.CommentJson):
    path: str = ""
    line: int | None = None
    original_line: int | None = None

    def placed(self) -> Comment:
        line = self.line or self.original_line
        where = f"line {line} of {self.path}" if line else self.path
        return replace(self.comment(), kind=f"comment on {where}")


class _Whole(wire.CommentJson):
    submitted_at: str | None = None

    def placed(self) -> Comment:
        at = self.submitted_at or ""
        return replace(self.comment(), kind="review", created_at=at, updated_at=at)


async def on_lines(caller: Caller, repo: Repo, number: int) -> list[Comment]:
    """The newest, oldest of them first."""
    params: dict[str, str | int] = {"per_page": PAGE, "sort": "created", "direction": "desc"}
    call = Call("GET", f"{base(repo)}/pulls/{number}/comments", params, accept=FULL)
    answer = await caller.call(call, Purpose.THREAD, repo.id)
    return [one.placed() for one in answer.decode(list[_OnLine])][::-1]


async def whole(caller: Caller, repo: Repo, number: int) -> list[Comment]:
    """The words of reviews that were handed in; GitHub does not tell whether they were edited since."""
    path = f"{base(repo)}/pulls/{number}/reviews"
    answer = await caller.call(Call("GET", path, {"per_page": PAGE}, accept=FULL), Purpose.THREAD, repo.id)
    if (last := answer.last_page()) > 1:
        call = Call("GET", path, {"per_page": PAGE, "page": last}, accept=FULL)
        answer = await caller.call(call, Purpose.THREAD, repo.id)
    return [one.placed() for one in answer.decode(list[_Whole]) if one.body and one.submitted_at]
