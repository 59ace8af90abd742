"""The image for E2B: what it pins and what it refuses."""

from __future__ import annotations

import pytest
from e2b import Template

from sandbox.errors import SandboxError
from sandbox.template import CLAUDE_CODE, definition


def test_the_agent_is_pinned_and_ways_to_root_are_shut() -> None:
    lines = Template.to_dockerfile(definition()).splitlines()
    assert lines[0].startswith("FROM node:")
    assert f"RUN npm install -g @anthropic-ai/claude-code@{CLAUDE_CODE}" in lines
    assert any("git ripgrep python3" in line for line in lines)
    assert any("chmod 0700 /usr/bin/sudo" in line for line in lines)
    assert lines[-2:] == ["USER user", "WORKDIR /work"]


@pytest.mark.parametrize("version", ["2.1.0", "latest", "2.1", "2.1.326; rm -rf /"])
def test_old_and_odd_versions_are_refused(version: str) -> None:
    with pytest.raises(SandboxError):
        definition(version)
