"""Defines the image from which E2B's sandboxes start, and builds it in the operator's account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.agents.claude_binary import FLOOR
from sandbox.e2b import faults
from sandbox.e2b.settings import AGENT, E2BSettings
from sandbox.errors import SandboxError

if TYPE_CHECKING:
    from e2b.template.main import TemplateBuilder

CLAUDE_CODE = "2.1.326"
LATEST = "latest"  # in place of a version: the newest at the time of the build
NODE = "24-bookworm"
PACKAGES = ["git", "ripgrep", "python3", "ca-certificates", "curl", "procps", "build-essential"]
CPUS = 2
MEMORY_MB = 4096
SHUT = (
    "chmod 0700 /usr/bin/sudo /usr/bin/su /usr/bin/newgrp 2>/dev/null || true",
    "for unit in ssh.service ssh.socket sshd.service sshd.socket; do ln -sf /dev/null /etc/systemd/system/$unit; done",
    "chmod 0600 /usr/sbin/sshd 2>/dev/null || true",
    "passwd -l root",
)
"""E2B's build opens some ways again after us, such as /usr/local; each start closes them (`inside/hardening.py`)."""


@dataclass(frozen=True)
class Built:
    name: str
    template_id: str
    build_id: str


def definition(claude: str = CLAUDE_CODE) -> TemplateBuilder:
    """Define the image. The user `user` comes from E2B; we close its ways to root, here and again at each start."""
    from e2b import Template

    check_version(claude)
    is_latest = claude == LATEST
    base = Template().from_node_image(NODE).set_user("root").apt_install(PACKAGES, no_install_recommends=True)
    if is_latest:  # a cached layer would have the newest version of an earlier day
        base = base.skip_cache()
    return (
        base.npm_install(f"@anthropic-ai/claude-code@{claude}", g=True)
        .run_cmd(f'test -x {AGENT} || ln -s "$(command -v claude)" {AGENT}')
        .run_cmd(f"{AGENT} --version{'' if is_latest else f' | grep -F {claude}'}")
        .run_cmd("mkdir -p /work")
        .run_cmd("mkdir -p /etc/systemd/system")
        .run_cmd(list(SHUT))
        .set_user("user")
        .set_workdir("/work")
    )


def check_version(claude: str) -> None:
    if claude == LATEST:  # each sandbox checks whether it is new enough
        return
    parts = claude.split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise SandboxError(f"{claude!r} is not a version of Claude Code such as {CLAUDE_CODE}")
    if tuple(map(int, parts)) < FLOOR:
        raise SandboxError(f"Claude Code {claude} is too old: {'.'.join(map(str, FLOOR))} or newer is needed")


async def build(
    settings: E2BSettings, *, claude: str = CLAUDE_CODE, on_log: Callable[[str], None] = lambda line: None
) -> Built:
    """Build the image. The first build takes some minutes; E2B keeps unchanged layers."""
    from e2b import AsyncTemplate

    try:
        found = await AsyncTemplate.build(
            definition(claude),
            settings.template,
            cpu_count=CPUS,
            memory_mb=MEMORY_MB,
            on_build_logs=lambda entry: on_log(str(entry.message)),
            api_key=settings.api_key,
            api_url=settings.api_url,
            domain=settings.domain,
        )
    except Exception as error:  # any error of the SDK and its libraries
        raise faults.of_service(error, f"building the template {settings.template!r}") from error
    return Built(found.name, found.template_id, found.build_id)
