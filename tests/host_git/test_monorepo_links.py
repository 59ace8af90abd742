"""Rules that are links: they count if they stay in the repository; submodules, folders and large files do not."""

from __future__ import annotations

from bot.agent import folder_rules
from bot.sessions.reading.folder_rules import rule_files
from tests.host_git.bench import REPO, Bench


async def test_links_are_followed_within_the_repository(bench: Bench) -> None:
    links = {
        "pay/CLAUDE.md": "../rules/pay.md",
        "web/CLAUDE.md": "CLAUDE.md",
        "out/CLAUDE.md": "/etc/passwd",
        "up/CLAUDE.md": "../../../etc/passwd",
        "two/CLAUDE.md": "../pay/CLAUDE.md",
        "git/CLAUDE.md": "../.git/config",
        ":(glob)x/CLAUDE.md": "../rules/pay.md",  # git would take the name for a pattern
    }
    for path, target in links.items():
        (bench.dev / path).parent.mkdir()
        (bench.dev / path).symlink_to(target)
    sha = bench.commit(
        {"rules/pay.md": "PAY @more.md\n", "rules/more.md": "MORE\n", "big/CLAUDE.md": "x" * (2 << 20)}, "a"
    )
    bench.publish()
    await bench.cache.fetch(REPO, bench.access, "main")
    paths = await bench.cache.paths(REPO, sha)
    heads = [path for path in paths if path.endswith("CLAUDE.md")]
    files = await rule_files(bench.cache, REPO, sha, [*heads, "rules"], {*paths, "rules"})
    same = ("pay/CLAUDE.md", "two/CLAUDE.md", ":(glob)x/CLAUDE.md")
    assert set(files) == {*same, "rules/pay.md", "rules/more.md"}
    for head in same:
        found, notes = folder_rules.expanded(head, files)
        assert [(importer, one.path) for importer, one in found] == [
            ("", "rules/pay.md"),
            ("rules/pay.md", "rules/more.md"),
        ]
        assert notes == []
