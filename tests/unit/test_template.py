"""The image for E2B: what it pins and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2b import Template

from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentSpec
from sandbox.template import CLAUDE_CODE, LATEST, build, definition
from tests.world.e2b import e2b_world
from tests.world.environments import small_agent


def test_the_agent_is_pinned_and_ways_to_root_are_shut() -> None:
    lines = Template.to_dockerfile(definition()).splitlines()
    assert lines[0].startswith("FROM node:")
    assert f"RUN npm install -g @anthropic-ai/claude-code@{CLAUDE_CODE}" in lines
    assert any("git ripgrep python3" in line for line in lines)
    assert any("chmod 0700 /usr/bin/sudo" in line for line in lines)
    assert lines[-2:] == ["USER user", "WORKDIR /work"]


async def test_it_is_built_over_the_wire_and_then_sandboxes_start_from_it(tmp_path: Path) -> None:
    agent = small_agent(tmp_path)
    async with e2b_world(tmp_path, agent) as world:
        world.e2b.registry.templates = {"base"}
        said: list[str] = []
        built = await build(world.settings, on_log=said.append)
        [asked] = world.e2b.templates.builds
        assert (built.name, asked.name, asked.cpus, asked.memory_mb) == ("forgehand", "forgehand", 2, 4096)
        steps = [" ".join(step["args"]) for step in asked.recipe["steps"]]
        assert asked.recipe["fromImage"].startswith("node:")
        assert f"npm install -g @anthropic-ai/claude-code@{CLAUDE_CODE} root" in steps
        assert steps[-2:] == ["user", "/work"]
        assert any("builder 1/" in line for line in said)
        await world.provider().create("one", EnvironmentSpec(labels={}, public_repository=True))


async def test_the_newest_is_never_taken_from_an_earlier_build(tmp_path: Path) -> None:
    async with e2b_world(tmp_path, small_agent(tmp_path)) as world:
        await build(world.settings, claude=LATEST)
        [asked] = world.e2b.templates.builds
    [install] = [one for one in asked.recipe["steps"] if "@anthropic-ai/claude-code@latest" in " ".join(one["args"])]
    assert install["force"] is True


async def test_a_build_that_fails_says_why(tmp_path: Path) -> None:
    async with e2b_world(tmp_path, small_agent(tmp_path)) as world:
        world.e2b.templates.fails_at = 2
        with pytest.raises(SandboxError, match=r"building the template 'forgehand'.*exit status 1"):
            await build(world.settings)


@pytest.mark.parametrize("version", ["2.1.0", "newest", "2.1", "2.1.326; rm -rf /"])
def test_old_and_odd_versions_are_refused(version: str) -> None:
    with pytest.raises(SandboxError):
        definition(version)
