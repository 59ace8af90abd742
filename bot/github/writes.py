"""Changes at GitHub, one call each, as they are told to: only `bot.outbound` may use them, after redaction."""

from __future__ import annotations

from typing import Any

from bot.github import wire
from bot.github.api import Call
from bot.github.reads import Caller, base
from bot.github.types import CheckOutput, Pull, Purpose
from bot.models import Repo


async def create_comment(caller: Caller, repo: Repo, number: int, body: str) -> int:
    call = Call("POST", f"{base(repo)}/issues/{number}/comments", body={"body": body})
    return (await caller.call(call, Purpose.THREAD, repo.id)).decode(wire.Created).id


async def reply_to_review_comment(caller: Caller, repo: Repo, number: int, comment_id: int, body: str) -> int:
    """`comment_id` is the first of its discussion: GitHub takes no reply to a reply."""
    call = Call("POST", f"{base(repo)}/pulls/{number}/comments/{comment_id}/replies", body={"body": body})
    return (await caller.call(call, Purpose.THREAD, repo.id)).decode(wire.Created).id


async def update_comment(caller: Caller, repo: Repo, comment_id: int, body: str) -> None:
    call = Call("PATCH", f"{base(repo)}/issues/comments/{comment_id}", body={"body": body})
    await caller.call(call, Purpose.THREAD, repo.id)


async def react(caller: Caller, repo: Repo, target: str, reaction: str) -> None:
    """`target` is the path under the repository. GitHub keeps one reaction of a kind from each user."""
    body = {"content": reaction}
    call = Call("POST", f"{base(repo)}/{target}/reactions", body=body, repeatable=True)
    await caller.call(call, Purpose.THREAD, repo.id)


async def create_pull(caller: Caller, repo: Repo, fields: dict[str, Any]) -> Pull:
    """`fields`: title, body, head, base, draft."""
    call = Call("POST", f"{base(repo)}/pulls", body=fields)
    return (await caller.call(call, Purpose.THREAD, repo.id)).decode(wire.PullJson).pull()


async def update_pull(caller: Caller, repo: Repo, number: int, fields: dict[str, Any]) -> None:
    """`fields`: any of title, body, state."""
    await caller.call(Call("PATCH", f"{base(repo)}/pulls/{number}", body=fields), Purpose.THREAD, repo.id)


async def create_check(
    caller: Caller, repo: Repo, *, sha: str, name: str, external_id: str, output: CheckOutput
) -> int:
    body = {"name": name, "head_sha": sha, "external_id": external_id, **_check(output)}
    call = Call("POST", f"{base(repo)}/check-runs", body=body)
    return (await caller.call(call, Purpose.CHECKS, repo.id)).decode(wire.Created).id


async def update_check(caller: Caller, repo: Repo, check_id: int, output: CheckOutput) -> None:
    call = Call("PATCH", f"{base(repo)}/check-runs/{check_id}", body=_check(output))
    await caller.call(call, Purpose.CHECKS, repo.id)


def _check(output: CheckOutput) -> dict[str, Any]:
    body: dict[str, Any] = {"output": {"title": output.title, "summary": output.summary}}
    if output.conclusion is None:
        body["status"] = "in_progress"
    else:
        body |= {"status": "completed", "conclusion": output.conclusion}
    if output.details_url is not None:
        body["details_url"] = output.details_url
    return body
