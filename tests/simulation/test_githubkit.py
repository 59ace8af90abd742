"""The real client parses every answer into its types."""

from __future__ import annotations

import ssl
from time import time

from githubkit import AppAuthStrategy, GitHub
from githubkit.cache import MemCacheStrategy

from tests.simulation.scene import Json, Scene


async def test_githubkit_reads_every_answer(scene: Scene) -> None:
    scene.clock.now = time()  # githubkit makes its JWT with the machine's clock
    scene.repo.grant("alice", "write")
    issue = scene.github.open_issue(scene.repo, title="t", body="b", by="alice", labels=["claude"])
    comment = scene.github.comment(issue, "c", by="alice")
    sha = scene.github.commit(scene.repo, "work", {"a.py": "two\n"}, by="alice")
    strategy = AppAuthStrategy(scene.app.id, scene.app.private_key_pem)
    common: Json = {
        "base_url": f"{scene.github.api_url}/",
        "ssl_verify": ssl.create_default_context(),
        "auto_retry": False,
        "http_cache": False,
        "trust_env": False,
        "timeout": 10,
    }
    app = GitHub(strategy, cache_strategy=MemCacheStrategy(), **common)
    scoped = strategy.as_installation(scene.installation.id, repository_ids=[scene.repo.id])
    client = GitHub(scoped, cache_strategy=MemCacheStrategy(), **common)
    at = ("octo", "calc")
    async with app, client:
        apps, rest = app.rest.apps, client.rest
        identity = (await apps.async_get_authenticated()).parsed_data
        assert identity
        assert identity.id == scene.app.id
        assert (await apps.async_list_installations()).parsed_data[0].id == scene.installation.id
        assert (await apps.async_get_installation(scene.installation.id)).parsed_data.app_slug == "forgehand"
        assert (await apps.async_get_repo_installation(*at)).parsed_data.id == scene.installation.id
        deliveries = await apps.async_list_webhook_deliveries()
        assert deliveries.parsed_data == []
        repos = await rest.apps.async_list_repos_accessible_to_installation()
        assert repos.parsed_data.repositories[0].full_name == "octo/calc"
        assert (await rest.repos.async_get(*at)).parsed_data.default_branch == "main"
        level = (await rest.repos.async_get_collaborator_permission_level(*at, "alice")).parsed_data
        assert (level.permission, level.role_name, level.user and level.user.login) == ("write", "write", "alice")
        assert (await rest.users.async_get_by_username("forgehand[bot]")).parsed_data.id == scene.app.bot.id
        assert (await rest.issues.async_get(*at, issue.number)).parsed_data.title == "t"
        assert len((await rest.issues.async_list_comments(*at, issue.number)).parsed_data) == 1
        made = (await rest.issues.async_create_comment(*at, issue.number, body="hello")).parsed_data
        assert (await rest.issues.async_update_comment(*at, made.id, body="bye")).parsed_data.body == "bye"
        assert (await rest.issues.async_get_comment(*at, made.id)).parsed_data.id == made.id
        reaction = await rest.reactions.async_create_for_issue_comment(*at, comment.id, content="eyes")
        assert reaction.parsed_data.content == "eyes"
        await rest.reactions.async_create_for_issue(*at, issue.number, content="rocket")
        assert len((await rest.issues.async_list_labels_on_issue(*at, issue.number)).parsed_data) == 1
        pull = (await rest.pulls.async_create(*at, title="T", head="work", base="main", draft=True)).parsed_data
        assert (pull.draft, pull.head.sha) == (True, sha)
        assert (await rest.pulls.async_update(*at, pull.number, body="B")).parsed_data.body == "B"
        assert (await rest.pulls.async_get(*at, pull.number)).parsed_data.changed_files == 1
        assert len((await rest.pulls.async_list(*at, head="octo:work", state="all")).parsed_data) == 1
        assert len((await rest.pulls.async_list_files(*at, pull.number)).parsed_data) == 1
        review = await rest.pulls.async_create_review(*at, pull.number, body="R", event="COMMENT")
        assert review.parsed_data.state == "COMMENTED"
        assert len((await rest.pulls.async_list_reviews(*at, pull.number)).parsed_data) == 1
        assert (await rest.git.async_get_ref(*at, "heads/work")).parsed_data.object_.sha == sha
        assert len((await rest.git.async_list_matching_refs(*at, "heads/")).parsed_data) == 2
        assert (await rest.git.async_get_commit(*at, sha)).parsed_data.sha == sha
        assert (await rest.repos.async_get_commit(*at, "work")).parsed_data.sha == sha
        assert (await rest.repos.async_get_branch(*at, "work")).parsed_data.protected is False
        assert (await rest.repos.async_compare_commits(*at, "main...work")).parsed_data.ahead_by == 1
        content = (await rest.repos.async_get_content(*at, "a.py", ref="work")).parsed_data
        assert not isinstance(content, list)
        assert content.type == "file"
        check = await rest.checks.async_create(*at, data={"name": "n", "head_sha": sha, "status": "in_progress"})
        done = await rest.checks.async_update(
            *at, check.parsed_data.id, data={"status": "completed", "conclusion": "success"}
        )
        assert done.parsed_data.conclusion == "success"
        assert (await rest.checks.async_list_for_ref(*at, "work")).parsed_data.total_count == 1
        assert (await rest.rate_limit.async_get()).parsed_data.resources.core.limit == 5000
        scene.app.webhook_url = "https://forgehand.invalid"
        scene.github.comment(issue, "d", by="alice")
        await scene.github.idle()
        row = (await apps.async_list_webhook_deliveries()).parsed_data[0]
        assert (await apps.async_get_webhook_delivery(row.id)).parsed_data.guid == row.guid
