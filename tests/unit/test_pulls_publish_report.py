"""What a pull request points out of its change: short, harmless as markdown, and nothing for a plain change."""

from __future__ import annotations

import pytest

from bot.git.inspection import Change
from bot.proposal.push_policy import look_closely

SHA = "1" * 40


def change(path: str, old: str = "100644", new: str = "100644", status: str = "M", **more: object) -> Change:
    return Change(path, status, old, new, SHA, **more)  # type: ignore[arg-type]


def test_a_plain_change_is_not_worth_a_word() -> None:
    assert look_closely([change("a.py", added=20, removed=3, size=900)], sensitive=["*.tf"]) == ()


@pytest.mark.acceptance("E07")
@pytest.mark.parametrize(
    ("one", "line"),
    [
        (change("infra/main.tf"), "**Sensitive** (`push.sensitive` names `*.tf`): `infra/main.tf`"),
        (change("web/Package-Lock.json"), "**Lock files**: `web/Package-Lock.json`"),
        (change("logo.png", binary=True), "**Binary files**: `logo.png`"),
        (change("run.sh", new="100755"), "**Became executable**: `run.sh`"),
        (change("new.sh", old="000000", new="100755", status="A"), "**Became executable**: `new.sh`"),
        (change("run.sh", old="100755"), "**No longer executable**: `run.sh`"),
        (change("x", old="000000", new="120000", status="A"), "**Links**: `x`"),
        (change("lib", old="160000", new="000000", status="D"), "**Submodules removed**: `lib`"),
        (change("big.csv", size=3 << 20), "**Large**: 1 file, +0 −0 lines; the biggest is `big.csv` (3.0 MiB)"),
        (change(".github/workflows/ci.yml"), "**Workflow files**: `.github/workflows/ci.yml`"),
    ],
)
def test_what_stands_out(one: Change, line: str) -> None:
    assert look_closely([one], sensitive=["*.tf"]) == (line,)


def test_who_let_workflows_go_is_named_and_long_lists_are_cut() -> None:
    assert look_closely([change(".github/workflows/a.yml")], let_go_by="bob") == (
        "**Workflow files**: `.github/workflows/a.yml`; `bob` approved exactly this commit",
    )
    [row] = look_closely([change(f"{n}.png", binary=True) for n in range(9)])
    assert row.endswith("`4.png` and 4 more")
    [row] = look_closely([change("a`@org\n# x.png", binary=True)])
    assert "\n" not in row and "`a" in row and row.count("`") == 2
