"""Renders the text of a dashboard: pure, bounded, and the same until something changes."""

from __future__ import annotations

from bot.agent import prompt
from bot.dashboard import picture as offers
from bot.dashboard.picture import MOST, DashboardPicture, ThreadBox
from bot.dashboard.pulls import OwnPull
from bot.kinds import TRAITS
from bot.live import questions, sections
from bot.models import Outcome
from bot.outbound import neutralise
from bot.sessions.money.spending_limits import Period
from bot.store.approvals import ApprovalKind
from bot.store.dashboards import Dashboard, ShownApproval, ShownTurn
from bot.text import markup
from bot.words import endings, on_dashboards, on_money, replies

MOST_NAMES = 3
MOST_WORDS = 80
Row = tuple[str, list[ThreadBox]]


def marker(dashboard: Dashboard) -> str:
    return f"<!-- forgehand:dashboard={dashboard.repo_id} -->"


def off(dashboard: Dashboard) -> str:
    return f"{marker(dashboard)}\n{on_dashboards.is_off(by_config=dashboard.by_config)}"


def body(picture: DashboardPicture, *, money: bool = True) -> str:
    """`money`: without it, the text changes only with what happens."""
    shown: list[ThreadBox] = []
    parts = [marker(picture.dashboard), on_dashboards.about(picture.command)]
    pulls = picture.pulls
    for heading, rows, more in (
        ("✋ Waiting for a yes", [_waiting(one) for one in picture.waiting[:MOST]], len(picture.waiting) - MOST),
        ("🛠️ Running", [_running(one) for one in picture.running], picture.running_in_all - len(picture.running)),
        ("⏳ Queued", [_queued(one) for one in picture.queued], picture.queued_in_all - len(picture.queued)),
        ("🔀 Open pull requests", [_pull(one) for one in pulls.shown], pulls.more),
        ("⚠️ Worth a look", [_failed(one) for one in picture.failing[:MOST]], len(picture.failing) - MOST),
    ):
        if rows:
            parts.append(_section(heading, rows, more, picture.command))
            shown += [box for _, boxes in rows for box in boxes]
    if not shown:
        parts.append(on_dashboards.nothing())
    parts.append(_money(picture) if money else "")
    text = "\n\n".join(filter(None, parts))
    return questions.alone_box(text, [one.box for one in shown], picture.command)


def _section(heading: str, rows: list[Row], more: int, command: str) -> str:
    blocks = [f"{words}\n{questions.rendered([one.box for one in boxes], command)}" for words, boxes in rows]
    return "\n\n".join([f"### {heading}", *blocks, *[on_dashboards.and_more(more)] * (more > 0)])


def _waiting(one: ShownApproval) -> Row:
    until = "" if one.approval.kind is ApprovalKind.TOOL else f", until {_day(one.approval.expires_at)}"
    asked = f"{on_dashboards.QUESTIONS[one.approval.kind]}, since {replies.moment(one.approval.asked_at)}{until}"
    return f"{_where(one.turn)} {asked}  \n{_request(one.turn)}", offers.to_answer(one)


def _running(turn: ShownTurn) -> Row:
    since = f"since {replies.moment(turn.started_at or turn.created_at)}"
    return f"{_where(turn)} {since}  \n{_request(turn)}", offers.to_stop(turn)


def _queued(turn: ShownTurn) -> Row:
    return f"{_where(turn)} since {replies.moment(turn.created_at)}  \n{_request(turn)}", offers.to_stop(turn)


def _failed(turn: ShownTurn) -> Row:
    ended = f"{endings.headline(turn.outcome or Outcome.FAILED)}, {replies.moment(turn.finished_at or turn.created_at)}"
    return f"{_where(turn)} {ended}  \n{_request(turn)}", offers.to_retry(turn)


def _pull(pull: OwnPull) -> Row:
    draft = " · draft" if pull.draft else ""
    title = f"[#{pull.number}](../pull/{pull.number}) {sections.line(pull.title, MOST_WORDS)}{draft}"
    return f"{title}  \n{_checks(pull)}", offers.to_look_at(pull.number, failing=bool(pull.failing))


def _checks(pull: OwnPull) -> str:
    if pull.failing:
        names = ", ".join(markup.shown(one, 60) for one in pull.failing[:MOST_NAMES])
        more = f" and {len(pull.failing) - MOST_NAMES} more" if len(pull.failing) > MOST_NAMES else ""
        return f"❌ {len(pull.failing)} of {pull.passed + pull.running + len(pull.failing)} checks fail: {names}{more}"
    if pull.running:
        return f"⏳ {on_dashboards.counted(pull.running, 'check')} under way"
    return f"✅ {on_dashboards.counted(pull.passed, 'check')} passed" if pull.passed else "No checks"


def _where(turn: ShownTurn) -> str:
    """Lead to the turn's live comment. A relative address leaves no mention on the other thread."""
    comment = f"#issuecomment-{turn.comment_id}" if turn.comment_id is not None else ""
    return f"**[#{turn.number}](../{'pull' if turn.is_pull else 'issues'}/{turn.number}{comment})**"


def _request(turn: ShownTurn) -> str:
    verb = f"`{turn.kind}` " if TRAITS[turn.kind].named else ""
    words = sections.line(prompt.in_brief(turn.prompt), MOST_WORDS)
    return f"**{neutralise.line(turn.requester)}**: {f'{verb}{words}'.strip() or '(no further words)'}"


def _money(picture: DashboardPicture) -> str:
    spent = {Period.MONTH: on_money.dollars(picture.month_usd)}
    for one, ledger in picture.limits:
        spent[one.period] = f"{on_money.dollars(ledger.spent_usd)} of its ${one.usd:.2f}"
    day = f", {spent[Period.DAY]} today" if Period.DAY in spent else ""
    return f"<sub>This repository has spent {spent[Period.MONTH]} this month{day}.</sub>"


def _day(at: float) -> str:
    return replies.moment(at)[:10]
