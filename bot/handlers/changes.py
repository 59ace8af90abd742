"""Changes that GitHub reports: to threads, to what people may see, to where the App is installed."""

from __future__ import annotations

import logging

from bot.events.accounts import AccessChanged, AccountRepositoryPushed, InstallationChanged
from bot.events.threads import ThreadChanged
from bot.handlers import dashboards, turns
from bot.handlers.desk import Desk, Handled, acted, ignored
from bot.models import TurnState
from bot.store import accounts, audit, deliveries, environments, outside_services, posts, repos, sessions, snapshots
from bot.store.repos import InstallationRow, InstallationState
from bot.store.sessions import Turn
from bot.words import endings

log = logging.getLogger(__name__)

_WHY = {
    "locked": endings.LOCKED,
    "transferred": endings.TRANSFERRED,
    "deleted": endings.DELETED,
    "closed": endings.CLOSED,
}
_GONE = ("transferred", "deleted")


async def of_thread(event: ThreadChanged, desk: Desk) -> Handled:
    """Stop what runs on a thread that was locked, moved, deleted or closed, and keep its work."""
    await dashboards.gone(event, desk)
    await dashboards.merged(event, desk)
    latest = await sessions.latest(desk.store, event.thread)
    if latest is None or latest.state is TurnState.DONE or not await _concerns(event, latest, desk):
        return ignored(f"nothing ran that the thread being {event.change} would end")
    for turn in await sessions.turns_of(desk.store, latest.key.session):
        await _move_comment(event, turn, desk)
    await turns.stop_all(latest.key.session, _WHY[event.change], desk)
    return acted(latest.key.session)


async def of_account(event: AccessChanged | InstallationChanged | AccountRepositoryPushed, desk: Desk) -> Handled:
    if isinstance(event, AccessChanged):
        return await _of_access(event, desk)
    await accounts.doubt_own_repository(desk.store, event.installation)
    if isinstance(event, AccountRepositoryPushed):
        return acted(reason="the defaults of the account are read again")
    return await _of_installation(event, desk)


async def look(desk: Desk) -> None:
    """Read GitHub's list at the start, because a delivery may have been lost. A missing account keeps its keys, because
    the App id may be mistyped."""
    at = desk.clock()
    listed = await desk.github.installations()
    for one in listed:
        state = InstallationState.SUSPENDED if one.is_suspended else InstallationState.ACTIVE
        row = InstallationRow(one.id, one.account.login, one.account.id, state, at)
        await repos.upsert_installation(desk.store, row)
    ids = {one.id for one in listed}
    for known in await repos.installations(desk.store):
        if known.id not in ids and known.state is not InstallationState.DELETED:
            log.warning(
                "the App is no longer installed on an account that is known; `forgehand keys remove` forgets its keys",
                extra={"account": known.account, "installation": known.id},
            )


async def _of_access(event: AccessChanged, desk: Desk) -> Handled:
    """End the visit of a person who leaves the organisation; after losing one repository they may see the rest."""
    if event.leaves and await accounts.end_visits_of(desk.store, event.person.id):
        why = f"{event.origin.name} {event.origin.action}"
        await audit.add(desk.store, event.origin.sender.login, "visit ended", event.person.login, why)
    desk.doubt(event.person.id)
    return acted()


async def _of_installation(event: InstallationChanged, desk: Desk) -> Handled:
    """Follow the App's installation: update rows, end turns out of reach, forget secrets."""
    row = InstallationRow(
        id=event.installation,
        account=event.account.login,
        account_id=event.account.id,
        state=InstallationState(event.state),
        updated_at=desk.clock(),
    )
    await repos.upsert_installation(desk.store, row)
    await _follow_repositories(event, row, desk)
    await _end_what_is_out_of_reach(event, row, desk)
    if row.state is not InstallationState.ACTIVE or event.removed:
        desk.doubt(None)
    await audit.add(desk.store, event.origin.sender.login, f"{event.origin.name} {event.origin.action}", row.account)
    if row.state is InstallationState.ACTIVE:
        await desk.board.say_unsaid()
    return acted()


async def _move_comment(event: ThreadChanged, turn: Turn, desk: Desk) -> None:
    """Follow the live comment that moved with its thread, or note that it is gone."""
    if event.moved_to is not None and turn.state is not TurnState.DONE:
        await posts.moved(desk.store, turn.key, event.moved_to)
        desk.board.moved(turn.key)
    elif event.change in _GONE:
        await posts.without_place(desk.store, turn.key)


async def _concerns(event: ThreadChanged, turn: Turn, desk: Desk) -> bool:
    """Tell whether the change ends the turn. A pull request closed before its request does not: it makes a new one."""
    if event.change != "closed":
        return turn.number == event.thread.number
    session = await sessions.session(desk.store, turn.key.session)
    if event.thread.number not in (turn.number, session.pull_number):
        return False
    asked_at = turn.asked_at or turn.created_at
    if event.at != asked_at:
        return event.at > asked_at
    # GitHub's times are whole seconds and threads run side by side: within one second, our own order decides.
    delivery = await deliveries.get(desk.store, event.origin.delivery)
    return delivery is None or delivery.received_at >= turn.created_at


async def _follow_repositories(event: InstallationChanged, row: InstallationRow, desk: Desk) -> None:
    if row.state is InstallationState.DELETED:
        await accounts.remove_credentials_of(desk.store, row.id)
        await accounts.forget_settings(desk.store, row.id)
        await outside_services.forget_of(desk.store, row.id)
        await snapshots.condemn_of_installation(desk.store, row.id)
        await repos.mark_all_removed(desk.store, row.id)
        return
    await repos.mark_returned(desk.store, [repo.id for repo in event.added], row.id)
    await repos.mark_removed(desk.store, [repo.id for repo in event.removed])
    for repo in event.removed:
        await snapshots.condemn_of_repo(desk.store, repo.id)


async def _end_what_is_out_of_reach(event: InstallationChanged, row: InstallationRow, desk: Desk) -> None:
    """Stop turns where the App was removed, because their owner no longer wants to pay for them."""
    removed = {repo.id for repo in event.removed}
    why = endings.SUSPENDED if row.state is InstallationState.SUSPENDED else endings.REMOVED
    for turn in [*await sessions.queued(desk.store), *await sessions.running(desk.store)]:
        if turn.installation_id == row.id and (row.state is not InstallationState.ACTIVE or turn.repo_id in removed):
            await turns.stop_all(turn.key.session, why, desk)
    if row.state is not InstallationState.ACTIVE or removed:
        lost = frozenset(removed) if row.state is InstallationState.ACTIVE else None
        await environments.give_up_kept_of(desk.store, row.id, lost)
        desk.sweep()
