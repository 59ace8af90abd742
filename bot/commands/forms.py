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
    Form("", "fix this …", "any free text is work: it ends in a pull request, or continues the one it has"),
    Form("ask", "ask …", "answers a question and changes nothing"),
    Form("plan", "plan …", "writes a plan, changes nothing, and waits for `approve`"),
    Form("review", "review …", "reviews the pull request: comments on lines, suggestions, a verdict"),
    Form("resolve", "resolve", "merges the base branch in and solves the conflicts"),
    Form("continue", "continue +3 …", "goes on where the last turn ended, here with 3 dollars more"),
    Form("retry", "retry", "runs the last turn again"),
    Form("stop", "stop", "stops the turn that runs and keeps its work"),
    Form(
        "fix ci",
        "fix ci",
        "mends the checks of the pull request that are red by what it changes, in three attempts at most; "
        "words on what to try may stand on the lines below",
    ),
    Form("stop ci", "stop ci", "leaves the checks of the pull request alone, until the next `fix ci`"),
    Form("status", "status", "says what runs, what waits in line, and what waits for a yes"),
    Form(
        "approve",
        "approve",
        "says yes to the plan or question that waits; an edited plan may stand on the lines below, and an id, `once` "
        "or `session` on the line itself; with a commit of a fork: it may become a branch here",
    ),
    Form(
        "deny",
        "deny",
        "says no to the plan or question that waits; words on the lines below are for the agent that waits",
    ),
    Form("undo", "undo", "takes the last push back by a new commit"),
    Form("why", "why", "says why something was ignored or refused"),
    Form("cost", "cost", "says what this thread has cost"),
    Form("init", "init", "proposes a starter for `.github/forgehand.yml` as a pull request"),
    Form("help", "help", "shows this list"),
)
