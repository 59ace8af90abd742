"""The operator's settings: read once from the environment over a file's values, checked, then passed on."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from bot.errors import SettingsError
from bot.settings import app_key, bucket, database, dotenv, e2b, inside, own_key, prices, providers
from bot.settings.bucket import BucketSettings as BucketSettings
from bot.settings.database import Address as Address
from bot.settings.inside import InsideHosts
from bot.settings.providers import BedrockSettings as BedrockSettings
from bot.settings.providers import ModelProviderSettings
from bot.settings.providers import VertexSettings as VertexSettings
from bot.settings.reader import LOOPBACK as LOOPBACK
from bot.settings.reader import Secret as Secret
from bot.settings.reader import SettingsReader
from sandbox.e2b.settings import E2BSettings

GITHUB, GITHUB_API = "https://github.com", "https://api.github.com"
_OURS = re.compile(rb"^\s*(?:export\s+)?(?:FORGEHAND|ANTHROPIC|CLAUDE_CODE)_", re.MULTILINE)
_COMMAND = re.compile(r"[/!.~:+-]?[A-Za-z][A-Za-z0-9_-]{0,38}")


@dataclass(frozen=True)
class GitHubSettings:
    url: str
    api_url: str
    app_id: int
    private_key: Secret
    webhook_secrets: tuple[Secret, ...]
    accounts: tuple[str, ...]
    client_id: str = ""
    client_secret: Secret | None = None
    """For signing in with GitHub."""
    operators: tuple[str, ...] = ()
    """Lower-case logins of the people who see the operator's page; empty: the App's owner, if that is a person."""


@dataclass(frozen=True)
class ModelSettings:
    model: str
    upstream: str
    api_key: Secret | None
    oauth_token: Secret | None
    prices: prices.Given = field(default_factory=dict)
    """Prices that add to or replace ours."""
    admitted: frozenset[str] = frozenset()
    """Fields and betas of the provider's API that the gateway forwards without knowing their price."""
    provider: ModelProviderSettings = field(default_factory=ModelProviderSettings)

    def secrets(self) -> tuple[Secret, ...]:
        keys = tuple(one for one in (self.api_key, self.oauth_token) if one)
        return keys if self.provider.at is None else (*keys, *self.provider.at.secrets())


@dataclass(frozen=True)
class Limits:
    session_budget_usd: float = 5.0
    session_ceiling_usd: float = 50.0
    """The most that people may raise it to; never less than the budget itself."""
    day_budget_usd: float = 50.0
    month_budget_usd: float = 500.0
    user_day_budget_usd: float = 0.0
    """0 means no limit for each person or repository."""
    user_month_budget_usd: float = 0.0
    repo_day_budget_usd: float = 0.0
    repo_month_budget_usd: float = 0.0
    timeout_minutes: float = 60.0
    max_sessions: int = 8
    replica_sessions: int = 8
    """How many turns one replica runs at once; the limits above hold over all."""
    repo_sessions: int = 4
    retention_days: float = 30.0
    rescue_days: float = 30.0
    keep_minutes: float = 30.0
    """How long an environment waits for the next turn of its thread; 0: not at all."""
    subagents: int = 20
    subagents_at_once: int = 4
    settle_seconds: float = 15.0
    """How long work that a push starts waits for the next push: pushes seldom come alone."""


@dataclass(frozen=True)
class Settings:
    data_dir: Path
    database: Address
    host: str
    port: int
    public_url: str | None
    sandbox: str
    command: str
    egress: frozenset[str]
    """Hosts that environments may reach, lower case."""
    secret_keys: tuple[Secret, ...]
    github: GitHubSettings
    model: ModelSettings
    limits: Limits
    e2b: E2BSettings | None = None
    """None if sessions run on this host."""
    poll_seconds: float = 0.0
    """How often to read GitHub's log of deliveries; 0 if webhooks come instead."""
    metrics_token: Secret | None = None
    """Opens /metrics; without it, only this machine may read them, and only if nobody else reaches us."""
    replica_seconds: float = 30.0
    """For so long a replica may show no sign of life before the others take over its turns."""
    bucket: BucketSettings | None = None
    """Holds the files; None if the store or the data directory does."""
    newest_agent: Path | None = None
    """The folder of the newest Claude Code; None to use the tested one."""
    inside: InsideHosts = field(default_factory=InsideHosts)
    """Inside addresses that accounts' outside services may have."""
    package_cache_bytes: int = 4 << 30

    @property
    def is_reached(self) -> bool:
        """Return True if others than this machine send us requests, perhaps through a proxy on it."""
        return self.public_url is not None or self.poll_seconds <= 0

    @property
    def pages_url(self) -> str:
        """Return the address of the pages for links to them; empty if nobody could sign in there."""
        can_sign_in = bool(self.github.client_id and self.github.client_secret)
        return self.public_url or "" if can_sign_in else ""

    def secrets(self) -> tuple[Secret, ...]:
        optional = (
            self.metrics_token,
            self.github.client_secret,
            Secret(self.e2b.api_key) if self.e2b else None,
            self.bucket.secret if self.bucket else None,
            *database.passwords_of(self.database),
        )
        always = self.github.private_key, *self.github.webhook_secrets, *self.secret_keys
        return *always, *self.model.secrets(), *(one for one in optional if one)

    def own_hosts(self) -> frozenset[str]:
        """Return the hosts that we use with credentials: no repository may open them to its sessions."""
        used = [self.github.url, self.github.api_url, self.model.upstream]
        if self.model.provider.at is not None:
            used += self.model.provider.at.hosts()
        if self.e2b is not None:
            used += [one for one in (self.e2b.api_url, self.e2b.sandbox_url) if one]
            used += [f"https://{self.e2b.domain}"] if self.e2b.domain else []
        if self.bucket is not None:
            used.append(self.bucket.endpoint)
        return frozenset(host for one in used if (host := urlsplit(one).hostname))


_MAKE_A_KEY = (
    "If Forgehand has run before, set the key that it had. Otherwise `forgehand setup` makes one; "
    "`openssl rand -base64 32` prints one, too."
)
NO_SECRET_KEY = f"FORGEHAND_SECRET_KEY is not set (nor FORGEHAND_SECRET_KEY_FILE). {_MAKE_A_KEY}"


def has_secret_key(values: Mapping[str, str]) -> bool:
    """Tell whether a key is set or was made by set-up."""
    return SettingsReader(values).secret("FORGEHAND_SECRET_KEY") is not None or bool(own_key.read(data_dir(values)))


def read_secret_keys(values: Mapping[str, str]) -> tuple[Secret, ...]:
    """Return the keys that encrypt what is stored, newest first."""
    given = SettingsReader(values).secret("FORGEHAND_SECRET_KEY") or own_key.read(data_dir(values))
    if given is None:
        raise SettingsError(NO_SECRET_KEY)
    ring = given.reveal().split(",")
    for key in ring:
        try:
            raw = base64.b64decode(key.strip(), validate=True)
        except ValueError:
            raw = b""
        if len(raw) != 32:
            raise SettingsError(
                "FORGEHAND_SECRET_KEY must be base64 of 32 bytes (several, newest first, joined by commas). "
                f"{_MAKE_A_KEY}"
            )
    return tuple(Secret(key.strip()) for key in ring)


def _webhook_secrets(reader: SettingsReader, *, required: bool) -> tuple[Secret, ...]:
    given = reader.secret("FORGEHAND_WEBHOOK_SECRET", required=required)
    secrets = tuple(Secret(one.strip()) for one in given.reveal().split(",") if one.strip()) if given else ()
    if given and not secrets:
        raise SettingsError("FORGEHAND_WEBHOOK_SECRET holds only commas: set it to the App's webhook secret.")
    return secrets


def _github(values: Mapping[str, str], *, polls: bool) -> GitHubSettings:
    reader = SettingsReader(values)
    url, api_url = read_github_urls(values)
    return GitHubSettings(
        url=url,
        api_url=api_url,
        app_id=reader.whole("FORGEHAND_APP_ID", None),
        private_key=_private_key(reader),
        webhook_secrets=_webhook_secrets(reader, required=not polls),
        accounts=reader.names("FORGEHAND_ACCOUNTS"),
        client_id=reader.text("FORGEHAND_CLIENT_ID", ""),
        client_secret=reader.secret("FORGEHAND_CLIENT_SECRET"),
        operators=reader.names("FORGEHAND_OPERATORS"),
    )


def _private_key(reader: SettingsReader) -> Secret:
    """Check the key here, so that a damaged one stops the start instead of the first session."""
    given = reader.secret("FORGEHAND_PRIVATE_KEY", required=True)
    pem = given.reveal() if given else ""
    if "\n" not in pem:  # many secret stores keep one line, with the breaks written out
        pem = pem.replace("\\n", "\n")
    if "PRIVATE KEY-----" not in pem:
        raise SettingsError(
            "FORGEHAND_PRIVATE_KEY is not a PEM key: it should begin with '-----BEGIN'. Set "
            "FORGEHAND_PRIVATE_KEY_FILE to the .pem file that GitHub gave you."
        )
    if app_key.read(pem) is None:
        raise SettingsError(
            "FORGEHAND_PRIVATE_KEY cannot be read as an RSA key without a password. Download a new one from the App's "
            "page, and set FORGEHAND_PRIVATE_KEY_FILE to it."
        )
    return Secret(pem)


def read_model(values: Mapping[str, str]) -> ModelSettings:
    reader = SettingsReader(values)
    provider = providers.read(reader)
    if provider.at is not None and reader.text("ANTHROPIC_BASE_URL", ""):
        raise SettingsError(f"ANTHROPIC_BASE_URL does not count with {providers.PROVIDER}: remove one of the two.")
    return ModelSettings(
        provider=provider,
        model=reader.text("FORGEHAND_MODEL", "claude-sonnet-5-5"),
        upstream=provider.at.url if provider.at else reader.url("ANTHROPIC_BASE_URL", e2b.PROVIDER),
        api_key=reader.header("ANTHROPIC_API_KEY"),
        oauth_token=reader.header("CLAUDE_CODE_OAUTH_TOKEN"),
        prices=prices.read(reader.text(prices.SETTING, "")),
        admitted=reader.words("FORGEHAND_GATEWAY_ALLOW"),
    )


def require_credential(model: ModelSettings) -> None:
    if model.api_key is None and model.oauth_token is None and model.provider.at is None:
        raise SettingsError(
            "ANTHROPIC_API_KEY is not set (nor CLAUDE_CODE_OAUTH_TOKEN). Make a key for the model at "
            "https://platform.claude.com/settings/keys, then: export ANTHROPIC_API_KEY=… (or put it into .env, "
            "or into the file that --config names)."
        )


def read_address(values: Mapping[str, str]) -> tuple[str, int]:
    reader = SettingsReader(values)
    return reader.text("FORGEHAND_HOST", "127.0.0.1"), reader.port("FORGEHAND_PORT", 8080)


def read_github_urls(values: Mapping[str, str]) -> tuple[str, str]:
    reader = SettingsReader(values)
    url = reader.url("FORGEHAND_GITHUB_URL", GITHUB)
    return url, reader.url("FORGEHAND_GITHUB_API_URL", GITHUB_API if url == GITHUB else f"{url}/api/v3")


def read_public_url(values: Mapping[str, str]) -> str:
    return SettingsReader(values).optional_url("FORGEHAND_PUBLIC_URL") or ""


def read_api_token(values: Mapping[str, str]) -> Secret | None:
    """Return the token that a command of ours sends to the API."""
    return SettingsReader(values).secret("FORGEHAND_API_TOKEN")


def read_egress(values: Mapping[str, str]) -> frozenset[str]:
    return SettingsReader(values).hosts("FORGEHAND_EGRESS")


def read_inside(values: Mapping[str, str]) -> InsideHosts:
    return inside.read(SettingsReader(values))


def read_limits(values: Mapping[str, str]) -> Limits:
    reader = SettingsReader(values)
    return Limits(
        session_budget_usd=reader.number("FORGEHAND_SESSION_BUDGET", 5, least=0.01),
        session_ceiling_usd=reader.number("FORGEHAND_SESSION_CEILING", 50),
        day_budget_usd=reader.number("FORGEHAND_DAY_BUDGET", 50, least=0.01),
        month_budget_usd=reader.number("FORGEHAND_MONTH_BUDGET", 500, least=0.01),
        user_day_budget_usd=reader.number("FORGEHAND_USER_DAY_BUDGET", 0),
        user_month_budget_usd=reader.number("FORGEHAND_USER_MONTH_BUDGET", 0),
        repo_day_budget_usd=reader.number("FORGEHAND_REPO_DAY_BUDGET", 0),
        repo_month_budget_usd=reader.number("FORGEHAND_REPO_MONTH_BUDGET", 0),
        timeout_minutes=reader.number("FORGEHAND_TIMEOUT_MINUTES", 60, least=0.05),
        max_sessions=(most := reader.whole("FORGEHAND_MAX_SESSIONS", 8)),
        replica_sessions=reader.whole("FORGEHAND_REPLICA_SESSIONS", most),
        repo_sessions=reader.whole("FORGEHAND_REPO_SESSIONS", 4),
        retention_days=reader.number("FORGEHAND_RETENTION_DAYS", 30, least=1),
        rescue_days=reader.number("FORGEHAND_RESCUE_DAYS", 30, least=1),
        keep_minutes=reader.number("FORGEHAND_KEEP_MINUTES", 30),
        subagents=reader.whole("FORGEHAND_SUBAGENTS", 20, least=0),
        subagents_at_once=reader.whole("FORGEHAND_SUBAGENTS_AT_ONCE", 4),
        settle_seconds=reader.number("FORGEHAND_SETTLE_SECONDS", 15),
    )


def read_e2b(values: Mapping[str, str]) -> E2BSettings | None:
    reader = SettingsReader(values)
    chosen = reader.choice("FORGEHAND_SANDBOX", "local", ("local", "e2b"))
    return e2b.read(reader) if chosen == "e2b" else None


def read_newest_agent(values: Mapping[str, str]) -> Path | None:
    chosen = SettingsReader(values).choice("FORGEHAND_CLAUDE_VERSION", "tested", ("tested", "latest"))
    return data_dir(values) / "claude" if chosen == "latest" else None


def data_dir(values: Mapping[str, str]) -> Path:
    home = Path(values.get("HOME") or Path.home())
    default = Path(values.get("XDG_DATA_HOME") or home / ".local/share") / "forgehand"
    return Path(values.get("FORGEHAND_DATA_DIR") or default).expanduser().absolute()


def read_database(values: Mapping[str, str]) -> Address:
    return database.read(SettingsReader(values), data_dir(values))


def read_bucket(values: Mapping[str, str]) -> BucketSettings | None:
    return bucket.read(SettingsReader(values))


def read(values: Mapping[str, str]) -> Settings:
    """Read all settings of the service; a SettingsError is one sentence that names the wrong one."""
    reader = SettingsReader(values)
    command = reader.text("FORGEHAND_COMMAND", "/claude")
    if len(command) < 2 or not _COMMAND.fullmatch(command):
        raise SettingsError(f"FORGEHAND_COMMAND must be one word such as /claude, not {command!r}.")
    host, port = read_address(values)
    poll_seconds = reader.number("FORGEHAND_POLL_SECONDS", 0)
    return Settings(
        data_dir=data_dir(values),
        database=read_database(values),
        host=host,
        port=port,
        public_url=read_public_url(values) or None,
        sandbox=reader.choice("FORGEHAND_SANDBOX", "local", ("local", "e2b")),
        command=command,
        egress=read_egress(values),
        secret_keys=read_secret_keys(values),
        github=_github(values, polls=poll_seconds > 0),
        model=read_model(values),
        limits=read_limits(values),
        e2b=read_e2b(values),
        poll_seconds=poll_seconds,
        metrics_token=reader.secret("FORGEHAND_METRICS_TOKEN"),
        replica_seconds=reader.number("FORGEHAND_REPLICA_SECONDS", 30, least=6),
        bucket=read_bucket(values),
        newest_agent=read_newest_agent(values),
        inside=read_inside(values),
        package_cache_bytes=reader.whole("FORGEHAND_PACKAGE_CACHE_MB", 4096, least=16) << 20,
    )


def from_environment(file: Path | None = None, *, foreign: Path | None = None) -> dict[str, str]:
    """Lay the process's environment over a settings file: `file`, or `.env` of the working directory.

    Others may have filled the folder `foreign`. Its `.env` could send our credentials elsewhere, so it is read only
    if `file` names it."""
    values: dict[str, str] = {}
    chosen = file or Path(".env")
    if file is not None and not file.is_file():
        raise SettingsError(f"The settings file {file} does not exist, or is not a file.")
    if chosen.is_file() and (file is not None or foreign is None or not _lies_here(foreign)):
        values.update(dotenv.read(chosen))
    values.update(os.environ)
    return values


def is_left_out(foreign: Path) -> bool:
    """Return True if `.env` has settings of ours but does not count, because it lies in that folder."""
    file = Path(".env")
    try:
        if not file.is_file() or not _lies_here(foreign):
            return False
        with file.open("rb") as opened:
            return _OURS.search(opened.read(1 << 20)) is not None
    except OSError:
        return False


def _lies_here(foreign: Path) -> bool:
    return Path.cwd().is_relative_to(foreign.resolve())
