"""The App was installed, suspended, removed or given other repositories: rows true, runs ended, secrets gone."""

from __future__ import annotations

from bot import endings
from bot.events import InstallationChanged
from bot.handlers import stop
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.store import credentials, sessions, snapshots, threads
from bot.store.threads import InstallationRow, InstallationState


async def handle(event: InstallationChanged, desk: Desk) -> Noted:
    row = InstallationRow(
        id=event.installation,
        account=event.account.login,
        account_id=event.account.id,
        state=InstallationState(event.state),
        updated_at=desk.clock(),
    )
    await threads.upsert_installation(desk.store, row)
    if row.state is InstallationState.DELETED:
        await credentials.remove_of(desk.store, row.id)
        await snapshots.condemn_of_installation(desk.store, row.id)
    for repo in event.removed:
        await snapshots.condemn_of_repo(desk.store, repo.id)
    await _end_what_is_out_of_reach(event, row, desk)
    if row.state is InstallationState.ACTIVE:
        await desk.board.say_unsaid()
    return acted()


async def _end_what_is_out_of_reach(event: InstallationChanged, row: InstallationRow, desk: Desk) -> None:
    """Whoever takes the App away does not want it to go on, nor to pay for it."""
    removed = {repo.id for repo in event.removed}
    why = endings.SUSPENDED if row.state is InstallationState.SUSPENDED else endings.REMOVED
    for turn in [*await sessions.queued(desk.store), *await sessions.running(desk.store)]:
        if turn.installation_id == row.id and (row.state is not InstallationState.ACTIVE or turn.repo_id in removed):
            await stop.stop_all(turn.key.session, why, desk)
