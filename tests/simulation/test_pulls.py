"""Pull requests, contents, refs, checks and reviews."""

from __future__ import annotations

import base64

import httpx
import pytest

from tests.simulation.scene import Json, Scene


async def test_pull_request_rules(scene: Scene) -> None:
    token = await scene.mint()
    scene.github.commit(scene.repo, "work", {"a.py": "one\nTWO\nthree\n"}, by="alice")
    scene.github.set_branch(scene.repo, "same", scene.repo.branch_sha("main"))

    async def create(**body: object) -> httpx.Response:
        whole = {"title": "T", "head": "work", "base": "main"} | body
        return await scene.call("POST", "/repos/octo/calc/pulls", whole, auth=token)

    refusals: list[tuple[Json, str]] = [
        ({"head": "same"}, "No commits between main and same"),
        ({"head": "main"}, "No commits between main and main"),
        ({"head": "missing"}, '"field":"head"'),
        ({"base": "missing"}, '"field":"base"'),
        ({"title": "x" * 257}, "title is too long"),
        ({"body": "x" * 65_537}, "body is too long"),
    ]
    for change, says in refusals:
        answer = await create(**change)
        assert (answer.status_code, says in answer.text) == (422, True), answer.text
    scene.repo.drafts_allowed = False
    assert "Draft pull requests are not supported" in (await create(draft=True)).text
    scene.repo.drafts_allowed = True
    made = await create(draft=True, body="B")
    assert (made.status_code, made.json()["draft"], made.json()["changed_files"]) == (201, True, 1)
    assert "A pull request already exists for octo:work." in (await create()).text
    listed = await scene.call("GET", "/repos/octo/calc/pulls?head=octo:work&state=all", auth=token)
    assert [each["number"] for each in listed.json()] == [made.json()["number"]]
    assert (await scene.call("GET", "/repos/octo/calc/pulls?head=octo:other", auth=token)).json() == []


async def test_pull_request_follows_its_branch(scene: Scene) -> None:
    token = await scene.mint()
    scene.github.commit(scene.repo, "work", {"a.py": "one\nTWO\nthree\n"}, by="alice")
    pull = scene.github.open_pull(scene.repo, head="work", by="alice", title="T")
    at = f"/repos/octo/calc/pulls/{pull.number}"
    sha = scene.github.commit(scene.repo, "work", {"new.py": "n\n"}, by="alice")
    assert (await scene.call("GET", at, auth=token)).json()["head"]["sha"] == sha
    files = (await scene.call("GET", f"{at}/files", auth=token)).json()
    assert [(each["filename"], each["status"], each["additions"], each["deletions"]) for each in files] == [
        ("a.py", "modified", 1, 1),
        ("new.py", "added", 1, 0),
    ]
    diff = await scene.call("GET", at, auth=token, accept="application/vnd.github.v3.diff")
    assert "+TWO" in diff.text
    changed = await scene.call("PATCH", at, {"title": "New", "body": "B"}, auth=token)
    assert (changed.json()["title"], pull.body) == ("New", "B")
    scene.github.merge(pull, by="alice")
    whole = (await scene.call("GET", at, auth=token)).json()
    assert (whole["merged"], whole["state"]) == (True, "closed")


async def test_pull_request_closes_with_its_branch(scene: Scene) -> None:
    scene.github.commit(scene.repo, "work", {"a.py": "2\n"}, by="alice")
    pull = scene.github.open_pull(scene.repo, head="work", by="alice")
    scene.github.set_branch(scene.repo, "work", None)
    assert pull.state == "closed"


async def test_fork_pull_request(scene: Scene) -> None:
    token = await scene.mint()
    fork = scene.github.fork(scene.repo, "mallory")
    scene.github.commit(fork, "evil", {"a.py": "evil\n"}, by="mallory")
    pull = scene.github.open_pull(scene.repo, head="mallory:evil", by="mallory")
    shown = (await scene.call("GET", f"/repos/octo/calc/pulls/{pull.number}", auth=token)).json()
    assert shown["head"]["repo"]["full_name"] == "mallory/calc"
    assert (await scene.call("GET", "/repos/mallory/calc", auth=token)).status_code == 404
    scene.github.delete_repo(fork)
    shown = (await scene.call("GET", f"/repos/octo/calc/pulls/{pull.number}", auth=token)).json()
    assert shown["head"]["repo"] is None


async def test_contents_and_refs(scene: Scene) -> None:
    token = await scene.mint()
    scene.github.commit(scene.repo, "feature/x", {"only.txt": "here"}, by="alice")
    found = (await scene.call("GET", "/repos/octo/calc/contents/lib/b.py", auth=token)).json()
    assert base64.b64decode(found["content"]) == b"x = 1\n"
    assert (await scene.call("GET", "/repos/octo/calc/contents/only.txt", auth=token)).status_code == 404
    on_branch = "/repos/octo/calc/contents/only.txt?ref=feature/x"
    assert (await scene.call("GET", on_branch, auth=token, accept="application/vnd.github.raw")).text == "here"
    listed = (await scene.call("GET", "/repos/octo/calc/contents/", auth=token)).json()
    assert [(each["name"], each["type"]) for each in listed] == [("a.py", "file"), ("lib", "dir")]
    sha = scene.repo.branch_sha("feature/x")
    ref = (await scene.call("GET", "/repos/octo/calc/git/ref/heads/feature/x", auth=token)).json()
    assert ref["object"]["sha"] == sha
    assert (await scene.call("GET", "/repos/octo/calc/git/ref/heads/feature", auth=token)).status_code == 404
    matching = (await scene.call("GET", "/repos/octo/calc/git/matching-refs/heads/fea", auth=token)).json()
    assert [each["ref"] for each in matching] == ["refs/heads/feature/x"]
    branch = (await scene.call("GET", "/repos/octo/calc/branches/feature/x", auth=token)).json()
    assert branch["protected"] is False
    commit = (await scene.call("GET", "/repos/octo/calc/commits/feature/x", auth=token)).json()
    assert commit["sha"] == sha
    compared = (await scene.call("GET", "/repos/octo/calc/compare/main...feature/x", auth=token)).json()
    assert (compared["ahead_by"], compared["status"]) == (1, "ahead")
    empty = scene.github.create_repo("octo/empty")
    scene.github.add_repos(scene.installation, empty)
    assert (await scene.call("GET", "/repos/octo/empty/contents/x", auth=token)).status_code == 404


async def test_checks(scene: Scene) -> None:
    token = await scene.mint()
    sha = scene.repo.branch_sha("main")
    path = "/repos/octo/calc/check-runs"
    made = await scene.call("POST", path, {"name": "forgehand", "head_sha": sha, "status": "in_progress"}, auth=token)
    assert made.status_code == 201
    at = f"{path}/{made.json()['id']}"
    refusals: list[Json] = [
        {"status": "completed"},
        {"output": {"title": "t", "summary": "x" * 65_536}},
        {"conclusion": "fine"},
    ]
    for body in refusals:
        assert (await scene.call("PATCH", at, body, auth=token)).status_code == 422
    done = await scene.call("PATCH", at, {"conclusion": "success"}, auth=token)
    assert done.json()["status"] == "completed"
    listed = (await scene.call("GET", f"/repos/octo/calc/commits/{sha}/check-runs", auth=token)).json()
    assert listed["total_count"] == 1
    assert (await scene.call("POST", path, {"name": "x", "head_sha": "0" * 40}, auth=token)).status_code == 422


async def test_reviews_stay_within_the_diff(scene: Scene) -> None:
    token = await scene.mint()
    scene.github.commit(scene.repo, "work", {"a.py": "one\nTWO\nthree\n"}, by="alice")
    pull = scene.github.open_pull(scene.repo, head="work", by="alice")
    path = f"/repos/octo/calc/pulls/{pull.number}/reviews"

    async def review(line: int, file: str = "a.py") -> int:
        comments = [{"path": file, "line": line, "body": "hm"}]
        body = {"event": "COMMENT", "body": "B", "comments": comments}
        return (await scene.call("POST", path, body, auth=token)).status_code

    assert [await review(2), await review(40), await review(1, "lib/b.py")] == [200, 422, 422]
    assert len((await scene.call("GET", path, auth=token)).json()) == 1
    assert len((await scene.call("GET", path.replace("reviews", "comments"), auth=token)).json()) == 1


async def test_a_discussion_in_the_diff_has_one_level_and_tells_of_each_word(scene: Scene) -> None:
    token = await scene.mint()
    scene.github.commit(scene.repo, "work", {"a.py": "one\nTWO\nthree\n"}, by="alice")
    pull = scene.github.open_pull(scene.repo, head="work", by="alice")
    with pytest.raises(LookupError):
        scene.github.review_line(pull, ("a.py", 40), "hm", by="alice")
    first = scene.github.review_line(pull, ("a.py", 2), "hm", by="alice")
    assert first.hunk.startswith("@@ ") and first.hunk.endswith("+TWO")
    path = f"/repos/octo/calc/pulls/{pull.number}/comments"

    async def reply(to: int, words: str = "yes", at: str = path) -> httpx.Response:
        return await scene.call("POST", f"{at}/{to}/replies", {"body": words}, auth=token)

    answered = await reply(first.id)
    assert answered.status_code == 201 and answered.json()["in_reply_to_id"] == first.id
    refused = [await reply(answered.json()["id"]), await reply(first.id, ""), await reply(12345)]
    refused.append(await reply(first.id, at="/repos/octo/calc/pulls/999/comments"))
    assert [one.status_code for one in refused] == [422, 422, 404, 404]
    scene.github.lock(pull, by="alice")
    assert (await reply(first.id)).status_code == 403
    one = f"/repos/octo/calc/pulls/comments/{first.id}"
    assert (await scene.call("GET", one, auth=token)).json()["diff_hunk"] == first.hunk
    assert (await scene.call("POST", f"{one}/reactions", {"content": "eyes"}, auth=token)).status_code == 201
    assert (await scene.call("POST", f"{one}/reactions", {"content": "wow"}, auth=token)).status_code == 422
    assert len((await scene.call("GET", path, auth=token)).json()) == 2
