"""Checks the agent that a template brings, from outside and before it is given any work."""

from __future__ import annotations

import re

from sandbox.e2b.settings import E2BSettings
from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentPrimitives

VERSION_SECONDS = 30.0


async def check_agent(environment: EnvironmentPrimitives, settings: E2BSettings) -> None:
    done = await environment.exec([settings.agent, "--version"], timeout=VERSION_SECONDS, cwd="/")
    match = re.match(rb"(\d+)\.(\d+)\.(\d+)", done.stdout)
    found = tuple(int(part) for part in match.groups()) if match else ()
    if settings.floor is not None and found < settings.floor:
        words = ".".join(map(str, found)) if found else "of an unknown version"
        least = ".".join(map(str, settings.floor))
        raise SandboxError(
            f"Claude Code in the template {settings.template!r} is {words}, and {least} is needed: "
            "`forgehand sandbox template build` makes a new one."
        )
