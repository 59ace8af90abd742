"""`dashboard`: one issue that shows what Forgehand does in the repository."""

from __future__ import annotations

from bot.commands import Command
from bot.dashboard import board, page
from bot.dashboard.picture import Gathering
from bot.errors import GitHubRefused
from bot.events.threads import Remark
from bot.handlers.desk import Desk, Feature, Handled, acted, refused
from bot.notices import Topic
from bot.outbound import TextKind
from bot.store import dashboards
from bot.store.dashboards import DashboardState
from bot.words import on_dashboards


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    repo, store = remark.thread.repo, desk.store
    before = await dashboards.get(store, repo.id)
    await desk.config_of(remark.thread)  # notes whether the config wants it too, for the day its issue is deleted
    await dashboards.switch_on(store, repo, remark.thread.installation, remark.author.login)
    dashboard = await dashboards.get(store, repo.id)
    assert dashboard is not None
    gathering = Gathering(store, desk.settings.limits, desk.settings.command, desk.clock)
    try:
        number = dashboard.number or await board.make(desk.outbound, dashboard, gathering)
        if before is not None and before.state is DashboardState.OFF and before.number is not None:
            thread = dashboard.thread
            await desk.outbound.edit_issue(thread, page.off(dashboard), page.marker(dashboard), reopen=True)
    except GitHubRefused as error:
        await dashboards.moved(store, repo.id)
        await desk.reply(remark, on_dashboards.cannot_be(desk.outbound.text(TextKind.TITLE, error.message)))
        return refused("GitHub did not let us open an issue")
    desk.notices.tell(Topic.DASHBOARD, repo.id, 1)
    await desk.answer(remark, "dashboard", on_dashboards.is_on(number))
    return acted(reason=f"the dashboard is #{number}")


FEATURE = Feature(
    "dashboard",
    "dashboard",
    "keeps one issue with what runs and waits in the repository, the open pull requests, and boxes to tick",
    polite=True,
    handle=handle,
)
