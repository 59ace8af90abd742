"""The App was installed, suspended, removed or given other repositories: rows kept true."""

from __future__ import annotations

from bot.events import InstallationChanged
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.store import threads
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
    return acted()
