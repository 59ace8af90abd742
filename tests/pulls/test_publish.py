"""Pulls, publishing: the pull request is as its repository wants it, and points out what its readers should look at."""

from __future__ import annotations

import pytest

from bot.simulation.github import gitstore
from bot.simulation.github.threads import Pull
from tests.world import World
from tests.world.pulls import CONFIG, does, live, pull_of

TEMPLATE = (
    "<!-- hello -->\n## Description\n\n## How was it tested?\n\n"
    "## Checklist\n\n- [ ] I ran the tests\n- [x] I read the rules\n"
)


async def opened(world: World, config: str = "", command: str = "echo x > a.txt", words: str = "Cap it.") -> Pull:
    if config:
        world.github.commit(world.repo, "main", {CONFIG: config}, by="alice")
    world.model.default(does(command, words))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    [pull] = world.pulls()
    return pull


async def test_pulls_a_plain_change_has_no_report_and_links_without_closing(world: World) -> None:
    pull = await opened(world, words="Cap it.\n\nFixes #1")
    body = str(pull.body)
    assert body.startswith(f"For #{world.issue.number} · [live comment](") and "Look closely" not in body
    assert "Fixes #1" not in body and pull.draft
    assert [one.login for one in pull.requested] == ["alice"]


@pytest.mark.acceptance("E07")
async def test_pulls_what_stands_out_is_told(world: World) -> None:
    command = (
        "mkdir -p auth && echo x > auth/login.py && head -c 3000 /dev/urandom > logo.png && "
        "echo '{}' > package-lock.json && echo 'echo hi' > run.sh && chmod +x run.sh && ln -s a.txt link && "
        "echo x > a.txt"
    )
    pull = await opened(world, "push: {sensitive: ['auth/**']}\n", command)
    report = str(pull.body).partition("### Look closely at")[2].partition("<details>")[0]
    assert "`auth/login.py`" in report and "`auth/**`" in report
    for line in (
        "Lock files**: `package-lock.json`",
        "executable**: `run.sh`",
        "files**: `logo.png`",
        "Links**: `link`",
    ):
        assert line in report, report


async def test_pulls_people_are_named_by_the_addresses_of_their_own_github(world: World) -> None:
    pull = await opened(world)
    shown = gitstore.git(world.repo.path, "show", "-s", "--format=%ae%n%b", pull.head_sha).decode()
    alice, bot, host = world.github.user("alice"), world.app.bot, "users.noreply.127.0.0.1"
    assert shown.startswith(f"{bot.id}+{bot.login}@{host}\n"), shown
    assert f"Co-authored-by: alice <{alice.id}+alice@{host}>" in shown


async def test_pulls_of_a_further_push_what_stands_out_is_told_in_the_comment(world: World) -> None:
    config = "push: {sensitive: ['auth/**']}\n"
    world.github.commit(world.repo, "main", {CONFIG: config}, by="alice")
    world.model.default(does("mkdir -p auth && echo x > auth/login.py && echo '{}' > package-lock.json"))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude mind the login", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    told = live(world, pull).partition("**Look closely at:**")[2].partition("**The agent says")[0]
    assert "`auth/login.py`" in told and "Lock files**: `package-lock.json`" in told, live(world, pull)


async def test_pulls_the_template_is_filled_and_its_boxes_are_not_ours_to_tick(world: World) -> None:
    world.declare_checks()
    world.github.commit(world.repo, "main", {"docs/Pull_Request_Template.md": TEMPLATE}, by="alice")
    body = str((await opened(world)).body)
    assert "## Description\n\n**The agent says:**\n\nCap it." in body and "- [ ] I ran the tests\n- [x] I read" in body
    assert "## How was it tested?\n\n**Verified by Forgehand:** Run on a clean checkout" in body, body
    assert "hello" not in body and "### Done" not in body and "### Verified" not in body


async def test_pulls_the_config_decides_on_closing_labels_review_and_template(world: World) -> None:
    world.github.create_label(world.repo, "bot")
    world.github.commit(world.repo, "main", {".github/pull_request_template.md": TEMPLATE}, by="alice")
    config = "draft: false\npull: {closes: true, labels: [Bot, absent], request_review: false, template: false}\n"
    pull = await opened(world, config)
    assert str(pull.body).startswith(f"Closes #{world.issue.number} · [live comment](") and "Checklist" not in str(
        pull.body
    )
    assert [one.name for one in pull.issue.labels] == ["bot"] and "absent" not in world.repo.labels
    assert "Not labelled with `absent`" in world.replies()[0].body
    assert not pull.requested and not pull.draft


@pytest.mark.parametrize(("checks", "draft"), [("[]", True), ("['true']", False), ("['true', 'false']", True)])
async def test_pulls_are_drafts_until_verified(world: World, checks: str, draft: bool) -> None:
    pull = await opened(world, f"draft: until_verified\nchecks: {checks}\n")
    assert pull.draft is draft


async def test_pulls_end_as_drafts_once_a_later_push_is_verified(world: World) -> None:
    pull = await opened(world, "draft: until_verified\nchecks: ['test -f good.txt']\n")
    assert pull.draft
    async with world.bot():
        world.model.default(does("echo x > other.txt"))
        world.say("/claude more")
        assert await world.outcome(2) == "pushed" and pull.draft
        world.model.default(does("echo x > good.txt"))
        world.say("/claude make it good")
        assert await world.outcome(3) == "pushed" and not pull.draft


async def test_pulls_go_to_the_branch_that_was_named_under_a_name_of_the_repositorys_choice(world: World) -> None:
    world.github.commit(world.repo, "release", {"a.txt": "old"}, by="alice")
    world.github.commit(world.repo, "main", {CONFIG: "branch: 'bots/{thread}/{session}'\nbase: nowhere\n"}, by="alice")
    world.model.default(does("echo x > b.txt"))
    async with world.bot():
        world.say("/claude --base release fix this")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    [pull] = world.pulls()
    assert pull.base == "release" and pull.head == f"bots/{world.issue.number}/{world.states()[0]['session']}"


NOTHING = {
    "nothing": "true",
    "made and removed": "echo x > a.txt && rm a.txt",
    "ignored": "mkdir -p build && echo x > build/out",
    "an empty commit": "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m empty",
    "commit and revert": "echo x > a.txt && git add a.txt && git -c user.name=x -c user.email=x@x commit -qm one && "
    "git -c user.name=x -c user.email=x@x revert --no-edit HEAD",
}


@pytest.mark.acceptance("E01")
async def test_pulls_none_for_work_that_changes_nothing(world: World) -> None:
    world.github.commit(world.repo, "main", {".gitignore": "build/\n"}, by="alice")
    async with world.bot():
        for case, command in NOTHING.items():
            world.model.default(does(command))
            issue = world.github.open_issue(world.repo, title=case, body="", by="alice")
            world.say("/claude fix this", on=issue)
            assert await world.outcome(on=issue) == "no_change", (case, world.replies(issue)[0].body)
    assert world.repo.branches().keys() == {"main"} and not world.pulls()


@pytest.mark.acceptance("E08")
async def test_pulls_what_git_does_not_take_is_named_with_the_reason(world: World) -> None:
    async with world.bot():
        world.model.default(does("mkdir -p 'a/git~1' .GIT && echo x > 'a/git~1/x' && echo x > .GIT/y"))
        world.say("/claude fix this")
        assert await world.outcome() == "no_change", world.replies()[0].body
        world.model.default(does("mkdir empty && git -C empty init -q && echo x > a.txt"))
        world.say("/claude fix that")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    for path in (".GIT/y", "a/git~1/x"):
        assert f"- `{path}`: its name stands for git's own folder" in world.replies()[0].body, world.replies()[0].body
    assert "- `empty/`: git cannot read it" in world.replies()[-1].body
    assert world.repo.file(world.pulls()[0].head, "a.txt") == b"x\n"


TRAPS = {
    "ln -s /etc/passwd absolute": "`absolute`: it is a link to an absolute path",
    "ln -s ../../outside out": "`out`: it is a link that leaves the repository",
    "ln -s .git/config config": "`config`: it is a link into git's own folder",
    "ln -s b a && ln -s a b": "`a`: it is a link that leads back to itself",
    "touch $'new\\nline'": "its name holds a control character",
    "touch 'back\\slash'": "its name holds a character that is a separator",
    "touch 'dot.'": "`dot.`: its name ends in a dot",
    "touch Shop.py": "`Shop.py`: on some systems it is the same as `shop.py`",
}


@pytest.mark.acceptance("E08")
async def test_pulls_none_with_a_name_or_link_that_is_a_trap(world: World) -> None:
    """Each is held by itself, and named with its reason."""
    world.github.commit(world.repo, "main", {"shop.py": "x"}, by="alice")
    world.model.default(does("; ".join(TRAPS)))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "refused", world.replies()[0].body
    [live] = [one.body for one in world.replies()]
    assert [words for words in TRAPS.values() if words not in live] == [], live
    assert world.repo.branches().keys() == {"main"} and not world.pulls()


@pytest.mark.acceptance("E09")
@pytest.mark.acceptance("E12")
async def test_pulls_hooks_filters_and_forged_commits_of_the_sandbox_have_no_effect(world: World) -> None:
    canary = world.root / "canary"
    hook = f"printf '#!/bin/sh\\ntouch {canary}\\n' > .git/hooks/pre-push && chmod +x .git/hooks/pre-push"
    settings = [
        f"core.fsmonitor 'touch {canary}'",
        f"filter.x.clean 'touch {canary}; cat'",
        f"filter.x.smudge 'touch {canary}; cat'",
        f"diff.x.textconv 'touch {canary}; cat'",
        "url.file:///tmp/.insteadOf http",
        "remote.origin.pushurl file:///tmp/elsewhere",
    ]
    configured = " && ".join(f"git config {one}" for one in settings)
    dates = "GIT_AUTHOR_DATE='@0 +0000' GIT_COMMITTER_DATE='@4000000000 +0000'"
    who = f"GIT_AUTHOR_NAME=root GIT_AUTHOR_EMAIL=boss@example.org {dates}"
    forged = f"{who} git -c user.name=x -c user.email=x@x commit -qm forged --no-verify"
    attributes = "printf '* filter=x diff=x\\n' > .git/info/attributes"
    command = (
        f"{hook}; {configured}; echo x > a.txt; git add a.txt; {forged}; {attributes}; git replace HEAD HEAD~1; true"
    )
    pull = await opened(world, command=command)
    assert not canary.exists()
    assert world.repo.file(pull.head, "a.txt") == b"x\n"
    raw = gitstore.git(world.repo.path, "cat-file", "commit", pull.head_sha).decode()
    assert "boss@example.org" not in raw and "forged" not in raw
    assert raw.count("forgehand[bot]") >= 2 and " 0 +0000" not in raw and "4000000000" not in raw


@pytest.mark.acceptance("E13")
@pytest.mark.parametrize("case", ["empty", "renamed", "odd name"])
async def test_pulls_odd_repositories_work_or_say_one_clear_sentence(world: World, case: str) -> None:
    world.model.default(does("echo x > a.txt"))
    if case == "empty":
        world.github.set_branch(world.repo, "main", None, by="alice")
    elif case == "renamed":
        sha = world.repo.branch_sha("main")
        world.github.set_branch(world.repo, "trünk/α", sha, by="alice")
        world.github.set_branch(world.repo, "main", None, by="alice")
        world.repo.default_branch = "trünk/α"
    else:
        world.github.rename_repo(world.repo, "a.b_c-d..e")
    async with world.bot():
        world.say("/claude fix this")
        outcome = await world.outcome()
    if case == "empty":
        assert outcome == "failed" and "has no commit yet" in world.replies()[0].body, world.replies()[0].body
    else:
        assert outcome == "pull_request", world.replies()[0].body
        assert world.pulls()[0].base == world.repo.default_branch


@pytest.mark.acceptance("E14")
async def test_pulls_a_token_of_the_push_is_nowhere_to_be_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_CURL_VERBOSE", "GIT_TRACE", "GIT_TRACE_CURL"):
        monkeypatch.setenv(name, "1")
    world.github.protect(world.repo, "forgehand/*", "Use https://x-access-token:hunter2hunter2@github.example instead.")
    world.model.default(does("echo x > a.txt"))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "refused"
    shown = world.replies()[0].body
    assert "hunter2hunter2" not in shown
    assert not [one for one in world.github.tokens.minted if one.value in shown]
