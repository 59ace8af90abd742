"""`forgehand sessions pull`: brings a session's branch and transcript into a clone, to go on by hand."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli import asked, start
from bot.errors import GitHubRefused, UserError
from bot.models import SessionId

if TYPE_CHECKING:
    from bot.settings import Settings
    from bot.store.sessions import Session, Turn
    from bot.workbench.folder import Folder
    from bot.workbench.repository import PersonsRepository


@dataclass(frozen=True)
class Pulled:
    session: str
    branch: str | None
    """The branch in the clone; None if nothing was pushed."""
    resume: str | None
    """The command that continues the conversation; None if there is no transcript."""
    kept: str | None
    """The bundle that holds the work if there is no branch."""


async def pull(config: Path | None, session_id: SessionId, path: Path) -> Pulled:
    from bot.sessions.agent_memory import transcript_name
    from bot.sessions.publish.rescue import kept_name
    from bot.store import sessions
    from bot.store.base import Store
    from bot.store.files import KeptFiles
    from bot.workbench import folder as folders

    values = asked.values_for(path, config)
    chosen = await start.chosen(values, poll=False)
    async with Store.reading(chosen.database) as store:
        session = await sessions.session(store, session_id)
        turns = await sessions.turns_of(store, session_id)
        kept = next((turn.kept for turn in reversed(turns) if turn.kept), None)
        async with KeptFiles.opened(store, chosen.data_dir, chosen.bucket) as files:
            transcript = await files.fetch(transcript_name(session.agent_session_id or ""))
            bundle = await files.fetch(kept_name(kept)) if kept else None
    folder = await folders.look(path)
    ref, branch = _where(session, turns)
    if ref is not None:
        await _fetch(chosen, session, await _clone(folder, session, turns), ref, branch)
    resume = _bring_transcript(transcript, session, folder)
    return Pulled(session_id, branch if ref else None, resume, str(bundle) if bundle and ref is None else None)


def _where(session: Session, turns: list[Turn]) -> tuple[str | None, str]:
    """Return the ref on GitHub that holds the newest work, and the name of its branch here."""
    for turn in reversed(turns):
        if turn.rescue_ref:
            return turn.rescue_ref, f"forgehand/rescue-{turn.key.session}-{turn.key.n}"
        if turn.commit_sha and (branch := turn.branch or session.branch):
            return f"refs/heads/{branch}", branch
    return None, ""


async def _clone(folder: Folder, session: Session, turns: list[Turn]) -> PersonsRepository:
    """Return the folder's repository; refuse one of another project, in which the branch would not belong."""
    from bot.workbench import passage

    if (mine := folder.repository) is not None:
        if mine.head is None or await _is_named(mine, session):
            return mine
        async with passage.opened(mine) as way:
            # a mirror under another name has the commit that the session began at
            if any([await way.has_commit(sha) for sha in {turn.base_sha for turn in turns if turn.base_sha}]):
                return mine
    name = f"{session.owner}/{session.name}"
    raise UserError(f"{folder.path} is not a clone of {name}: go into one, or name it with --path.")


async def _is_named(repository: PersonsRepository, session: Session) -> bool:
    """Return True if one of its remotes names the session's repository, in any form. Nothing is fetched from it."""
    from bot.workbench import configured

    ours = f"{session.owner}/{session.name}".lower()
    urls = [value.lower() for _, value in await configured.rows(repository.config, r"^remote\..*\.url$")]
    named = [url.rstrip("/").removesuffix(".git") for url in urls]
    return any(name.endswith((f"/{ours}", f":{ours}")) for name in named)


async def _fetch(chosen: Settings, session: Session, clone: PersonsRepository, ref: str, branch: str) -> None:
    from bot.git.errors import GitFailed, GitTimedOut
    from bot.git.run import RemoteAccess
    from bot.github.client import GitHubApp
    from bot.github.types import TokenPurpose
    from bot.workbench import bringing

    github = GitHubApp(chosen.github)
    try:
        token = await github.installation(session.installation_id).token(TokenPurpose.READ_REPOSITORY, session.repo_id)
        access = RemoteAccess(f"{chosen.github.url}/{session.owner}/{session.name}.git", token)
        await bringing.branch(clone, access, ref, branch)
    except GitHubRefused as error:
        raise UserError(f"GitHub no longer lets Forgehand read the repository: {error}") from None
    except (GitFailed, GitTimedOut) as error:
        reason = getattr(error, "words", str(error)).strip()[-300:]
        raise UserError(f"The branch could not be fetched: {reason}") from None
    finally:
        await github.close()


def _bring_transcript(source: Path | None, session: Session, folder: Folder) -> str | None:
    """Put the transcript where Claude Code looks for conversations of this folder."""
    from sandbox.agents.claude import Claude
    from sandbox.primitives import Layout

    agent_session = session.agent_session_id
    if agent_session is None or source is None:
        return None
    layout = Layout(home=str(Path.home()), work=str(folder.top), out="", runner="", agent="", python="", git="")
    target = Path(Claude().transcript_path(layout, agent_session))
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = "".join(_moved(line, folder.top) for line in source.read_text(encoding="utf-8").splitlines() if line)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return f"claude --resume {agent_session}"


def _moved(line: str, top: Path) -> str:
    try:
        entry = json.loads(line)
    except ValueError:
        return f"{line}\n"
    if isinstance(entry, dict) and "cwd" in entry:
        entry["cwd"] = str(top)
    return json.dumps(entry, ensure_ascii=False) + "\n"
