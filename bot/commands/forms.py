"""Knows how people read of the commands: the one list behind `help`, the guess at misspelt words and the README."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """One command as people read of it."""

    word: str
    usage: str
    what: str


FORMS = (
    Form("", "fix this …", "does the work and opens a pull request, or continues the one that is there"),
    Form("ask", "ask …", "answers a question and changes nothing"),
    Form("plan", "plan …", "writes a plan, changes nothing, and waits for `approve`"),
    Form("review", "review …", "reviews the pull request: comments on lines, suggestions, a verdict"),
    Form("resolve", "resolve", "merges the base branch and resolves the conflicts"),
    Form("continue", "continue +3 …", "continues where the last turn ended, here with 3 dollars more to spend"),
    Form("retry", "retry", "runs the last turn again"),
    Form("stop", "stop", "stops what is running or queued here and keeps its work"),
    Form(
        "fix ci",
        "fix ci",
        "fixes the checks that fail because of what the pull request changes, in up to three attempts; "
        "hints on what to try may stand on the lines below",
    ),
    Form("stop ci", "stop ci", "leaves the checks of the pull request alone, until the next `fix ci`"),
    Form("status", "status", "says what is running, what is queued, and what waits for an answer"),
    Form(
        "approve",
        "approve",
        "says yes to the plan or question that is waiting; its id, `once` or `session` may follow on the same line, an "
        "edited plan on the lines below; with a commit of a fork, makes that a branch here",
    ),
    Form(
        "deny",
        "deny",
        "says no to the plan or question that is waiting; words on the lines below go to the agent that waits",
    ),
    Form("undo", "undo", "reverts the last push with a new commit"),
    Form("why", "why", "says why something was ignored or refused"),
    Form("cost", "cost", "says what this thread has cost"),
    Form("init", "init", "proposes a starter for `.github/forgehand.yml` as a pull request"),
    Form("help", "help", "shows this list"),
)
