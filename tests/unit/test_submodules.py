"""Which repository an address in `.gitmodules` means, and which entries count at all."""

from __future__ import annotations

import pytest

from bot.git import submodules
from bot.git.errors import BadName

GITHUB = "https://github.com"


@pytest.mark.parametrize(
    ("url", "repository"),
    [
        ("../lib", "acme/lib"),
        ("../lib.git/", "acme/lib"),
        ("./../lib.git", "acme/lib"),
        ("../../other/lib", "other/lib"),
        ("https://github.com/other/lib.git", "other/lib"),
        ("https://GitHub.com:443/other/lib", None),
        ("https://github.com/other/lib/", "other/lib"),
        ("git@github.com:other/lib.git", "other/lib"),
        ("github.com:other/lib", "other/lib"),
        ("org-12@github.com:other/lib.git", "other/lib"),
        ("ssh://git@github.com/other/lib.git", "other/lib"),
        ("ssh://git@github.com:22/other/lib.git", "other/lib"),
        ("ssh://git@ssh.github.com:443/other/lib.git", "other/lib"),
        ("ssh://git@github.com:8022/other/lib.git", None),
        ("ssh://git:word@github.com/other/lib.git", None),
        ("https://github.com.evil.example/other/lib", None),
        ("https://evil.example/github.com/lib", None),
        ("https://token@github.com/other/lib", None),
        ("https://user:token@github.com/other/lib", None),
        ("https://github.com@evil.example/other/lib", None),
        ("https://github.com/other/lib?x=1", None),
        ("https://github.com/other/lib/../../third/one", None),
        ("https://github.com/other/%2e%2e", None),
        ("https://github.com/../lib", None),
        ("https://github.com/other", None),
        ("https://[github.com/other/lib", None),
        ("https://github.com:99999999/other/lib", None),
        ("http://github.com/other/lib", None),
        ("git://github.com/other/lib", None),
        ("file:///etc/passwd", None),
        ("ext::sh -c id", None),
        ("/srv/lib.git", None),
        ("lib", None),
        ("../../../lib", None),
        ("../../../../etc/passwd", None),
        ("..", None),
        ("../", None),
        ("-oProxyCommand=id@github.com:other/lib", None),
        ("--upload-pack=touch /tmp/x", None),
        ("git@evil.example:other/lib", None),
        ("git@github.com:/other/lib", None),
        ("https://github.com/other/lib\n", None),
        ("https://github.com/other/..", None),
        ("", None),
    ],
)
def test_an_address_means_a_repository_of_this_github_or_nothing(url: str, repository: str | None) -> None:
    try:
        found: str | None = submodules.repository(url, "acme/shop", GITHUB)
    except BadName:
        found = None
    assert found == repository


def test_an_entry_counts_only_if_nothing_else_claims_its_name_or_path() -> None:
    def entries(*rows: tuple[str, str, str]) -> bytes:
        return "".join(f"submodule.{name}.{key}\n{value}\0" for name, key, value in rows).encode()

    plain = (("lib", "path", "lib"), ("lib", "url", "../lib"), ("lib", "update", "!touch /tmp/x"))
    assert submodules.named(entries(*plain)) == {"lib": "../lib"}
    assert submodules.named(entries(*plain, ("lib", "url", "../other"))) == {}, "the same name twice"
    other = (("b", "path", "LIB"), ("b", "url", "../b"))
    assert submodules.named(entries(*plain, *other)) == {}, "on some systems the same path"
    dotted = (("a.b.path", "path", "x"), ("a.b.path", "url", "../x"))
    assert submodules.named(entries(*dotted)) == {"x": "../x"}
    assert submodules.named(b"include.path\n/etc/passwd\0core.sshcommand\nid\0submodule.lib.path\0") == {}


@pytest.mark.parametrize(
    "path",
    [
        "../outside",
        "/etc",
        "a/../b",
        "-option",
        ".git",
        ".git/hooks",
        "a/.GIT/b",
        "git~1",
        "a\\b",
        "a//b",
        "x:y",
        "a/.",
    ],
)
def test_nothing_is_put_at_a_path_that_is_not_plain(path: str) -> None:
    assert submodules.path_fault(path) is not None
    assert submodules.path_fault("libs/plain-1") is None
