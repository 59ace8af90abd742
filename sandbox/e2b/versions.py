"""Checks the version of a template's agent before it gets any work."""

from __future__ import annotations

from sandbox.agents.claude_binary import version_in
from sandbox.e2b.settings import E2BSettings
from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentPrimitives

VERSION_SECONDS = 30.0


async def check_agent(environment: EnvironmentPrimitives, settings: E2BSettings) -> None:
    done = await environment.exec([settings.agent, "--version"], timeout=VERSION_SECONDS, cwd="/")
    found = version_in(done.stdout[:100].decode("ascii", "replace")) if done.stdout[:1].isdigit() else ()
    if settings.floor is not None and found < settings.floor:
        words = ".".join(map(str, found)) if found else "of an unknown version"
        least = ".".join(map(str, settings.floor))
        raise SandboxError(
            f"Claude Code in the template {settings.template!r} is {words}, and {least} is needed: "
            "`forgehand sandbox template build` makes a new one."
        )
