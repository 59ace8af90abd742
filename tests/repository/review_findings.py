"""What reviews found, by number: each finding is kept closed by at least one test that carries it.

A test carries a finding by `@pytest.mark.review("security-1")`; `pytest -m review` runs all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

FINDINGS: Mapping[str, str] = {
    "security-1": "a stranger's comment that takes minutes to parse",
    "security-2": "dollars spent behind hidden thinking",
    "security-3": "sessions pull in a clone whose git config runs programs",
    "security-4": "execute on a folder whose .git points elsewhere",
    "security-5": "one sandbox that stalls everybody through the gateway's JSON",
    "security-6": "a small bundle of nested trees that fills the host's memory",
    "security-7": "lines of the agent's that make the boxes of the live comment dead",
    "security-8": "content blocks in dicts that the gateway does not look into",
    "security-9": "a tab that brings inert words back to life in a quote",
    "security-10": "an allowed host whose connection names another one in TLS",
    "security-11": "absurd numbers in the config, unpinned builds, a loopback proxy at /metrics",
    "suspected-1": "millions of small files hide what fills the disk",
    "suspected-2": "a request abandoned before it begins counts too little",
    "suspected-3": "task boxes written with character references",
    "suspected-4": "a branch that becomes protected while its work waits",
    "suspected-5": "another App that ticks boxes with a user's token",
    "suspected-6": "the egress socket of another sandbox",
    "suspected-7": "betas of the API whose costs nobody meters",
    "beside-1": "the live comment edited to the text that it has",
    "beside-2": "a raise of the budget that the audit does not show",
    "e2b-1": "the agent becomes root by a folder that everybody may write",
    "e2b-2": "a failed pause that serves an older disk",
    "e2b-3": "a lost node that is said to run",
    "e2b-4": "409 and 400 that mean wait, paused or unresponsive",
    "e2b-5": "an open name server beside any allowed name",
    "e2b-6": "a gateway on a port that no name filter knows",
    "e2b-7": "a snapshot in use that cannot be deleted",
    "e2b-8": "sandboxes in neither list, tokens passed inside, metrics without a start, a 401 that is no bad key",
}
