"""The names of all our settings. Any other name with our prefix is a typo and is ignored."""

from __future__ import annotations

from collections.abc import Mapping

from bot.text.likeness import is_near

PREFIX = "FORGEHAND_"
_WITHOUT_PREFIX = """
    ACCOUNTS API_TOKEN APP_ID BEDROCK_AREA BEDROCK_KEY_ID BEDROCK_METADATA BEDROCK_PROFILE BEDROCK_REGION BEDROCK_ROLE
    BEDROCK_SECRET BEDROCK_STS_URL BEDROCK_TOKEN BEDROCK_URL CLAUDE_VERSION CLIENT_ID CLIENT_SECRET COMMAND
    DATABASE_PASSWORD DATABASE_URL DATA_DIR DAY_BUDGET E2B_AGENT E2B_CPU_PRICE E2B_CREATIONS E2B_HOURS
    E2B_MEMORY_PRICE E2B_SANDBOXES E2B_SNAPSHOT_AFTER E2B_TEMPLATE E2B_UNMETERED EGRESS FILES_KEY_ID FILES_SECRET
    FILES_URL GATEWAY_ALLOW GITHUB_API_URL GITHUB_URL HOST INSIDE_HOSTS KEEP_MINUTES MAX_SESSIONS METRICS_TOKEN MODEL
    MODEL_IDS MONTH_BUDGET OPERATORS PACKAGE_CACHE_MB POLL_SECONDS PORT PRICES PRIVATE_KEY PROVIDER PUBLIC_URL
    REPLICA_SECONDS REPLICA_SESSIONS REPO_DAY_BUDGET REPO_MONTH_BUDGET REPO_SESSIONS RESCUE_DAYS RETENTION_DAYS
    SANDBOX SECRET_KEY SESSION_BUDGET SESSION_CEILING SETTLE_SECONDS SUBAGENTS SUBAGENTS_AT_ONCE TIMEOUT_MINUTES
    USER_DAY_BUDGET USER_MONTH_BUDGET VERTEX_KEY VERTEX_METADATA VERTEX_PROJECT VERTEX_REGION VERTEX_URL
    WEBHOOK_SECRET
"""
NAMES = frozenset(f"{PREFIX}{name}" for name in _WITHOUT_PREFIX.split())
"""Secrets may also be given as a file: NAME_FILE."""


def mistyped(values: Mapping[str, str]) -> dict[str, str]:
    """Map each unknown name to the setting that was probably meant, or to an empty text."""
    ours = [name for name, value in values.items() if name.startswith(PREFIX) and value.strip()]
    odd = [name for name in ours if name.removesuffix("_FILE") not in NAMES]
    return {name: next((one for one in sorted(NAMES) if is_near(name, one)), "") for name in sorted(odd)}


def sentence(name: str, meant: str) -> str:
    return f"Unknown setting {name}{f' (did you mean {meant}?)' if meant else ''}; ignored."
