"""The files that GitHub reads of this repository: workflows, templates, the bot that updates dependencies."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/ci.yml"
ZIZMOR = shutil.which("zizmor", path=str(Path(sys.executable).parent))


def audit(folder: Path) -> subprocess.CompletedProcess[str]:
    assert ZIZMOR is not None, "zizmor is in the dev extra"
    command = (ZIZMOR, "--offline", "--no-progress", "--persona", "pedantic", str(folder))
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_workflows_pass_the_audit() -> None:
    found = audit(ROOT / ".github")
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r"@[0-9a-f]{40} # v\S+", "@v6"),
        (r"permissions: \{\}", "permissions: write-all"),
        (r"run: bash .ci/run", "run: bash .ci/run ${{ github.event.pull_request.title }}"),
    ],
)
def test_the_audit_sees_what_must_not_stand_there(tmp_path: Path, right: str, wrong: str) -> None:
    changed, count = re.subn(right, wrong, WORKFLOW.read_text(encoding="utf-8"))
    assert count
    (tmp_path / ".github/workflows").mkdir(parents=True)
    (tmp_path / ".github/workflows/ci.yml").write_text(changed, encoding="utf-8")
    assert audit(tmp_path / ".github").returncode != 0


def test_ci_runs_what_a_contributor_runs() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    [job] = jobs.values()
    assert job["steps"][-1] == {"run": "bash .ci/run"}
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "README.md" in script and "<!-- tests -->" in script and "<!-- tests -->" in readme


@pytest.mark.parametrize("file", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda file: file.name)
def test_each_file_is_yaml(file: Path) -> None:
    assert yaml.safe_load(file.read_text(encoding="utf-8"))
