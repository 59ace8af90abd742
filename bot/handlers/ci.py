"""The checks of a pull request: `fix ci`, `stop ci`, and a check that has ended; `ci_rounds` sees to the rest."""

from __future__ import annotations

from dataclasses import replace

from bot.commands.kinds import FixCi, Run
from bot.commands.options import NO_OPTIONS
from bot.events.checks import CheckEnded
from bot.events.remarks import Remark
from bot.handlers import pulls, start, stop
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted, acted, ignored, refused
from bot.kinds import TRAITS
from bot.models import TurnState
from bot.store import ci, sessions
from bot.store.ci import Asked
from bot.words import endings, on_ci, on_forks, replies


async def ended(event: CheckEnded, desk: Desk) -> Noted:
    """GitHub is not asked here: a commit may have hundreds of checks, and they end in bursts."""
    if event.app_id == (await desk.github.identity()).app_id:
        return ignored("it is a check run of our own")
    if await ci.heard_again(desk.store, event.repo.id, event.sha):
        return ignored("noted: the checks of this commit are looked at once they have settled")
    ours = await ci.ours(desk.store, event.repo.id, event.sha)
    kind = TRAITS[ours.kind] if ours else None
    if ours is None or kind is None or not kind.checks_followed or ours.newest != event.sha:
        return ignored("it is the check of a commit that we did not push, or not last")
    if not await ci.heard(desk.store, event.repo.id, ours.pull_number, event.sha, fresh=not kind.mends_checks):
        return ignored("somebody has switched CI fixes off on this pull request (`stop ci`)")
    return ignored("noted: the checks of this commit are looked at once they have settled")


async def asked(command: FixCi, remark: Remark, desk: Desk) -> Noted:
    """On an issue without a pull request these are words like any other: whatever they mean, it is work."""
    number = await pulls.meant(remark, desk)
    if number is None:
        return await start.handle(Run(f"fix ci\n{command.prompt}".strip(), command.options), remark, desk)
    if remark.closed_to_us:
        return refused(start.closed(remark.closed_to_us))
    thread = replace(remark.thread, number=number, is_pull=True)
    pull = await desk.github.installation(thread.installation).pull(thread.repo, number)
    if pull.state != "open":
        return await desk.refuse(remark, endings.pull_closed(number))
    if pull.head_repo_id != thread.repo.id:
        return await desk.refuse(remark, on_forks.no_ci(desk.settings.command))
    latest = await sessions.latest(desk.store, thread)
    if latest is not None and TRAITS[latest.asked_as].mends_checks and latest.state is not TurnState.DONE:
        return await _beside(command, remark, desk)
    await ci.ask(desk.store, thread, pull.head_sha, _wish(command, remark, number))
    await desk.react(remark, "eyes")
    return acted(latest.key.session if latest else None, "the checks of the head are looked at")


async def _beside(command: FixCi, remark: Remark, desk: Desk) -> Noted:
    """While they are being mended: what somebody says with it is passed on, and not lost."""
    noted = None
    if command.prompt and command.options == NO_OPTIONS:
        noted = await start.steer(Wish("fix_ci", command.prompt, NO_OPTIONS), remark, desk)
    return noted or await desk.refuse(remark, on_ci.under_way(desk.settings.command))


async def stopped(remark: Remark, desk: Desk) -> Noted:
    """Also what is being done about them now; whatever else the session does goes on."""
    number = await pulls.meant(remark, desk)
    if number is None:
        return await desk.refuse(remark, replies.needs_a_pull("stop ci", desk.settings.command))
    thread = replace(remark.thread, number=number, is_pull=True)
    await ci.switch_off(desk.store, thread, remark.author.login)
    latest = await sessions.latest(desk.store, thread)
    if latest is not None:
        await stop.stop_all(latest.key.session, remark.author.login, desk, only_fixes=True)
    await desk.reply(remark, on_ci.stopped(desk.settings.command))
    return acted(latest.key.session if latest else None)


def _wish(command: FixCi, remark: Remark, number: int) -> Asked:
    on_pull = remark.thread.number == number
    return Asked(
        login=remark.author.login,
        id=remark.author.id,
        source=remark.source,
        words=command.prompt,
        at=remark.created_at,
        comment_id=remark.react_to if remark.place is None and on_pull else None,
        thread_sha256=remark.thread_sha256 if on_pull else "",
        options=command.options,
    )
