"""`forgehand config try`: what a config's triggers would have started lately, from the ledger alone.

The ledger keeps which events came on which thread, and drops their content. So a line counts what could have started
something at most, and says what decides besides."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli import console
from bot.cli.asked import read_store
from bot.cli.table import Column, print_table
from bot.repo_config import RepoConfig, layers
from bot.repo_config.layers import LayeredConfig

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.foretelling import PastEvents

LEAST_TURNS = 3
"""With fewer turns of a kind in the repository, those of all repositories count."""
NO_CI = "`ci_fix`: whether checks fail is not kept, so nobody can say. It starts up to three turns for each red push."
UNSEEN = "Each number is the most. The ledger keeps no labels, reviewers, drafts or permissions, and these decide, too."


@dataclass(frozen=True)
class _Kind:
    """A trigger as the ledger sees it."""

    trigger: str
    kind: str
    events: tuple[tuple[str, str], ...]
    decides: str
    by_thread: bool = True
    """It starts one turn on a thread, however many events there are."""


@dataclass(frozen=True)
class Foretold:
    trigger: str
    kind: str
    at_most: int
    each_usd: float | None
    """The median; None: no such turn has ended yet."""
    at_most_usd: float | None
    decides: str


def wanted(config: RepoConfig) -> list[_Kind]:
    on, found = config.triggers, []
    labelled = (("issues", "labeled"), ("pull_request", "labeled"))
    if on.label:
        found.append(_Kind(f"label: {on.label}", "run", labelled, "which label it was"))
    if on.issue_opened:
        found.append(_Kind("issue_opened", "run", (("issues", "opened"),), "whether the author may write"))
    if on.review_label:
        found.append(_Kind(f"review_label: {on.review_label}", "review", labelled[1:], "which label it was"))
    if who := on.review_team or on.review_user:
        asked = (("pull_request", "review_requested"),)
        found.append(_Kind(f"review by {who}", "review", asked, "who was asked for the review"))
    if on.review_opened:
        opened = (("pull_request", "opened"), ("pull_request", "ready_for_review"))
        found.append(_Kind("review_opened", "review", opened, "whether it was a draft, and who opened it"))
    if on.review_pushed:
        pushed = (("pull_request", "synchronize"),)
        found.append(_Kind("review_pushed", "review", pushed, "whether it had a review; bursts count once", False))
    return found


def foretold(config: RepoConfig, events: Iterable[PastEvents], costs: dict[str, float]) -> list[Foretold]:
    came = {(one.event, one.action): one for one in events}
    rows = []
    for one in wanted(config):
        seen = [came[name] for name in one.events if name in came]
        most = sum(past.threads if one.by_thread else past.count for past in seen)
        each = costs.get(one.kind)
        rows.append(Foretold(one.trigger, one.kind, most, each, None if each is None else each * most, one.decides))
    return rows


COLUMNS = (
    Column("TRIGGER", lambda row: row.trigger),
    Column("KIND", lambda row: row.kind),
    Column("AT MOST", lambda row: str(row.at_most), right=True),
    Column("USD EACH", lambda row: "unknown" if row.each_usd is None else f"{row.each_usd:.2f}", right=True),
    Column("USD AT MOST", lambda row: "unknown" if row.at_most_usd is None else f"{row.at_most_usd:.2f}", right=True),
    Column("DECIDES BESIDES", lambda row: row.decides),
)


def show(file: Path | None, text: bytes, repo: str, days: int, *, as_json: bool) -> None:
    """`text` has been checked."""
    since = time.time() - days * 86_400
    events, costs, known = read_store(file, lambda store: _past(store, repo, since))
    if known is None:
        console.fail(f"The ledger has nothing of {repo}: is the App installed there, and is the name right?")
    shared = read_store(file, lambda store: _defaults(store, repo))
    parsed = shared.under(layers.of_file(text, "FILE")).config
    rows = foretold(parsed, events, costs)
    total = sum(row.at_most_usd or 0.0 for row in rows)
    days_known = f" The ledger begins only {console.when(known)}." if known > since else ""
    notes = ["The defaults of the account's `.github` are below FILE."] * bool(shared.origins)
    notes += [f"At most ${total:.2f} in the last {days} days.{days_known} {UNSEEN}"]
    notes += [NO_CI] if parsed.triggers.ci_fix else []
    print_table(rows, COLUMNS, as_json=as_json, end="\n".join(notes))


async def _defaults(store: Store, repo: str) -> LayeredConfig:
    from bot import account_settings
    from bot.cli.vault_access import installation_of
    from bot.store import accounts

    owner = repo.partition("/")[0]
    shared = await accounts.own_repository(store, (await installation_of(store, owner))[0])
    return account_settings.defaults({}, shared.config if shared else None, owner)


async def _past(store: Store, repo: str, since: float) -> tuple[list[PastEvents], dict[str, float], float | None]:
    from bot.store import foretelling

    own, all_of_them = await foretelling.costs(store, repo), await foretelling.costs(store)
    medians = {
        kind: statistics.median(own[kind] if len(own.get(kind, ())) >= LEAST_TURNS else costs)
        for kind, costs in all_of_them.items()
    }
    return await foretelling.events(store, repo, since), medians, await foretelling.known_since(store, repo)
