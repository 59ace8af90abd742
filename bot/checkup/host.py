"""Checks this machine: disk, database, git, the agent's program, and whether its sandbox isolates."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bot.checkup import server
from bot.checkup.lines import CheckupFinding, bad, good, warning
from bot.errors import BotError, SettingsError
from bot.sessions.money.budget import Prices, UnknownPrice
from bot.settings import Address, ModelSettings, Settings
from bot.store import bulletins, operations
from bot.store.base import Store, place
from bot.store.bucket.faults import BucketTrouble
from bot.store.bucket.trial import try_out
from bot.store.bulletins import ReceiverStanding
from bot.store.files import KeptFiles
from sandbox.agents import claude_binary
from sandbox.choice import choose
from sandbox.e2b.settings import E2BSettings
from sandbox.errors import SandboxError

LEAST_FREE_BYTES = 2 << 30
VERSION_SECONDS = 20.0


async def examine(settings: Settings) -> list[CheckupFinding]:
    found = [*await examine_folder(settings.data_dir, settings.database), *await _files(settings)]
    found.append(await _price(settings.model))
    if settings.e2b is not None:
        return [*found, await _cloud(settings.e2b)]
    return [*found, await _agent(settings.newest_agent), await _box()]


async def examine_folder(data_dir: Path, database: Address) -> list[CheckupFinding]:
    """Run the checks that need no other setting."""
    git = await _first_line("git", "--version")
    return [
        await _disk(data_dir),
        *await _database(database),
        good("git", git) if git else bad("git", "git is not on PATH.", "Install it (on Debian: apt install git)."),
    ]


async def _disk(folder: Path) -> CheckupFinding:
    at = next(one for one in (folder, *folder.parents) if one.exists())
    free = (await asyncio.to_thread(shutil.disk_usage, at)).free
    words = f"{free / 2**30:.1f} GiB are free at {folder}."
    if not os.access(at, os.W_OK):
        return bad("disk", f"{at} is not writable.", "Run it as the service's user, or set FORGEHAND_DATA_DIR.")
    if free < LEAST_FREE_BYTES:
        return bad("disk", words, "Free some space (at least 2 GiB), or set FORGEHAND_DATA_DIR to a larger disk.")
    return good("disk", words)


async def _database(where: Address) -> list[CheckupFinding]:
    """Check the store, and report a pause: people who do not know of it would take it for a fault."""
    try:
        await asyncio.to_thread(place(where).require)
    except BotError as error:
        return [bad("database", str(error), "Then run this again.")]
    try:
        if not await asyncio.to_thread(place(where).exists):
            return [good("database", "There is none yet; the first start creates it.")]
        async with Store.reading(where) as store:
            if broken := await store.backend.check():
                return [bad("database", broken[0], "Restore a backup that was made with `forgehand db backup`.")]
            since, shared = await operations.paused_at(store), await server.examine(store)
            standings = await bulletins.standings(store)
    except BotError as error:
        return [bad("database", str(error), "Start `forgehand serve` once after an upgrade, or restore a backup.")]
    found = [good("database", f"{store.name} is sound."), *shared]
    if since is not None:
        at = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M UTC")
        fix = "`forgehand resume` starts what is waiting."
        found.append(warning("paused", f"Nothing new has started since {at}.", fix))
    return [*found, *(_receiver(one) for one in standings if one.fails)]


def _receiver(standing: ReceiverStanding) -> CheckupFinding:
    lost = f" {standing.given_up} were given up in the last three days." if standing.given_up else ""
    words = f"{standing.receiver} does not take its bulletins: {standing.waiting} wait.{lost} {standing.problem or ''}"
    whose = f" --installation {standing.installation_id}" if standing.installation_id else ""
    fix = f"Run `forgehand receivers test {standing.receiver}{whose}`, or remove the receiver."
    return warning("receiver", words.strip(), fix)


async def _files(settings: Settings) -> list[CheckupFinding]:
    """Check the home of files, if they have one beside the data directory."""
    where = settings.database
    try:
        if settings.bucket is not None:
            await try_out(settings.bucket)
        if not await asyncio.to_thread(place(where).exists):
            return []
        async with Store.reading(where) as store, KeptFiles.opened(store, settings.data_dir, settings.bucket) as files:
            if files.home is None:
                return []
            missing, words = await files.missing(), files.home.words
    except BucketTrouble as trouble:
        return [bad("files", trouble.words, trouble.fix)]
    except BotError as error:
        return [bad("files", str(error), "Fix the problem it names, then run this again.")]
    if missing:
        fix = f"`forgehand db check` lists them. Restore a backup of {words}, or go on without them."
        return [warning("files", f"{len(missing)} files are not whole in {words}.", fix)]
    return [good("files", f"They are in {words}, which takes, shows and removes them.")]


async def _agent(newest_in: Path | None) -> CheckupFinding:
    """Check the program that is here, without updating it."""
    try:
        binary = claude_binary.find()
        if newest_in is not None:
            binary = await claude_binary.present(newest_in, binary)
    except SandboxError as error:
        return bad("claude", str(error), "pip install -U 'forgehand[local]'")
    said = await _first_line(str(binary), "--version")
    if said is None or not re.search(r"\d+\.\d+\.\d+", said):
        return bad("claude", "Claude Code does not start.", "pip install --force-reinstall 'forgehand[local]'")
    return good("claude", f"Claude Code {said}.")


async def _box() -> CheckupFinding:
    """Try a real box in a separate folder, away from those of a running service."""
    with tempfile.TemporaryDirectory(prefix="forgehand-doctor-") as folder:
        try:
            choice = await choose(Path(folder))
        except SandboxError as error:
            return bad("sandbox", str(error), "See the message; sandbox/README.md says what a box needs.")
        await choice.provider.close()
    if choice.isolated:
        return good("sandbox", "Local boxes isolate: a real one tried to get out and failed.")
    return warning(
        "sandbox",
        f"There is no isolation, so Forgehand refuses public repositories: {choice.why}",
        "Install bubblewrap (on Debian: apt install bubblewrap), or set FORGEHAND_SANDBOX=e2b.",
    )


async def _cloud(e2b: E2BSettings) -> CheckupFinding:
    with tempfile.TemporaryDirectory(prefix="forgehand-doctor-") as folder:
        try:
            choice = await choose(Path(folder), e2b=e2b)
            running = len(await choice.provider.find({"app": "forgehand"}))
            await choice.provider.close()
        except SandboxError as error:
            return bad("sandbox", f"E2B: {error}", "Check E2B_API_KEY (and E2B_DOMAIN for your own deployment).")
    hours = e2b.longest_seconds / 3600
    plan = f"{e2b.sandboxes} sandboxes at once, {hours:g} h each (FORGEHAND_E2B_SANDBOXES, FORGEHAND_E2B_HOURS)"
    return good(
        "sandbox",
        f"E2B accepts the key; {running} of our sandboxes run there. Forgehand assumes that your plan allows {plan}.",
    )


async def _price(model: ModelSettings) -> CheckupFinding:
    try:
        Prices.at(model).of(model.model)
    except UnknownPrice as unknown:
        return bad(
            "model", str(unknown), "Set FORGEHAND_MODEL to a model whose price is known, or set FORGEHAND_PRICES."
        )
    except SettingsError as wrong:
        return bad("model", str(wrong), "Correct FORGEHAND_PRICES.")
    return good("model", f"The price of {model.model} is known.")


async def _first_line(*argv: str) -> str | None:
    """Run a program and return the first line of its output; None if it fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(VERSION_SECONDS):
            out, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return None
    return out.decode("utf-8", "replace").strip().partition("\n")[0] if process.returncode == 0 else None
