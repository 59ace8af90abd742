"""Judges an approved commit again, by today's rules, and pushes it as it is or not at all."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from bot import repo_config
from bot.git.errors import RefMissing
from bot.kinds import release
from bot.kinds.resolve import Merge
from bot.kinds.shape import Places
from bot.kinds.undo import TakenBack
from bot.models import Outcome, Step, TurnKey
from bot.sessions import dialogue, starting_point
from bot.sessions.kinds import TurnKind
from bot.sessions.moves import End, Move, To
from bot.sessions.publish import push, rescue, turn_commit
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.services import Services
from bot.sessions.starting_point import restore_mirror
from bot.store import approvals, sessions
from bot.store.approvals import Approval, ApprovalState
from bot.store.sessions import Session, Turn
from bot.words import on_pushes


class ReleaseTurn(TurnKind):
    traits = release.TRAITS

    async def prepare(self, services: Services, turn: Turn) -> Move:
        """Go straight to the push, with everything that the released turn has found out."""
        session = await sessions.session(services.store, turn.key.session)
        approval = await _approval(services, turn)
        until = approval.expires_at + approvals.ARRIVES_WITHIN_SECONDS
        if approval.state is not ApprovalState.APPROVED or (approval.answered_at or 0.0) > until:
            return End(Outcome.REFUSED, on_pushes.too_late())
        outdated = End(Outcome.REFUSED, on_pushes.outdated())
        if session.branch != approval.matter["branch"]:
            return outdated
        if session.pull_number is not None:
            reads = services.github.installation(session.installation_id)
            if (await reads.pull(session.thread.repo, session.pull_number)).state != "open":
                return outdated
        await starting_point.require_open(services, turn, session)
        held = await sessions.turn(services.store, approval.key)
        done_by = await sessions.turn(services.store, TurnKey(session.id, approval.matter["done_by"]))
        assert held.base_sha is not None
        config = await starting_point.read_config(services, session)
        try:
            await restore_mirror(services, held)
        except RefMissing:
            return outdated
        columns = {
            "base": held.base,
            "base_sha": held.base_sha,
            "tip_sha": held.tip_sha,
            "config": repo_config.dump(config),
            "agent_result": held.agent_result,
            "verified": list(done_by.verified or ()),  # of this very commit
            "new_branch": int(held.new_branch),
            "files_changed": list(held.files_changed or ()) or None,
        }
        discussions = tuple(await dialogue.asked_at(services, held))
        places = msgspec.structs.replace(turn.part(Places), discussions=discussions)
        return To(Step.PUBLISH, columns, parts=(held.part(Merge), held.part(TakenBack), places))

    async def publish(self, services: Services, turn: Turn, session: Session) -> Move:
        """Safe to repeat: the same commit at the branch is the same push."""
        approval = await _approval(services, turn)
        held = await sessions.turn(services.store, approval.key)
        done_by = await sessions.turn(services.store, TurnKey(session.id, approval.matter["done_by"]))
        bundle, commit = await rescue.kept_bundle(services, held), str(approval.matter["commit"])
        if bundle is None:
            return End(Outcome.REFUSED, on_pushes.lost())
        async with services.cache.quarantine(session.repo_id) as quarantine:
            tree = await quarantine.readmit(bundle, commit)
            work = TurnWork(services, turn, session, quarantine, commit, done_by=done_by)
            judged = await turn_commit.judge(work, tree)
            forbidden = await turn_commit.permission_lost(work)
            if forbidden is not None and (there := await push.arrived(work)) is not None:
                return there
            if (held_back := judged.held or forbidden) is not None:
                return await rescue.keep_on_host(work, End(Outcome.REFUSED, held_back))
            return await push.publish(replace(work, report=judged.report))


async def _approval(services: Services, turn: Turn) -> Approval:
    approval = await approvals.get(services.store, turn.approval or "")
    assert approval is not None
    return approval


KIND = ReleaseTurn()
