"""Settings: what a file may look like, and the one sentence for each thing that is wrong."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bot import settings
from bot.errors import SettingsError
from bot.settings import Secret, dotenv


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()


KEY = pem(rsa.generate_private_key(65537, 2048))
NEEDED = {
    "HOME": "/nowhere",
    "FORGEHAND_APP_ID": "1",
    "FORGEHAND_PRIVATE_KEY": KEY,
    "FORGEHAND_WEBHOOK_SECRET": "one, two",
    "FORGEHAND_SECRET_KEY": base64.b64encode(bytes(32)).decode(),
    "ANTHROPIC_API_KEY": "key",
}


def test_what_is_needed_is_enough() -> None:
    found = settings.read(NEEDED)
    assert found.port == 8080
    assert found.data_dir == Path("/nowhere/.local/share/forgehand")
    assert [one.reveal() for one in found.github.webhook_secrets] == ["one", "two"]
    assert KEY.splitlines()[1] not in repr(found)


def test_the_tested_agent_is_used_unless_the_newest_is_asked_for() -> None:
    assert settings.read(NEEDED).newest_agent is None
    found = settings.read({**NEEDED, "FORGEHAND_CLAUDE_VERSION": "latest"})
    assert found.newest_agent == found.data_dir / "claude"


NUMBERS = (
    *("FORGEHAND_SESSION_BUDGET", "FORGEHAND_SESSION_CEILING", "FORGEHAND_DAY_BUDGET", "FORGEHAND_MONTH_BUDGET"),
    *("FORGEHAND_USER_DAY_BUDGET", "FORGEHAND_REPO_MONTH_BUDGET", "FORGEHAND_TIMEOUT_MINUTES", "FORGEHAND_PORT"),
    *("FORGEHAND_MAX_SESSIONS", "FORGEHAND_REPO_SESSIONS", "FORGEHAND_RETENTION_DAYS", "FORGEHAND_KEEP_MINUTES"),
    *("FORGEHAND_SUBAGENTS", "FORGEHAND_SUBAGENTS_AT_ONCE", "FORGEHAND_POLL_SECONDS", "FORGEHAND_SETTLE_SECONDS"),
)
ODD = ("1e999", "-1e999", "inf", "nan", "0x1F", "1e300", "9" * 6_000, "1_000", "\u0663", "1000000001", "1 000", "true")


ODD_BUCKETS = (
    "files",
    "https://files.example",
    "s3://files",
    "s3:///a?region=r",
    "s3://Files?region=r",
    "s3://files/../a?region=r",
    "s3://files/a b?region=r",
    "s3://files?region=EU Central",
    "s3://files?endpoint=http://minio.example",
    "s3://files?endpoint",
    "s3://[files?region=r",
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FORGEHAND_APP_ID", "abc"),
        ("FORGEHAND_APP_ID", "0"),
        ("FORGEHAND_APP_ID", "nan"),
        ("FORGEHAND_PRIVATE_KEY", "xyz"),
        ("FORGEHAND_PRIVATE_KEY", "-----BEGIN RSA PRIVATE KEY-----\ndamaged\n-----END RSA PRIVATE KEY-----"),
        ("FORGEHAND_PRIVATE_KEY", pem(ec.generate_private_key(ec.SECP256R1()))),
        ("FORGEHAND_WEBHOOK_SECRET", " , "),
        ("FORGEHAND_SECRET_KEY", "short"),
        ("FORGEHAND_PRICES", "glm=1/2"),
        ("FORGEHAND_PRICES", "[]"),
        ("FORGEHAND_PRICES", '{"glm": 3}'),
        ("FORGEHAND_PRICES", '{"glm": {"input": "1", "output": 2}}'),
        ("FORGEHAND_PRICES", '{"glm": {"input": true, "output": 2}}'),
        ("FORGEHAND_PRICES", '{"glm": {"input": NaN, "output": 2}}'),
        ("FORGEHAND_PRICES", '{"glm": {"input": 1e999, "output": 2}}'),
        ("FORGEHAND_PRICES", '{"glm": {"input": -1, "output": 2}}'),
        ("FORGEHAND_CLAUDE_VERSION", "2.1.326"),
        ("FORGEHAND_PORT", "70000"),
        ("FORGEHAND_PORT", "80.5"),
        ("FORGEHAND_PUBLIC_URL", "https://["),
        ("FORGEHAND_PUBLIC_URL", "https://host:99999"),
        ("FORGEHAND_PUBLIC_URL", "https://host/?page=1"),
        ("FORGEHAND_PUBLIC_URL", "https://me:word@host"),
        ("FORGEHAND_GITHUB_API_URL", "http://github.example"),
        ("FORGEHAND_COMMAND", "two words"),
        ("FORGEHAND_COMMAND", "<!--"),
        ("FORGEHAND_COMMAND", "/claude`"),
        ("FORGEHAND_SANDBOX", "elsewhere"),
        ("FORGEHAND_SESSION_BUDGET", "inf"),
        ("FORGEHAND_SESSION_BUDGET", "5$"),
        *((name, value) for name in NUMBERS for value in ODD),
        ("FORGEHAND_EGRESS", "*"),
        ("FORGEHAND_EGRESS", "https://packages.example"),
        ("FORGEHAND_DATABASE_URL", "postgresql://here"),
        ("FORGEHAND_DATABASE_URL", "mysql://here/forgehand"),
        ("FORGEHAND_DATABASE_URL", "postgresql://[/forgehand"),
        ("FORGEHAND_DATABASE_URL", "postgresql://here:99999/forgehand"),
        ("FORGEHAND_DATABASE_PASSWORD", "word"),
        ("FORGEHAND_FILES_KEY_ID", "AKIA"),
        ("FORGEHAND_FILES_SECRET", "word"),
        *(("FORGEHAND_FILES_URL", url) for url in ODD_BUCKETS),
    ],
)
def test_a_wrong_one_is_named_in_one_sentence(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name) as caught:
        settings.read({**NEEDED, name: value})
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_bucket_is_a_url_and_a_key_beside_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a/secret+word\n", encoding="utf-8")
    key = {"FORGEHAND_FILES_KEY_ID": "AKIA", "FORGEHAND_FILES_SECRET_FILE": str(tmp_path / "secret")}
    given = {**NEEDED, **key, "FORGEHAND_FILES_URL": "s3://files/a/b?region=eu-central-1"}
    found = settings.read(given)
    assert found.bucket is not None
    assert (found.bucket.name, found.bucket.prefix, found.bucket.region) == ("files", "a/b/", "eu-central-1")
    assert found.bucket.endpoint == "https://s3.eu-central-1.amazonaws.com"
    assert Secret("a/secret+word") in found.secrets()
    assert "secret+word" not in repr(found)
    assert "s3.eu-central-1.amazonaws.com" in found.own_hosts()
    elsewhere = settings.read({**given, "FORGEHAND_FILES_URL": "s3://files?endpoint=https://minio.example:9000"}).bucket
    assert elsewhere is not None
    assert (elsewhere.prefix, elsewhere.endpoint) == ("", "https://minio.example:9000")
    with pytest.raises(SettingsError, match="FORGEHAND_FILES_SECRET is not set"):
        settings.read({name: one for name, one in given.items() if name != "FORGEHAND_FILES_SECRET_FILE"})


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIA:hunter2@files/a?region=r",
        "s3://files/a?region=r&secret=hunter2",
        "s3://files?endpoint=https://me:hunter2@minio.example",
        "s3://files?region=r#hunter2",
    ],
)
def test_a_secret_in_the_url_of_a_bucket_is_refused_and_not_repeated(url: str) -> None:
    key = {"FORGEHAND_FILES_KEY_ID": "AKIA", "FORGEHAND_FILES_SECRET": "word"}
    with pytest.raises(SettingsError, match="FORGEHAND_FILES_URL") as caught:
        settings.read({**NEEDED, **key, "FORGEHAND_FILES_URL": url})
    assert "hunter2" not in str(caught.value)


def test_the_password_of_the_database_may_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("a word/with@signs\n", encoding="utf-8")
    given = {"FORGEHAND_DATABASE_PASSWORD_FILE": str(tmp_path / "password")}
    address = settings.read(
        {**NEEDED, **given, "FORGEHAND_DATABASE_URL": "postgresql://me@db:5433/bot?sslmode=require"}
    )
    assert isinstance(address.database, Secret)
    assert address.database.reveal() == "postgresql://me:a%20word%2Fwith%40signs@db:5433/bot?sslmode=require"
    assert Secret("a word/with@signs") in address.secrets()
    for url in ("postgresql://db/bot", "postgresql://me:other@db/bot", "postgresql://me@db/bot?password=other"):
        with pytest.raises(SettingsError, match="FORGEHAND_DATABASE") as refused:
            settings.read({**NEEDED, **given, "FORGEHAND_DATABASE_URL": url})
        assert "other" not in str(refused.value)


@pytest.mark.parametrize("parameter", ["password", "sslpassword", "pass%77ord"])
def test_a_password_among_the_parameters_of_the_databases_url_is_a_secret(parameter: str) -> None:
    url = f"postgresql://me@db/bot?sslmode=require&{parameter}=a%2Fb+c"
    assert Secret("a/b+c") in settings.read({**NEEDED, "FORGEHAND_DATABASE_URL": url}).secrets()


def test_a_private_key_on_one_line_is_one() -> None:
    found = settings.read({**NEEDED, "FORGEHAND_PRIVATE_KEY": KEY.replace("\n", "\\n")})
    assert found.github.private_key.reveal().strip() == KEY.strip()


def test_secrets_come_from_files(tmp_path: Path) -> None:
    for name, content in (("good", KEY), ("empty", " \n"), ("binary", "")):
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    without = {name: value for name, value in NEEDED.items() if name != "FORGEHAND_PRIVATE_KEY"}
    assert settings.read({**without, "FORGEHAND_PRIVATE_KEY_FILE": str(tmp_path / "good")})
    for name in ("empty", "binary", "missing"):
        with pytest.raises(SettingsError, match="FORGEHAND_PRIVATE_KEY_FILE"):
            settings.read({**without, "FORGEHAND_PRIVATE_KEY_FILE": str(tmp_path / name)})


def test_an_enterprise_server_has_its_api_beside_it() -> None:
    found = settings.read({**NEEDED, "FORGEHAND_GITHUB_URL": "https://github.example/"})
    assert found.github.api_url == "https://github.example/api/v3"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("https://[2001:db8::1]:8443/model//", "https://[2001:db8::1]:8443/model"),
        ("HTTPS://Model.Example:443/a/b;c", "HTTPS://Model.Example:443/a/b;c"),
        ("https://m\u00fcnchen.example:444/a/", "https://xn--mnchen-3ya.example:444/a"),
        ("https://\u65e5\u672c.example", "https://xn--wgv71a.example"),
        ("http://[::1]:80", "http://[::1]:80"),
    ],
)
def test_an_address_is_read_in_the_form_that_hosts_are_compared_in(given: str, read: str) -> None:
    found = settings.read({**NEEDED, "ANTHROPIC_BASE_URL": given})
    assert found.model.upstream == read
    assert all(host.isascii() for host in found.own_hosts())


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("https://me:canary@host", "must not contain"),
        ("https://:canary@host", "must not contain"),
        ("https://canary@host:bad", "must not contain"),
        ("https://me:can/ary@host", "must not contain"),
        ("ftp://me:canary@host", "must not contain"),
        ("me:canary@host", "must not contain"),
        ("https://@host", "must not contain"),
        ("https://host\\@canary", "must not contain"),
        ("https://host/a b", "without spaces"),
        ("https://host/a\r\nx-api-key: b", "without spaces"),
        ("https://host/\u00e4", "without spaces"),
        ("https://host/?", "without `?`"),
        ("https://host/#", "without `?`"),
        ("https://two..dots", "must be an https:// address"),
        (f"https://{'a' * 64}.example", "must be an https:// address"),
        ("https://host:99999", "must be an https:// address"),
        ("http://0x7f000001/", "plain http"),
    ],
)
def test_an_address_that_is_none_is_refused_and_no_password_is_shown(value: str, word: str) -> None:
    with pytest.raises(SettingsError, match="ANTHROPIC_BASE_URL") as caught:
        settings.read({**NEEDED, "ANTHROPIC_BASE_URL": value})
    assert word in str(caught.value)
    assert "canary" not in str(caught.value) and "ary@" not in str(caught.value)


def test_a_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_bytes(
        b"\xef\xbb\xbfFIRST=1 # one\r\n\r\n# SECOND=2\nexport\tTHIRD = 'three # is'  # said\n"
        b'FOURTH="four\\n\\"five\\""\nFIFTH="-----BEGIN\nmiddle\n-----END"\nSIXTH=a"b#c\nSEVENTH=\n'
    )
    assert dotenv.read(file) == {
        "FIRST": "1",
        "THIRD": "three # is",
        "FOURTH": 'four\n"five"',
        "FIFTH": "-----BEGIN\nmiddle\n-----END",
        "SIXTH": 'a"b#c',
        "SEVENTH": "",
    }


@pytest.mark.parametrize(
    "content", ["fine=1\nnonsense\n", "fine=1\n=7\n", "fine=1\nA='seven\nB=2\n", "fine=1\nA='x' y\n"]
)
def test_a_line_that_cannot_be_read_is_named_and_not_shown(tmp_path: Path, content: str) -> None:
    file = tmp_path / "settings"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match="Line 2 of ") as caught:
        dotenv.read(file)
    assert "seven" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"# caf\xe9\n")
    with pytest.raises(SettingsError, match="not UTF-8"):
        dotenv.read(tmp_path / "latin")
    with pytest.raises(SettingsError, match="does not exist"):
        settings.from_environment(tmp_path)
