"""Proposes a config: finds commands in the repository's files, tries them where no agent was, opens a pull request.

No agent works in it, so it asks no model. The files are foreign: their commands run only in a sandbox.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from bot import repo_config, survey
from bot.errors import GitHubRefused
from bot.git.errors import PushRaced, PushRefused
from bot.git.quarantine import Quarantine
from bot.kinds import init
from bot.kinds.init import ConfigTrials
from bot.models import Outcome, Step
from bot.outbound import TextKind, neutralise
from bot.proposal import starter, trials, verification
from bot.proposal.trials import CommandTrial
from bot.proposal.verification import CheckedCommand, CheckPlace
from bot.sessions import declared_checks, starting_point
from bot.sessions.declared_checks import Checking, NoCleanRoom
from bot.sessions.environments import OPEN_PORT
from bot.sessions.kinds import TurnKind
from bot.sessions.moves import End, Move, To
from bot.sessions.publish import pull_request, push, turn_commit
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Session, Turn
from bot.survey import Candidate
from bot.words import endings, on_init, on_pushes
from sandbox.errors import EnvironmentGone
from sandbox.execution import ExecutionEnvironment

log = logging.getLogger(__name__)

BRANCH = "forgehand/config"
MOST_LOST = 2


class InitTurn(TurnKind):
    traits = init.TRAITS

    async def prepare(self, services: Services, turn: Turn) -> Move:
        """Pin the default branch, and find what to try there."""
        session = await sessions.session(services.store, turn.key.session)
        await starting_point.require_open(services, turn, session)
        repo, reads = session.thread.repo, services.github.installation(session.installation_id)
        if await reads.file(repo, repo_config.PATH, repo.default_branch) is not None:
            return End(Outcome.NO_CHANGE, on_init.is_there(repo_config.PATH, repo.default_branch))
        config = await starting_point.read_config(services, session)
        if (known := await reads.pull_by_head(repo, BRANCH)) is not None:
            return End(Outcome.NO_CHANGE, on_init.proposed_already(known.number))
        start = await starting_point.default_tip(services, session)
        columns = {"base": repo.default_branch, "base_sha": start, "config": repo_config.dump(config)}
        found = tuple(msgspec.to_builtins(one) for one in await _surveyed(services, session, start))
        return To(Step.VERIFY, columns, parts=(ConfigTrials(found),))

    async def verify(self, services: Services, turn: Turn) -> Move:
        """Try the candidates; if one fails, try those that passed again, as it may have left something behind."""
        found = turn.part(ConfigTrials)
        candidates = [msgspec.convert(one, Candidate) for one in found.candidates]
        try:
            done = await _tried(services, turn, candidates)
            if any(one.failed for one in done):
                done = trials.confirmed(done, await _tried(services, turn, trials.passed(done)))
        except NoCleanRoom as error:
            log.warning("no fresh environment", extra={"turn": turn.key.workflow_id, "error": str(error)})
            return End(Outcome.FAILED, on_init.no_sandbox(error.why), {"verified": None})
        green = verification.dump([one.check for one in done if one.passed])
        columns = {"verified": green, "branch": BRANCH}
        return To(Step.PUBLISH, columns, parts=(msgspec.structs.replace(found, tried=trials.dump(done)),))

    async def publish(self, services: Services, turn: Turn, session: Session) -> Move:
        """Safe to repeat: the same trials give the same commit, and its branch has one pull request."""
        done = trials.load(turn.part(ConfigTrials).tried)
        async with services.cache.quarantine(session.repo_id) as quarantine:
            work, held = await _committed(services, turn, session, quarantine, done)
            held = held or await turn_commit.permission_lost(work)
            if held is not None:
                return await push.arrived(work) or End(Outcome.REFUSED, held)
            return await _pushed(work, done)


async def _surveyed(services: Services, session: Session, sha: str) -> Sequence[Candidate]:
    cache, repo = services.cache, session.repo_id
    paths, texts = await cache.paths(repo, sha), dict[str, str]()
    for path in await asyncio.to_thread(survey.wanted, paths):
        content = await cache.file(repo, sha, path, max_bytes=survey.MOST_BYTES)
        if content is not None:
            texts[path] = content.decode("utf-8", "replace")
    return await asyncio.to_thread(survey.candidates, paths, texts)


async def _tried(services: Services, turn: Turn, candidates: Sequence[Candidate]) -> list[CommandTrial]:
    """Try them in a fresh environment; begin again in another one if it vanishes."""
    if not candidates:
        return []
    for _ in range(MOST_LOST):
        try:
            return await _where_no_agent_was(services, turn, candidates)
        except EnvironmentGone as error:
            log.warning("an environment vanished", extra={"turn": turn.key.workflow_id, "error": str(error)})
    raise NoCleanRoom(verification.LOST, EnvironmentGone("one after the other"))


async def _where_no_agent_was(services: Services, turn: Turn, candidates: Sequence[Candidate]) -> list[CommandTrial]:
    assert turn.base_sha is not None
    async with (
        services.cache.quarantine(turn.repo_id) as quarantine,
        declared_checks.checking(services, turn, CheckPlace.FRESH, turn.base_sha) as checking,
        declared_checks.clean_room(services, turn, quarantine, turn.base_sha) as environment,
    ):
        return await trials.try_all(candidates, _runner(checking, environment))


def _runner(checking: Checking, environment: ExecutionEnvironment) -> trials.Run:
    known: dict[str, int] = {}

    async def run(command: str, setup: bool) -> tuple[CheckedCommand, Sequence[str]]:
        check = await checking.run_one(environment, command, setup=setup)
        counts = {one.host: one.count for one in await environment.blocked(0.0) if one.port == OPEN_PORT}
        asked = [host for host, count in counts.items() if count > known.get(host, 0)]
        known.update(counts)
        return check, asked

    return run


async def _committed(
    services: Services, turn: Turn, session: Session, quarantine: Quarantine, done: Sequence[CommandTrial]
) -> tuple[TurnWork, str | None]:
    """Make the commit, and return a sentence if policy holds it. An output that looks like a secret is left out."""
    assert turn.base_sha is not None
    for tails in (True, False):
        content = await asyncio.to_thread(_content(services, turn, done, tails=tails))
        tree = await quarantine.with_file(turn.base_sha, repo_config.PATH, content)
        asked = f"Asked for by {turn.requester} in number {turn.number}."
        message = f"{on_init.TITLE}\n\n{asked} {_outcome(done)}"
        commit = await turn_commit.make_commit(services, turn, quarantine, tree, [turn.base_sha], message)
        work = TurnWork(services, turn, session, quarantine, commit)
        if (held := (await turn_commit.judge(work, tree)).held) is None:
            break
    return work, held


def _content(services: Services, turn: Turn, done: Sequence[CommandTrial], *, tails: bool) -> Callable[[], bytes]:
    pages, sha = services.settings.public_url, (turn.base_sha or "")[:12]
    schema = f"{pages}{repo_config.SCHEMA_AT}" if pages else ""
    where = f"in a fresh sandbox, on commit {sha} of {turn.base}"
    return lambda: starter.config(done, where, schema_url=schema, tails=tails).encode()


def _outcome(done: Sequence[CommandTrial]) -> str:
    if not done:
        return on_init.nothing_recognised(survey.LOOKED_FOR)
    passed, failed = sum(one.passed for one in done), sum(one.failed for one in done)
    return on_init.counts(passed, failed, len(done) - passed - failed)


async def _pushed(work: TurnWork, done: Sequence[CommandTrial]) -> Move:
    try:
        sha = await pull_request.push_commit(work, BRANCH)
    except PushRaced:
        return End(Outcome.REFUSED, on_init.branch_taken(BRANCH))
    except PushRefused as error:
        words = work.services.outbound.text(TextKind.COMMENT, error.words)
        return End(Outcome.REFUSED, on_pushes.refused(words, error.kind))
    except GitHubRefused as error:
        return End(Outcome.REFUSED, await turn_commit.refusal_words(work, error))
    columns = {"commit_sha": sha}
    checks = [one.check for one in done]
    body = [on_init.asked_for(work.turn.requester, work.turn.number), _told(done, checks)]
    try:
        pull = await work.services.outbound.open_pull(
            work.session.thread,
            title=on_init.TITLE,
            body="\n\n".join(body),
            head=BRANCH,
            base=work.session.thread.repo.default_branch,
            draft=False,
        )
    except GitHubRefused as error:
        words = work.services.outbound.text(TextKind.TITLE, error.message)
        return End(Outcome.PUSHED, endings.pull_not_opened(BRANCH, words), columns)
    # The comment shows what passed by itself, and leaves the outputs to the pull request.
    told = _told(done, [replace(one.check, tail="") for one in done if not one.passed])
    return End(Outcome.PULL_REQUEST, told, {**columns, "pull_number": pull.number})


def _told(done: Sequence[CommandTrial], shown: Sequence[CheckedCommand]) -> str:
    rows = verification.words(verification.dump(shown), neutralise.block) if shown else ""
    notes = [on_init.passed_without_test(one.check.command) for one in done if one.empty]
    notes += [on_init.hosts_needed(one.check.command, one.hosts) for one in done if one.hosts]
    listed = "\n".join(f"- {one}" for one in notes)
    return "\n\n".join(filter(None, (f"{_outcome(done)} {on_init.FREE}", rows, listed)))


KIND = InitTurn()
