"""What GitHub answers: what people have written there, and more than it ever should."""

from __future__ import annotations

import json
from typing import Any

from bot.simulation.anthropic import Say
from bot.simulation.github.faults import Fault
from bot.simulation.github.threads import Comment
from tests.loop import hostile
from tests.loop.attacks import attack
from tests.loop.doors_agent import program, run
from tests.loop.field import Field

MEGABYTE = 1 << 20
LONGEST = 65_536
"""Characters that GitHub takes in a comment."""


def page_of_comments(comment: Comment, unit: str) -> bytes:
    """A hundred of them as long as may be, as GitHub renders them."""
    text = hostile.of_size(unit, LONGEST)
    user = {"id": comment.author.id, "login": comment.author.login, "type": "User"}
    at = "2026-01-01T00:00:00Z"
    one = {"id": 1, "body": text, "body_text": text, "body_html": f"<p>{text}</p>", "user": user}
    whole = [{**one, "id": number, "created_at": at, "updated_at": at} for number in range(1, 101)]
    return json.dumps(whole).encode()


async def crowded(field: Field, unit: str) -> None:
    comment = field.world.say("Hello.", by="alice")
    link = f'<{field.world.github.api_url}/x?page=100>; rel="last"'
    fault = Fault(
        f"GET */repos/{field.world.repo.full_name}/issues/*/comments",
        "fail",
        status=200,
        body=page_of_comments(comment, unit),
        headers={"link": link},
        times=24,
    )
    field.world.github.faults.add(fault)
    await run(field, Say("Done."))
    field.world.say("/claude status")
    await field.settled()


@attack("100 pages of comments of 65,536 characters", "github")
async def pages_of_comments(field: Field) -> None:
    await crowded(field, "word \n\n")


@attack("100 pages of comments that are hard to read", "github")
async def pages_of_hostile_comments(field: Field) -> None:
    await crowded(field, "> ```\n<!-- [a](b \n")


async def config(field: Field, text: str) -> None:
    field.world.github.commit(field.world.repo, "main", {".github/forgehand.yml": text})
    await run(field, Say("Done."))


@attack("forgehand.yml of 1 MB", "github")
async def large_config(field: Field) -> None:
    await config(field, "checks:\n" + "  - echo x\n" * 90_000)


@attack("forgehand.yml of aliases", "github")
async def aliases(field: Field) -> None:
    rows = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    rows += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    await config(field, "\n".join(rows))


@attack("forgehand.yml nested deep", "github")
async def deep_config(field: Field) -> None:
    await config(field, "checks: " + "[" * 60_000)


@attack("a pull request template that is hard to read", "github")
async def template(field: Field) -> None:
    text = "# Summary\n\n" + "Fixes #" + "x" * 60 + "!\n" + "Fixes # " + "_." * 400 + "!\n" + "<!--" * 4_000
    field.world.github.commit(field.world.repo, "main", {".github/pull_request_template.md": text})
    outcome = await program(field, "open('new.txt', 'w').write('new')")
    assert outcome == "pull_request", outcome


async def widen(field: Field) -> None:
    """The branch of the attack below."""
    files = {f"folder{n % 50}/file{n}.txt": f"{n}\n" * 40 for n in range(3_000)}
    field.world.github.commit(field.world.repo, "wide", files)
    await field.settled()


@attack("3,000 changed files", "github", widen)
async def many_files(field: Field) -> None:
    pull = field.world.github.open_pull(field.world.repo, head="wide", by="alice")
    field.world.say("/claude review", on=pull)
    await field.world.outcome(on=pull, timeout=110)


@attack("30 MB of JSON in each answer", "github")
async def large_answers(field: Field) -> None:
    filler: list[Any] = [{"a": 1}] * (30 * MEGABYTE // 9)
    body = json.dumps({"id": 1, "login": "x", "user": {"id": 1, "login": "x"}, "permission": "none", "more": filler})
    path = f"GET */repos/{field.world.repo.full_name}/collaborators/*"
    field.world.github.faults.add(Fault(path, "fail", status=200, body=body, times=4))
    for _ in range(4):
        field.world.say("/claude status", by="alice")
    await field.settled()
