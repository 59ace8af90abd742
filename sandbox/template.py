"""The image that E2B's sandboxes start from: what it holds, and how it is built in the operator's account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.agents.claude_binary import FLOOR
from sandbox.e2b import faults
from sandbox.e2b.settings import AGENT, E2BSettings
from sandbox.errors import SandboxError

if TYPE_CHECKING:
    from e2b import LogEntry
    from e2b.template.main import TemplateBuilder

CLAUDE_CODE = "2.1.326"
LATEST = "latest"  # in the place of a version: the newest at the time of the build
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
"""What E2B's build opens again behind us, such as /usr/local, each start shuts (`inside/hardening.py`)."""


@dataclass(frozen=True)
class Built:
    name: str
    template_id: str
    build_id: str


def definition(claude: str = CLAUDE_CODE) -> TemplateBuilder:
    """The user `user` comes from E2B; what would let it become root is shut, here and again at each start."""
    from e2b import Template

    check_version(claude)
    is_latest = claude == LATEST
    base = Template().from_node_image(NODE).set_user("root").apt_install(PACKAGES, no_install_recommends=True)
    if is_latest:  # the layer of the build before has the newest of that day
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
    if claude == LATEST:  # each sandbox looks whether it is new enough
        return
    parts = claude.split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise SandboxError(f"{claude!r} is not a version of Claude Code such as {CLAUDE_CODE}")
    if tuple(map(int, parts)) < FLOOR:
        raise SandboxError(f"Claude Code {claude} is too old: {'.'.join(map(str, FLOOR))} or newer is needed")


async def build(
    settings: E2BSettings, *, claude: str = CLAUDE_CODE, on_log: Callable[[str], None] = lambda line: None
) -> Built:
    """Takes some minutes the first time; unchanged layers are kept by E2B."""
    from e2b import AsyncTemplate

    def tell(entry: LogEntry) -> None:
        on_log(str(entry.message))

    try:
        found = await AsyncTemplate.build(
            definition(claude),
            settings.template,
            cpu_count=CPUS,
            memory_mb=MEMORY_MB,
            on_build_logs=tell,
            api_key=settings.api_key,
            api_url=settings.api_url,
            domain=settings.domain,
        )
    except Exception as error:  # whatever the SDK and what lies below it raise
        raise faults.of_service(error, f"building the template {settings.template!r}") from error
    return Built(found.name, found.template_id, found.build_id)
