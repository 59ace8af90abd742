"""The comments in which an agent's questions are put to people: with boxes while it waits, with the answer after."""

from __future__ import annotations

import logging

from bot.errors import GitHubRefused, NotFound
from bot.live import boxes
from bot.live.boxes import TickBox
from bot.live.purse import EditQuotas
from bot.models import Thread, TurnKey
from bot.outbound import Outbound
from bot.store import approvals, questions
from bot.store.approvals import Approval, Standing
from bot.store.base import Store
from bot.store.questions import QuestionComment
from bot.words import on_approvals

log = logging.getLogger(__name__)


def marker(approval_id: str) -> str:
    return f"<!-- forgehand:ask={approval_id} -->"


def offered(approval: Approval) -> list[TickBox]:
    """Nothing once nobody waits: what may be said then stands in the live comment."""
    return boxes.to_answer(approval.id, plan=False) if approval.state is Standing.OPEN else []


def body(approval: Approval, command: str) -> str:
    asked = str(approval.matter["shown"])
    if approval.state is Standing.OPEN:
        words = f"{on_approvals.question(asked)}\n\n{boxes.rendered(offered(approval), command)}"
    else:
        words = on_approvals.question_over(approval.state, approval.answered_by, approval.scope, asked)
    return boxes.alone(f"{marker(approval.id)}\n{words}", offered(approval), command)


class Questions:
    """Brings them up to date, out of the allowance of all edits."""

    def __init__(self, store: Store, outbound: Outbound, purse: EditQuotas, command: str) -> None:
        self._store = store
        self._outbound = outbound
        self._purse = purse
        self._command = command

    async def bring_up(self, key: TurnKey, thread: Thread) -> None:
        """Those of one turn that show something else than the store."""
        for one in await questions.outdated(self._store, key):
            if (approval := await approvals.get(self._store, one.approval_id)) is not None:
                await self._edit(one, approval, thread)

    async def _edit(self, one: QuestionComment, approval: Approval, thread: Thread) -> None:
        await self._purse.spend(thread.installation)
        try:
            await self._outbound.edit_comment(thread, one.comment_id, body(approval, self._command))
        except NotFound:
            await questions.gone(self._store, one)
            return
        except GitHubRefused as refused:  # a locked thread: the next change, or the next start, tries again
            log.info("a question's comment waits", extra={"approval": approval.id, "error": str(refused)})
            return
        await questions.shown(self._store, one, approval.state)
