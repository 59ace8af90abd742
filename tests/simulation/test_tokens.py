"""The App itself: its JWTs, installations, tokens and what they may see."""

from __future__ import annotations

from typing import Any

import pytest

from bot.simulation.github.payloads import stamp
from tests.simulation.scene import Json, Scene


async def test_jwt_names_the_app(scene: Scene) -> None:
    answer = await scene.call("GET", "/app", auth=scene.jwt())
    assert (answer.status_code, answer.json()["slug"]) == (200, "forgehand")
    assert (await scene.call("GET", "/app", auth=scene.jwt(iss=scene.app.client_id))).status_code == 200


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"iat": 60}, "'Issued at' claim"),
        ({"exp": -1}, "'Expiration time' claim ('exp') must be"),
        ({"exp": 660}, "too far in the future"),
        ({"iss": "999"}, "Integration not found"),
        ({"alg": "none"}, "could not be decoded"),
    ],
)
async def test_bad_jwt_is_refused(scene: Scene, change: Any, says: str) -> None:
    answer = await scene.call("GET", "/app", auth=scene.jwt(**change))
    assert answer.status_code == 401
    assert says in answer.json()["message"]
    assert answer.json()["documentation_url"]


async def test_jwt_of_a_withdrawn_key_is_refused(scene: Scene) -> None:
    old = scene.app.private_key_pem
    scene.github.rotate_key(scene.app)
    assert (await scene.call("GET", "/app", auth=scene.jwt(key=old))).status_code == 200
    scene.github.rotate_key(scene.app, keep_old=False)
    assert (await scene.call("GET", "/app", auth=scene.jwt(key=old))).status_code == 401
    assert (await scene.call("GET", "/app", auth=scene.jwt())).status_code == 200


async def test_user_agent_is_mandatory(scene: Scene) -> None:
    answer = await scene.call("GET", "/app", auth=scene.jwt(), user_agent="")
    assert answer.status_code == 403
    assert "User-Agent" in answer.text


async def test_installations_are_the_apps_own(scene: Scene) -> None:
    other = scene.github.create_app("other")
    foreign = scene.github.install(other, repos=[scene.repo])
    listed = await scene.call("GET", "/app/installations", auth=scene.jwt())
    assert [each["id"] for each in listed.json()] == [scene.installation.id]
    assert (await scene.call("GET", f"/app/installations/{foreign.id}", auth=scene.jwt())).status_code == 404
    found = await scene.call("GET", "/repos/octo/calc/installation", auth=scene.jwt())
    assert found.json()["id"] == scene.installation.id


async def test_token_formats(scene: Scene) -> None:
    assert len(await scene.mint()) == 40
    scene.github.tokens.format = "stateless"
    long = await scene.mint()
    assert long.startswith(f"ghs_{scene.app.id}_")
    assert 450 < len(long) < 650
    assert "-" in long
    assert (await scene.call("GET", "/repos/octo/calc", auth=long)).status_code == 200
    path = f"/app/installations/{scene.installation.id}/access_tokens"
    short = await scene.call("POST", path, auth=scene.jwt(), x_github_stateless_s2s_token="disabled")
    assert len(short.json()["token"]) == 40
    assert short.json()["expires_at"] == stamp(scene.clock() + 3600)


async def test_token_expires_and_can_be_revoked(scene: Scene) -> None:
    token = await scene.mint()
    assert (await scene.call("GET", "/repos/octo/calc", auth=token)).status_code == 200
    assert (await scene.call("DELETE", "/installation/token", auth=token)).status_code == 204
    assert (await scene.call("GET", "/repos/octo/calc", auth=token)).status_code == 401
    token = await scene.mint()
    scene.clock.now += 3600
    assert (await scene.call("GET", "/repos/octo/calc", auth=token)).json()["message"] == "Bad credentials"


async def test_token_scope_is_enforced(scene: Scene) -> None:
    second = scene.github.create_repo("octo/second", {"x": "y"})
    public = scene.github.create_repo("octo/open", {"x": "y"}, private=False)
    scene.github.add_repos(scene.installation, second)
    token = await scene.mint(repository_ids=[scene.repo.id], permissions={"issues": "read"})
    assert (await scene.call("GET", "/repos/octo/second", auth=token)).status_code == 404
    assert (await scene.call("GET", "/repos/octo/open", auth=token)).status_code == 200
    issue = scene.github.open_issue(scene.repo, title="t", by="alice")
    scene.github.open_issue(public, title="t", by="alice")
    refused = await scene.call("POST", f"/repos/octo/calc/issues/{issue.number}/comments", {"body": "x"}, auth=token)
    assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
    assert refused.headers["x-accepted-github-permissions"] == "issues=write"
    assert (
        await scene.call("POST", "/repos/octo/open/issues/1/comments", {"body": "x"}, auth=token)
    ).status_code == 403
    assert (await scene.call("GET", "/repos/octo/calc/pulls", auth=token)).status_code == 403
    listed = await scene.call("GET", "/installation/repositories", auth=token)
    assert [each["full_name"] for each in listed.json()["repositories"]] == ["octo/calc"]


@pytest.mark.parametrize(
    "wanted", [{"permissions": {"workflows": "write"}}, {"repository_ids": [1]}, {"repositories": ["no"]}]
)
async def test_token_cannot_exceed_the_installation(scene: Scene, wanted: Json) -> None:
    path = f"/app/installations/{scene.installation.id}/access_tokens"
    assert (await scene.call("POST", path, wanted, auth=scene.jwt())).status_code == 422


async def test_suspended_and_uninstalled(scene: Scene) -> None:
    token = await scene.mint()
    path = f"/app/installations/{scene.installation.id}/access_tokens"
    scene.github.suspend(scene.installation)
    assert (await scene.call("GET", "/repos/octo/calc", auth=token)).status_code == 403
    assert (await scene.call("POST", path, auth=scene.jwt())).status_code == 403
    scene.github.unsuspend(scene.installation)
    assert (await scene.call("GET", "/repos/octo/calc", auth=token)).status_code == 200
    scene.github.uninstall(scene.installation)
    assert (await scene.call("GET", "/repos/octo/calc", auth=token)).status_code == 401
    assert (await scene.call("POST", path, auth=scene.jwt())).status_code == 404


async def test_lost_permission_is_lost_to_living_tokens(scene: Scene) -> None:
    token = await scene.mint()
    scene.github.open_issue(scene.repo, title="t", by="alice")
    scene.installation.permissions["issues"] = "read"
    answer = await scene.call("POST", "/repos/octo/calc/issues/1/comments", {"body": "x"}, auth=token)
    assert answer.status_code == 403


async def test_anonymous_sees_public_only(scene: Scene) -> None:
    scene.github.create_repo("octo/open", {"x": "y"}, private=False)
    assert (await scene.call("GET", "/repos/octo/calc")).status_code == 404
    assert (await scene.call("GET", "/repos/octo/open")).status_code == 200
    assert (await scene.call("GET", "/nowhere")).json()["message"] == "Not Found"
    assert (await scene.call("DELETE", "/repos/octo/open")).status_code == 404


async def test_manifest_makes_an_app_once(scene: Scene) -> None:
    manifest = {"name": "Fore Hand", "hook_attributes": {"url": "https://forgehand.invalid/webhook"}}
    code = scene.github.offer_manifest(
        manifest | {"default_permissions": {"issues": "write"}, "default_events": ["issues"]}
    )
    made = await scene.call("POST", f"/app-manifests/{code}/conversions")
    assert made.status_code == 201
    jwt = scene.jwt(iss=made.json()["client_id"], key=made.json()["pem"])
    assert (await scene.call("GET", "/app", auth=jwt)).json()["slug"] == "fore-hand"
    assert (await scene.call("POST", f"/app-manifests/{code}/conversions")).status_code == 404


async def test_revoked_tokens_end(scene: Scene) -> None:
    token = await scene.mint()
    scene.github.revoke_tokens(scene.installation)
    assert (await scene.call("GET", "/repos/octo/calc", auth=token)).status_code == 401
    assert (await scene.call("GET", "/repos/octo/calc", auth=await scene.mint())).status_code == 200
    sent = scene.github.calls[-1].headers
    assert sent["user-agent"] == "tests"
    assert "authorization" in sent
    assert token not in repr(scene.github.calls)
