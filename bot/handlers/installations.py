"""The App was installed, suspended, removed or given other repositories: rows true, runs ended, secrets gone."""

from __future__ import annotations

import logging

from bot.events.accounts import InstallationChanged
from bot.handlers import stop
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.store import audit, choices, credentials, environments, repos, sessions, snapshots, threads
from bot.store.threads import InstallationRow, InstallationState
from bot.words import endings

log = logging.getLogger(__name__)


async def handle(event: InstallationChanged, desk: Desk) -> Noted:
    row = InstallationRow(
        id=event.installation,
        account=event.account.login,
        account_id=event.account.id,
        state=InstallationState(event.state),
        updated_at=desk.clock(),
    )
    await threads.upsert_installation(desk.store, row)
    await _follow_repositories(event, row, desk)
    await _end_what_is_out_of_reach(event, row, desk)
    if row.state is not InstallationState.ACTIVE or event.removed:
        desk.doubt(None)
    await audit.add(desk.store, event.origin.sender.login, f"{event.origin.name} {event.origin.action}", row.account)
    if row.state is InstallationState.ACTIVE:
        await desk.board.say_unsaid()
    return acted()


async def look(desk: Desk) -> None:
    """At the start: GitHub's own list, since its word of a change may have been lost. Who is not in it keeps his keys:
    an App's id that was mistyped must not cost them."""
    at = desk.clock()
    listed = await desk.github.installations()
    for one in listed:
        state = InstallationState.SUSPENDED if one.is_suspended else InstallationState.ACTIVE
        row = InstallationRow(one.id, one.account.login, one.account.id, state, at)
        await threads.upsert_installation(desk.store, row)
    ids = {one.id for one in listed}
    for known in await threads.installations(desk.store):
        if known.id not in ids and known.state is not InstallationState.DELETED:
            log.warning(
                "the App is no longer installed on an account that is known; `forgehand keys remove` forgets its keys",
                extra={"account": known.account, "installation": known.id},
            )


async def _follow_repositories(event: InstallationChanged, row: InstallationRow, desk: Desk) -> None:
    if row.state is InstallationState.DELETED:
        await credentials.remove_of(desk.store, row.id)
        await choices.forget(desk.store, row.id)
        await snapshots.condemn_of_installation(desk.store, row.id)
        await repos.removed_all(desk.store, row.id)
        return
    await repos.back(desk.store, [repo.id for repo in event.added], row.id)
    await repos.removed(desk.store, [repo.id for repo in event.removed])
    for repo in event.removed:
        await snapshots.condemn_of_repo(desk.store, repo.id)


async def _end_what_is_out_of_reach(event: InstallationChanged, row: InstallationRow, desk: Desk) -> None:
    """Whoever takes the App away does not want it to go on, nor to pay for it."""
    removed = {repo.id for repo in event.removed}
    why = endings.SUSPENDED if row.state is InstallationState.SUSPENDED else endings.REMOVED
    for turn in [*await sessions.queued(desk.store), *await sessions.running(desk.store)]:
        if turn.installation_id == row.id and (row.state is not InstallationState.ACTIVE or turn.repo_id in removed):
            await stop.stop_all(turn.key.session, why, desk)
    if row.state is not InstallationState.ACTIVE or removed:
        lost = frozenset(removed) if row.state is InstallationState.ACTIVE else None
        await environments.give_up_kept_of(desk.store, row.id, lost)
        desk.sweep()
