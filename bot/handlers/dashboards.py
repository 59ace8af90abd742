"""Handles what people do with the dashboard's issue: tick boxes, change its text, close, move or delete it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from bot.dashboard import picture
from bot.dashboard.picture import ThreadBox
from bot.errors import GitHubRefused
from bot.events import threads
from bot.events.threads import BoxTicked, IssueEdited, IssueToggled, ThreadChanged
from bot.handlers import remarks
from bot.handlers.buttons import MOST_RESTORED
from bot.handlers.desk import Desk, Handled, acted, ignored, refused
from bot.live import questions
from bot.models import ACCOUNT_REPOSITORY, DeliveryId, Thread
from bot.notices import Topic
from bot.store import accounts, dashboards
from bot.store.dashboards import Dashboard
from bot.words import replies

NO_DASHBOARD = "the text of an issue was edited; that asks for nothing"


async def changed(event: IssueEdited | IssueToggled, desk: Desk) -> Handled:
    return await (_toggled(event, desk) if isinstance(event, IssueToggled) else _edited(event, desk))


async def _edited(remark: IssueEdited, desk: Desk) -> Handled:
    """Run the commands of ticked boxes for the person who ticked them, and write the issue's text again."""
    dashboard = await _of(remark.thread, desk)
    if dashboard is None:
        return ignored(NO_DASHBOARD)
    sender = remark.origin.sender
    if sender.id == (await desk.github.identity()).bot_id:
        return ignored(replies.OWN_EDIT)
    if remark.before is None:
        return ignored("the title of the dashboard was edited; it may have any")
    if not sender.is_human and dashboard.restored >= MOST_RESTORED:
        return ignored("bots have changed the dashboard again and again, so it is left as it is")
    await dashboards.spoilt(desk.store, dashboard.repo_id, by_bot=not sender.is_human)
    try:
        return await _ticked(remark, dashboard, desk)
    finally:
        _tell(dashboard, desk)


async def _toggled(event: IssueToggled, desk: Desk) -> Handled:
    """Closing the issue switches the dashboard off, reopening it on; GitHub says what holds by now."""
    dashboard = await _of(event.thread, desk)
    if dashboard is None:
        return ignored(f"an issue that was {event.origin.action} asks for nothing")
    if event.origin.sender.id == (await desk.github.identity()).bot_id:
        return ignored(replies.OWN_EDIT)
    issue = await desk.github.installation(event.thread.installation).issue(event.thread.repo, event.thread.number)
    await dashboards.toggled(desk.store, dashboard.repo_id, is_open=issue.state == "open")
    _tell(dashboard, desk)
    return acted(reason=f"the dashboard is {'on' if issue.state == 'open' else 'off'}")


async def gone(event: ThreadChanged, desk: Desk) -> None:
    """Leave a transferred dashboard alone. Open a deleted one again, once, if the config still asks for it."""
    dashboard = await _of(event.thread, desk)
    if dashboard is None:
        return
    if event.change == "transferred":
        await dashboards.moved(desk.store, dashboard.repo_id)
    elif event.change == "deleted":
        config, _problem = await desk.config_of(event.thread)
        wanted = config is not None and config.dashboard
        await dashboards.deleted(desk.store, dashboard.repo_id, event.thread.number, again=wanted)
        _tell(dashboard, desk)


async def merged(event: ThreadChanged, desk: Desk) -> None:
    """Look at the config after a pull request was closed: it may have switched the dashboard on or off."""
    if event.thread.is_pull and event.change == "closed":
        if event.thread.repo.name == ACCOUNT_REPOSITORY:
            await accounts.doubt_own_repository(desk.store, event.thread.installation)
        with contextlib.suppress(GitHubRefused):
            await desk.config_of(event.thread)
        desk.notices.tell(Topic.DASHBOARD, event.thread.repo.id)


async def _of(thread: Thread, desk: Desk) -> Dashboard | None:
    dashboard = await dashboards.get(desk.store, thread.repo.id)
    return dashboard if dashboard is not None and dashboard.number == thread.number else None


def _tell(dashboard: Dashboard, desk: Desk) -> None:
    desk.notices.tell(Topic.DASHBOARD, dashboard.repo_id, 1)


async def _ticked(remark: IssueEdited, dashboard: Dashboard, desk: Desk) -> Handled:
    assert remark.before is not None
    if not questions.newly(remark.before, remark.body):
        return ignored("the dashboard was edited; it is written again")
    offered = await picture.offered(desk.store, dashboard.repo_id)
    ticked = questions.ticked(remark.before, remark.body, [one.box for one in offered], desk.settings.command)
    by_thread: dict[int, list[ThreadBox]] = {}
    for one in offered:
        if one.box in ticked:
            by_thread.setdefault(one.number, []).append(one)
    if not by_thread:
        return ignored("what was ticked is no longer on offer")
    # Only the last one settles the delivery: after a crash, all are told again, and those that counts no longer do.
    *first, last = by_thread.values()
    for boxes in first:
        origin = replace(remark.origin, delivery=DeliveryId(""))
        await _carry_out(boxes, replace(remark, origin=origin), desk)
    return await _carry_out(last, remark, desk)


async def _carry_out(boxes: Sequence[ThreadBox], remark: IssueEdited, desk: Desk) -> Handled:
    """Give the command on its thread. People who may not are refused silently: the dashboard says nothing else."""
    box = questions.meant([one.box for one in boxes])
    if box is None:
        return ignored("several boxes of one thread were ticked at once, and it is not clear which one was meant")
    where = next(one for one in boxes if one.box is box)
    thread = replace(remark.thread, number=where.number, is_pull=where.is_pull)
    tick = BoxTicked(
        origin=remark.origin,
        thread=thread,
        author=remark.origin.sender,
        body=f"{desk.settings.command} {box.command}",
        created_at=remark.changed_at,
        comment_id=None,
        via_app=None,
        approval=box.approval,
    )
    if not (decision := await desk.judge(tick)).allowed:
        return refused(decision.reason)
    issue = await desk.github.installation(thread.installation).issue(thread.repo, thread.number)
    digest = threads.text_digest(issue.title, issue.body)
    closed = "archived" if remark.closed_to_us == "archived" else "locked" if issue.locked else None
    return await remarks.handle(replace(tick, thread_sha256=digest, closed_to_us=closed), desk)
