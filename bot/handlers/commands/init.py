"""`init`: a pull request with a starter for the repository's config."""

from __future__ import annotations

from pathlib import Path

from bot import repo_config
from bot.commands import Command
from bot.errors import GitHubRefused
from bot.events.threads import Remark
from bot.git.commits import Author
from bot.git.errors import GitFailed, PushRaced, PushRefused
from bot.github.types import TokenPurpose
from bot.handlers.desk import Desk, Feature, Handled, acted, refused
from bot.outbound import TextKind
from bot.sessions.starting_point import remote_access
from bot.words import replies

BRANCH = "forgehand/config"
STARTER = Path(__file__).with_name("starter.yml")


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    repo = remark.thread.repo
    at = desk.github.installation(remark.thread.installation)
    if await at.file(repo, repo_config.PATH, repo.default_branch) is not None:
        await desk.reply(remark, replies.config_is_there(repo_config.PATH, repo.default_branch))
        return refused(f"there is a `{repo_config.PATH}` already")
    known = await at.pull_by_head(repo, BRANCH)
    if known is None:
        try:
            await _push(remark, desk)
        except PushRaced:
            await desk.reply(remark, replies.config_branch_taken(BRANCH))
            return refused(f"the branch `{BRANCH}` is taken")
        except (PushRefused, GitHubRefused, GitFailed) as error:
            words = desk.outbound.text(TextKind.TITLE, str(error))
            await desk.reply(remark, replies.config_not_pushed(words))
            return refused("the branch for it could not be pushed")
        known = await desk.outbound.open_pull(
            remark.thread,
            title="Add a starter config for Forgehand",
            body=replies.config_pull_body(repo_config.PATH, remark.author.login, remark.thread.number),
            head=BRANCH,
            base=repo.default_branch,
            draft=False,
        )
    await desk.reply(remark, replies.config_proposed(known.number))
    return acted(reason=f"proposed in #{known.number}")


async def _push(remark: Remark, desk: Desk) -> None:
    """Push a commit with the wish's date, so that a repeated try makes the same commit."""
    repo, bot = remark.thread.repo, await desk.github.identity()
    reading = await remote_access(desk, remark.thread, TokenPurpose.READ_REPOSITORY)
    base = await desk.cache.fetch(repo.id, reading, f"refs/heads/{repo.default_branch}")
    async with desk.cache.quarantine(repo.id) as quarantine:
        tree = await quarantine.with_file(base, repo_config.PATH, starter(desk.settings.public_url))
        asked = f"Asked for by {remark.author.login} in number {remark.thread.number}. Nothing in it changes a default."
        message = desk.outbound.text(TextKind.COMMIT, f"Add a starter config for Forgehand\n\n{asked}")
        author = Author(bot.bot_login, bot.bot_email)
        commit = await quarantine.commit(tree, [base], message, author, int(remark.created_at))
        writing = await remote_access(desk, remark.thread, TokenPurpose.PUSH)
        await quarantine.push(writing, commit, BRANCH, expect=None)


def starter(public_url: str | None) -> bytes:
    """Return the file, with a schema for editors if others can reach us."""
    modeline = f"# yaml-language-server: $schema={public_url}{repo_config.SCHEMA_AT}\n" if public_url else ""
    return modeline.encode() + STARTER.read_bytes()


FEATURE = Feature("init", "init", "opens a pull request with a starter `.github/forgehand.yml`", handle=handle)
