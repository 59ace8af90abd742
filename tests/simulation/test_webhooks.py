"""Webhooks, their signatures and the delivery log."""

from __future__ import annotations

import json

from bot.simulation.github.webhooks import sign
from tests.simulation.scene import Json, Receiver, Scene


async def test_webhooks_are_signed_and_realistic(scene: Scene, receiver: Receiver) -> None:
    scene.repo.grant("alice", "write")
    issue = scene.github.open_issue(scene.repo, title="t", body="b", by="alice")
    comment = scene.github.comment(issue, "/claude fix", by="alice")
    scene.github.edit_comment(comment, "changed", by="bob")
    await scene.github.idle()
    assert sorted(receiver.events()) == ["issue_comment.created", "issue_comment.edited", "issues.opened"]
    got = next(each for each in receiver.got if b'"created"' in each.body)
    assert got.headers["x-hub-signature-256"] == sign("hush", got.body)["X-Hub-Signature-256"]
    payload = got.payload
    assert payload["sender"] == payload["comment"]["user"]
    assert payload["sender"]["type"] == "User"
    assert payload["comment"]["author_association"] == "COLLABORATOR"
    assert payload["installation"]["id"] == scene.installation.id
    assert payload["repository"]["owner"]["login"] == "octo"
    edited = next(each.payload for each in receiver.got if b'"edited"' in each.body)
    assert edited["changes"] == {"body": {"from": "/claude fix"}}
    assert edited["sender"]["login"] == "bob"
    assert edited["comment"]["user"]["login"] == "alice"


async def test_app_hears_its_own_comments(scene: Scene, receiver: Receiver) -> None:
    scene.github.open_issue(scene.repo, title="t", by="alice")
    await scene.call("POST", "/repos/octo/calc/issues/1/comments", {"body": "x"}, auth=await scene.mint())
    await scene.github.idle()
    assert receiver.got[-1].payload["sender"]["login"] == "forgehand[bot]"
    assert receiver.got[-1].payload["sender"]["type"] == "Bot"


async def test_delivery_log_and_redelivery(scene: Scene, receiver: Receiver) -> None:
    receiver.status = 503
    issue = scene.github.open_issue(scene.repo, title="t", by="alice")
    for n in range(4):
        scene.github.comment(issue, f"c{n}", by="alice")
    await scene.github.idle()
    url: str | None = "/app/hook/deliveries?per_page=2"
    rows: list[Json] = []
    while url:
        answer = await scene.call("GET", url, auth=scene.jwt())
        rows += answer.json()
        url = answer.links.get("next", {}).get("url")
    assert [each["id"] for each in rows] == sorted((each["id"] for each in rows), reverse=True)
    assert len(rows) == 5
    assert {each["status_code"] for each in rows} == {503}
    whole = (await scene.call("GET", f"/app/hook/deliveries/{rows[0]['id']}", auth=scene.jwt())).json()
    assert whole["request"]["payload"]["comment"]["body"] == "c3"
    assert whole["request"]["headers"]["X-GitHub-Delivery"] == whole["guid"]
    receiver.status = 202
    again = await scene.call("POST", f"/app/hook/deliveries/{rows[0]['id']}/attempts", auth=scene.jwt())
    assert again.status_code == 202
    await scene.github.idle()
    assert receiver.got[-1].headers["x-github-delivery"] == rows[0]["guid"]
    newest = (await scene.call("GET", "/app/hook/deliveries", auth=scene.jwt())).json()[0]
    assert (newest["redelivery"], newest["status"], newest["guid"]) == (True, "OK", rows[0]["guid"])
    failed = (await scene.call("GET", "/app/hook/deliveries?status=failure", auth=scene.jwt())).json()
    assert len(failed) == 5


async def test_unreachable_hook_is_in_the_log(scene: Scene) -> None:
    scene.app.webhook_url = "https://forgehand.invalid/webhook"
    scene.github.open_issue(scene.repo, title="t", by="alice")
    await scene.github.idle()
    row = (await scene.call("GET", "/app/hook/deliveries", auth=scene.jwt())).json()[0]
    assert (row["status"], row["status_code"], row["event"]) == ("failed to connect", 502, "issues")
    scene.app.hook_active = False
    scene.github.open_issue(scene.repo, title="t", by="alice")
    await scene.github.idle()
    assert len(scene.app.deliveries) == 1


async def test_ready_webhook_for_posting(scene: Scene) -> None:
    issue = scene.github.open_issue(scene.repo, title="t", by="alice")
    comment = scene.github.comment(issue, "/claude héllo", by="alice")
    ready = scene.github.comment_webhook(comment)
    assert ready.headers["X-Hub-Signature-256"] == scene.github.sign(scene.app, ready.body)["X-Hub-Signature-256"]
    assert json.loads(ready.body)["comment"]["body"] == "/claude héllo"
    assert ready.headers["X-GitHub-Delivery"] == ready.guid
