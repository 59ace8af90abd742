"""People, issues, comments, reactions and rate limits."""

from __future__ import annotations

from bot.simulation.github.payloads import stamp
from tests.simulation.scene import Scene


async def test_permission_of_people(scene: Scene) -> None:
    token = await scene.mint()
    for login, role in (("w", "write"), ("m", "maintain"), ("t", "triage"), ("r", "read")):
        scene.repo.grant(login, role)
    scene.github.user("nobody")
    seen = {}
    for login in ("w", "m", "t", "r", "nobody", "octo"):
        answer = (await scene.call("GET", f"/repos/octo/calc/collaborators/{login}/permission", auth=token)).json()
        assert answer["user"]["id"] == scene.github.user(login).id
        seen[login] = (answer["permission"], answer["role_name"])
    assert seen == {
        "w": ("write", "write"),
        "m": ("write", "maintain"),
        "t": ("read", "triage"),
        "r": ("read", "read"),
        "nobody": ("none", "none"),
        "octo": ("admin", "admin"),
    }
    for unknown in ("ghost-x", "forgehand%5Bbot%5D"):
        answer = await scene.call("GET", f"/repos/octo/calc/collaborators/{unknown}/permission", auth=token)
        assert answer.status_code == 404
    bot = (await scene.call("GET", "/users/forgehand%5Bbot%5D", auth=token)).json()
    assert (bot["id"], bot["type"]) == (scene.app.bot.id, "Bot")


async def test_comments_live(scene: Scene) -> None:
    token = await scene.mint()
    issue = scene.github.open_issue(scene.repo, title="t", body="b", by="alice")
    path = f"/repos/octo/calc/issues/{issue.number}/comments"
    made = (await scene.call("POST", path, {"body": "first"}, auth=token)).json()
    assert made["user"]["login"] == "forgehand[bot]"
    assert made["performed_via_github_app"]["id"] == scene.app.id
    at = f"/repos/octo/calc/issues/comments/{made['id']}"
    assert (await scene.call("PATCH", at, {"body": "second"}, auth=token)).json()["body"] == "second"
    assert [body for _, body in issue.comments[0].history] == ["first", "second"]
    for body in ("", "   ", "x" * 65_537, None, 5):
        assert (await scene.call("POST", path, {"body": body}, auth=token)).status_code == 422
    assert (await scene.call("POST", path, {"body": "x" * 65_536}, auth=token)).status_code == 201
    assert (await scene.call("DELETE", at, auth=token)).status_code == 204
    assert (await scene.call("GET", at, auth=token)).status_code == 404
    assert (await scene.call("PATCH", at, {"body": "x"}, auth=token)).status_code == 404
    scene.github.lock(issue, by="octo")
    assert (await scene.call("POST", path, {"body": "x"}, auth=token)).status_code == 403


async def test_broken_json_is_400(scene: Scene) -> None:
    scene.github.open_issue(scene.repo, title="t", by="alice")
    headers = {"Authorization": f"Bearer {await scene.mint()}"}
    answer = await scene.http.post("/repos/octo/calc/issues/1/comments", content=b"{", headers=headers)
    assert (answer.status_code, answer.json()["message"]) == (400, "Problems parsing JSON")


async def test_pages_and_since(scene: Scene) -> None:
    token = await scene.mint()
    issue = scene.github.open_issue(scene.repo, title="t", by="alice")
    for n in range(7):
        scene.clock.now += 10
        scene.github.comment(issue, f"c{n}", by="alice")
    url: str | None = "/repos/octo/calc/issues/1/comments?per_page=3"
    seen: list[str] = []
    while url:
        answer = await scene.call("GET", url, auth=token)
        seen += [each["body"] for each in answer.json()]
        url = answer.links.get("next", {}).get("url")
    assert seen == [f"c{n}" for n in range(7)]
    first = await scene.call("GET", "/repos/octo/calc/issues/1/comments?per_page=3", auth=token)
    assert first.links["last"]["url"].endswith("page=3")
    since = stamp(scene.clock() - 10)
    late = await scene.call("GET", f"/repos/octo/calc/issues/1/comments?since={since}", auth=token)
    assert [each["body"] for each in late.json()] == ["c5", "c6"]
    newest = await scene.call(
        "GET", "/repos/octo/calc/issues/comments?sort=created&direction=desc&per_page=1", auth=token
    )
    assert newest.json()[0]["body"] == "c6"


async def test_rendered_text_leaves_out_what_is_hidden(scene: Scene) -> None:
    scene.github.open_issue(scene.repo, title="t", body="Seen **bold**\n\n<!-- hidden -->\n[//]: # (also)", by="alice")
    answer = await scene.call(
        "GET", "/repos/octo/calc/issues/1", auth=await scene.mint(), accept="application/vnd.github.full+json"
    )
    assert "hidden" in answer.json()["body"]
    assert answer.json()["body_text"] == "Seen bold"


async def test_reactions_are_idempotent(scene: Scene) -> None:
    token = await scene.mint()
    issue = scene.github.open_issue(scene.repo, title="t", by="alice")
    comment = scene.github.comment(issue, "c", by="alice")
    for path in ("/repos/octo/calc/issues/1", f"/repos/octo/calc/issues/comments/{comment.id}"):
        answers = [await scene.call("POST", f"{path}/reactions", {"content": "eyes"}, auth=token) for _ in range(2)]
        assert [each.status_code for each in answers] == [201, 200]
        assert (await scene.call("POST", f"{path}/reactions", {"content": "shrug"}, auth=token)).status_code == 422
    assert len(comment.reactions) == 1


async def test_renamed_repository_redirects(scene: Scene) -> None:
    token = await scene.mint()
    scene.github.rename_repo(scene.repo, "calculator")
    answer = await scene.call("GET", "/repos/octo/calc/branches/main", auth=token)
    assert answer.status_code == 301
    assert (await scene.call("GET", answer.headers["location"], auth=token)).json()["name"] == "main"
    scene.repo.archived = True
    scene.github.open_issue(scene.repo, title="t", by="alice")
    refused = await scene.call("POST", "/repos/octo/calculator/issues/1/comments", {"body": "x"}, auth=token)
    assert refused.status_code == 403


async def test_issue_is_transferred_or_deleted(scene: Scene) -> None:
    token = await scene.mint()
    other = scene.github.create_repo("octo/other", {"a": "b"})
    first = scene.github.open_issue(scene.repo, title="t", by="alice")
    second = scene.github.open_issue(scene.repo, title="u", by="alice")
    scene.github.comment(first, "c", by="alice")
    moved = scene.github.transfer(first, other, by="octo")
    scene.github.delete_issue(second, by="octo")
    assert (await scene.call("GET", "/repos/octo/calc/issues/1", auth=token)).status_code == 301
    assert (
        await scene.call("POST", "/repos/octo/calc/issues/2/comments", {"body": "x"}, auth=token)
    ).status_code == 410
    assert [each.body for each in moved.comments] == ["c"]
    assert scene.github.open_issue(scene.repo, title="v", by="alice").number == 3


async def test_rate_limits(scene: Scene) -> None:
    token = await scene.mint()
    scene.github.open_issue(scene.repo, title="t", by="alice")
    answer = await scene.call("GET", "/repos/octo/calc", auth=token)
    assert answer.headers["x-ratelimit-remaining"] == "4999"
    again = await scene.call("GET", "/repos/octo/calc", auth=token, if_none_match=answer.headers["etag"])
    assert again.status_code == 304
    rate = (await scene.call("GET", "/rate_limit", auth=token)).json()["resources"]["core"]
    assert (rate["used"], rate["remaining"]) == (1, 4999)
    scene.github.limits.content_per_minute = 2
    path = "/repos/octo/calc/issues/1/comments"
    answers = [await scene.call("POST", path, {"body": "x"}, auth=token) for _ in range(3)]
    assert [each.status_code for each in answers] == [201, 201, 403]
    assert answers[-1].headers["retry-after"] == "60"
    scene.github.limits.requests_per_hour = 4
    spent = await scene.call("GET", "/repos/octo/calc", auth=token)
    assert (spent.status_code, spent.headers["x-ratelimit-remaining"]) == (403, "0")
    scene.clock.now += 3601
