"""The end of `forgehand execute`: the outcome, the changes, where the work is, and how to go on."""

from __future__ import annotations

from dataclasses import dataclass

from bot.cli import narration
from bot.live.sections import duration
from bot.models import Outcome
from bot.workbench.job import DONE, Report, WorkbenchJob
from sandbox.agents.base import one_line

MOST_FILES = 30
HEADLINES = {
    DONE: "✓ Done",
    Outcome.NO_CHANGE: "✓ Nothing was changed",
    Outcome.STOPPED: "■ Stopped",
    Outcome.OVER_BUDGET: "✗ The budget is used up",
    Outcome.TIMED_OUT: "✗ Out of time",
    Outcome.KILLED: "✗ The run was cut off",
    Outcome.FAILED: "✗ Failed",
    Outcome.REFUSED: "✗ Held back",
}


@dataclass(frozen=True)
class Summary:
    headline: str
    parts: tuple[str, ...]


def text(job: WorkbenchJob, report: Report, *, with_result: bool) -> Summary:
    spent = f"{duration(report.seconds)} · {narration.money(report.cost, job.budget_usd)}"
    files = report.landed.files
    rows = [f"  {one_line(str(file['path']))}  {_delta(file)}" for file in files[:MOST_FILES]]
    if len(files) > MOST_FILES:
        rows.append(f"  … and {len(files) - MOST_FILES} more")
    parts = [
        report.result.strip() if with_result else "",
        report.detail,
        "\n".join(rows),
        f"Branch: {report.landed.branch}" if report.landed.branch else "",
        "\n".join(report.landed.advice),
    ]
    return Summary(f"{HEADLINES[report.outcome]} · {spent}", tuple(part for part in parts if part))


def colour(report: Report) -> str:
    if report.exit_code == 0:
        return "green"
    return "yellow" if report.outcome == Outcome.STOPPED else "red"


def _delta(file: dict[str, object]) -> str:
    return "(binary)" if file["added"] is None else f"+{file['added']} −{file['removed']}"
