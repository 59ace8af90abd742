"""Two lines of work brought together on the host: without a work tree, conflicts named, marks that stay are found."""

from __future__ import annotations

import pytest

from bot.git.commits import is_marked
from bot.git.quarantine import Quarantine
from tests.host_git.bench import REPO, Bench, contents
from tests.world.git_remote import git, git_bytes

MARKED = b"a\n<<<<<<< 1\nours\n||||||| 0\nold\n=======\ntheirs\n>>>>>>> 2\nb\n"


async def sides(bench: Bench, ours: dict[str, str], theirs: dict[str, str]) -> tuple[str, str]:
    start = git(bench.dev, "rev-parse", "HEAD")
    first = bench.commit(ours, "ours")
    git(bench.dev, "reset", "-q", "--hard", start)
    second = bench.commit(theirs, "theirs")
    bench.publish(f"{first}:refs/heads/ours", f"{second}:refs/heads/theirs")
    for name in ("ours", "theirs"):
        await bench.cache.fetch(REPO, bench.access, name)
    return first, second


async def test_both_sides_are_joined_the_same_way_each_time(bench: Bench, base: str) -> None:
    ours, theirs = await sides(bench, {"a": "1"}, {"b": "2"})
    joined = await bench.cache.join(REPO, ours, theirs)
    assert joined is not None and joined == await bench.cache.join(REPO, ours, theirs)
    assert (joined.parted, joined.conflicts, joined.words) == (base, (), ())
    mirror = bench.cache._root / f"{REPO}.git"
    assert git(mirror, "show", "-s", "--format=%P %T", joined.commit) == f"{ours} {theirs} {joined.tree}"
    assert contents(mirror, joined.commit).keys() == {"a", "b", "calc.py", "docs/a.md"}


async def test_conflicts_are_named_marked_and_found_while_they_are_left(
    bench: Bench, base: str, quarantine: Quarantine
) -> None:
    changed = {"calc.py": "def add(a, b):\n    return a + b\n", "naïve\n.txt": "ours\n"}
    ours, theirs = await sides(bench, changed, {**changed, "calc.py": "add = sum\n", "naïve\n.txt": "theirs\n"})
    joined = await bench.cache.join(REPO, ours, theirs)
    assert joined is not None and set(joined.conflicts) == {"calc.py", "naïve\n.txt"}
    assert len(joined.words) == 2 and all(one.startswith("CONFLICT") for one in joined.words)
    await quarantine.look_again()
    assert await quarantine.parents(joined.commit) == [ours, theirs]
    assert set(await quarantine.marked(joined.tree, joined)) == set(joined.conflicts)
    assert await quarantine.marked(ours, joined) == []
    text = git_bytes(quarantine._dir, "cat-file", "blob", f"{joined.tree}:calc.py")
    assert f"<<<<<<< {ours}".encode() in text and b"return a - b" in text, "what both sides began with is shown"


async def test_a_file_that_one_side_deleted_is_a_conflict_without_marks(bench: Bench, base: str) -> None:
    start = git(bench.dev, "rev-parse", "HEAD")
    ours = bench.commit({"calc.py": "changed\n"})
    git(bench.dev, "reset", "-q", "--hard", start)
    (bench.dev / "calc.py").unlink()
    theirs = bench.commit({})
    bench.publish(f"{ours}:refs/heads/ours", f"{theirs}:refs/heads/theirs")
    for name in ("ours", "theirs"):
        await bench.cache.fetch(REPO, bench.access, name)
    joined = await bench.cache.join(REPO, ours, theirs)
    assert joined is not None and joined.conflicts == ("calc.py",) and "modify/delete" in joined.words[0]


async def test_what_is_left_of_conflicts_without_marks_is_told_by_its_side(
    bench: Bench, base: str, quarantine: Quarantine
) -> None:
    text = "".join(f"{n}\n" for n in range(30))
    git(bench.dev, "reset", "-q", "--hard", bench.commit({"old.txt": text, "gone.py": "a = 0\n", "kept.py": "b = 0\n"}))
    start = git(bench.dev, "rev-parse", "HEAD")
    git(bench.dev, "rm", "-q", "old.txt", "gone.py")
    ours = bench.commit({"one.txt": text, "kept.py": "b = 1\n"})
    git(bench.dev, "reset", "-q", "--hard", start)
    git(bench.dev, "rm", "-q", "old.txt", "kept.py")
    theirs = bench.commit({"two.txt": text, "gone.py": "a = 1\n"})
    bench.publish(f"{ours}:refs/heads/ours", f"{theirs}:refs/heads/theirs")
    for name in ("ours", "theirs"):
        await bench.cache.fetch(REPO, bench.access, name)
    joined = await bench.cache.join(REPO, ours, theirs)
    assert joined is not None and "old.txt" in joined.conflicts, "which neither side has"
    await quarantine.look_again()
    left = await quarantine.left(joined.tree, joined)
    assert (set(left.ours), set(left.theirs)) == ({"one.txt", "kept.py"}, {"two.txt", "gone.py"})
    settled = await quarantine.left(ours, joined)
    assert (set(settled.ours), settled.theirs) == ({"one.txt", "kept.py"}, ())


async def test_histories_without_a_common_commit_are_not_joined(bench: Bench, base: str) -> None:
    other = git(bench.dev, "commit-tree", f"{base}^{{tree}}", "-m", "another beginning")
    bench.publish(f"{other}:refs/heads/other")
    await bench.cache.fetch(REPO, bench.access, "other")
    assert await bench.cache.join(REPO, base, other) is None


async def test_work_is_put_on_top_only_where_it_fits(bench: Bench, base: str, quarantine: Quarantine) -> None:
    line, another = {"docs/a.md": "# Mine\n"}, {"docs/a.md": "# Theirs\n", "c": "3"}
    ours, theirs = await sides(bench, {**line, "a": "1"}, {"c": "3"})
    await quarantine.look_again()
    tree = await quarantine.merged(base, theirs, ours)
    assert tree is not None and contents(quarantine._dir, tree).keys() == {"a", "c", "calc.py", "docs/a.md"}
    against = bench.commit(another)
    bench.publish("HEAD:refs/heads/theirs")
    await bench.cache.fetch(REPO, bench.access, "theirs")
    await quarantine.look_again()
    assert await quarantine.merged(base, against, ours) is None
    assert await quarantine.continues(theirs, base) and not await quarantine.continues(theirs, ours)
    assert await quarantine.merge_base(ours, theirs) == base


@pytest.mark.parametrize(
    ("content", "marked"),
    [
        (MARKED, True),
        (MARKED.replace(b"\n", b"\r\n"), True),
        (b"a\nours\ntheirs\nb\n", False),
        (b"ours\n=======\ntheirs\n", True),
        (b"Title\n========\n", False),
        (b"x\n>>>>>>> 2\n", True),
        (b"  <<<<<<< quoted\n", False),
        (b"<<<<<<< in both\n", False),
    ],
)
def test_marks_are_told_from_what_was_there(content: bytes, marked: bool) -> None:
    assert is_marked(content, [b"<<<<<<< in both\n", b"theirs\n"]) == marked
    assert not is_marked(b"Title\n=======\nOther\n=======\n", [b"Title\n=======\n", b"Other\n=======\n"])
