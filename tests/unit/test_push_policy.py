"""What may be pushed: names, links, modes, sizes, and the patterns of the repository's configuration."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.git import names
from bot.git.errors import BadName
from bot.git.inspection import Change
from bot.proposal.push_policy import ChangeLimits, Hold, check, link_fault, matches


def added(path: str, mode: str = "100644", **more: object) -> Change:
    return replace(Change(path, "A", "000000", mode, "1" * 40, size=1), **more)  # type: ignore[arg-type]


def held(*changes: Change, **rules: object) -> dict[str, Hold]:
    return {item.path: item.kind for item in check(changes, **rules).held}  # type: ignore[arg-type]


def test_ordinary_work_may_be_pushed() -> None:
    changes = [
        added("src/new file (1).py"),
        added("docs/übersicht.md"),
        added("日本語/テスト.txt"),
        added(".github/dependabot.yml"),
        added(".gitignore"),
        added("a.git/x"),
        added("link", "120000", target="docs/übersicht.md"),
        added("run", "100755"),
        Change("old", "D", "100644", "000000", "0" * 40),
    ]
    verdict = check(changes)
    assert verdict.may_push
    assert verdict.notes == ("1 of the changed files became executable.",)


@pytest.mark.acceptance("E05")
@pytest.mark.parametrize(
    "change",
    [
        added(".github/workflows/x.yml"),
        added(".github/Workflows/x.yml"),
        added(".github/workflows/sub/x.yml"),
        added(".github/workflows", "120000", target="elsewhere"),
        added(".github", "120000", target="elsewhere"),
        added(".github", "160000"),
        Change(".github/workflows/x.yml", "M", "100644", "100644", "1" * 40),
        Change(".github/workflows/x.yml", "D", "100644", "000000", "0" * 40),
        Change(".github/workflows", "D", "120000", "000000", "0" * 40),
    ],
)
def test_workflow_files_wait_for_an_approval(change: Change) -> None:
    assert held(change) == {change.path: Hold.WORKFLOW}
    approved = held(change, workflows_approved=True)
    assert Hold.WORKFLOW not in approved.values()
    if change.new_mode == "160000":
        assert approved == {change.path: Hold.SUBMODULE}


@pytest.mark.acceptance("E08")
@pytest.mark.parametrize(
    "path",
    [
        *("a\nb", "a\tb", "a\x00b", "a\x7fb", "a\\b", "c:x", "x.", "x/y. ", "x /y", "a\u200bb", "a\u202eb", "a\u2028b"),
        *("\udcff", "a//b", "../x", "./x", "x/..", "é" * 200, "\U000e0041x"),
    ],
)
def test_names_that_deceive_or_break_other_systems_are_held(path: str) -> None:
    assert held(added(path)) == {path: Hold.NAME}


@pytest.mark.acceptance("E08")
@pytest.mark.parametrize(
    "name",
    [
        *(".git", ".GIT", ".Git", "git~1", "GIT~2", ".git.", ".git ", ".git. .", ".git::$INDEX_ALLOCATION", ".git:x"),
        *(".g\u200cit", "\ufeff.git", ".gi\u0074", "x\\.git", ".g\u200dI\u2060t"),
    ],
)
@pytest.mark.parametrize("place", ["{}", "{}/config", "sub/{}/config", "sub/{}"])
def test_look_alikes_of_gits_folder_are_held_even_where_they_were_before(name: str, place: str) -> None:
    path = place.format(name)
    assert held(added(path)) == {path: Hold.NAME}
    assert held(Change(path, "M", "100644", "100644", "1" * 40)) == {path: Hold.NAME}
    assert held(Change(path, "D", "100644", "000000", "0" * 40)) == {}


def test_an_odd_name_that_the_repository_already_has_may_be_edited() -> None:
    assert held(Change("man/Foo::Bar.3", "M", "100644", "100644", "1" * 40)) == {}


@pytest.mark.acceptance("E08")
@pytest.mark.parametrize(
    ("path", "target", "words"),
    [
        ("l", "/etc/passwd", "absolute"),
        ("l", "C:/x", "absolute"),
        ("l", "\\\\host\\x", "absolute"),
        ("l", "../x", "leaves"),
        ("a/b/l", "../../../x", "leaves"),
        ("a/l", "..\\..\\x", "leaves"),
        ("l", "docs/../../x", "down and up"),
        ("a/l", "b/../x", "down and up"),
        ("l", ".git/config", "git's own"),
        ("a/l", "../.GIT", "git's own"),
        ("l", "sub/git~1/hooks", "git's own"),
        ("l", "", "not a path"),
        ("l", None, "not a path"),
        ("l", "a\nb", "not a path"),
        ("l", "a" * 2000, "not a path"),
    ],
)
def test_links_that_leave_or_reach_into_git_are_held(path: str, target: str | None, words: str) -> None:
    verdict = check([added(path, "120000", target=target)])
    assert [item.kind for item in verdict.held] == [Hold.LINK]
    assert words in verdict.held[0].why


@pytest.mark.parametrize(("path", "target"), [("a/b/l", "../../x"), ("a/l", ".."), ("l", "./a//b"), ("l", "a/...")])
def test_links_within_the_tree_are_fine(path: str, target: str) -> None:
    assert link_fault(path, target) is None
    assert held(added(path, "120000", target=target)) == {}


@pytest.mark.acceptance("E08")
def test_links_that_lead_back_to_themselves_are_held() -> None:
    def link(path: str, target: str) -> Change:
        return added(path, "120000", target=target)

    assert held(link("a", "a")) == {"a": Hold.LINK}
    assert held(link("a", "b"), link("b", "c"), link("c", "a")) == dict.fromkeys("abc", Hold.LINK)
    assert held(link("a", "a/b")) == {"a": Hold.LINK}
    assert held(link("a", "b"), link("b", "c/x"), link("c", "b")) == dict.fromkeys("abc", Hold.LINK)
    assert held(link("a", "b"), link("b", "c"), link("d", "a/x")) == {}


@pytest.mark.acceptance("E08")
def test_twins_by_case_or_composition_are_held() -> None:
    nfc, nfd = "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")
    assert held(added(nfd), existing=[nfc, nfd]) == {nfd: Hold.NAME}
    assert held(added("A.txt"), added("a.txt")) == {"A.txt": Hold.NAME, "a.txt": Hold.NAME}
    assert held(added("Docs/x"), existing=["docs/y", "Docs/x"]) == {"Docs/x": Hold.NAME}
    assert held(added("docs", "120000", target="x"), existing=["Docs/y", "docs"]) == {"docs": Hold.NAME}
    assert held(added("docs/x"), existing=["docs/y", "Docs/y", "docs/x"]) == {}, "both were there before"
    assert held(added("docs/x"), existing=["docs/y", "docs/x"]) == {}


@pytest.mark.acceptance("E07")
def test_submodules_and_odd_modes_are_held() -> None:
    bump = Change("lib", "M", "160000", "160000", "1" * 40)
    gone = Change("lib", "D", "160000", "000000", "0" * 40)
    assert held(added("sub", "160000"), bump) == {"sub": Hold.SUBMODULE, "lib": Hold.SUBMODULE}
    assert held(added(".gitmodules"), added("x/.GitModules")) == dict.fromkeys(
        (".gitmodules", "x/.GitModules"), Hold.SUBMODULE
    )
    assert held(added("x", "100664")) == {"x": Hold.MODE}
    assert check([gone]).notes == ("1 submodules were removed.",)
    assert check([gone]).may_push


@pytest.mark.acceptance("E06")
def test_too_much_is_held_as_a_whole() -> None:
    limits = ChangeLimits(max_files=2, max_file_bytes=10 << 20, max_total_bytes=15 << 20)
    assert held(*(added(f"f{n}") for n in range(3)), limits=limits) == {"": Hold.SIZE}
    assert held(added("big", size=11 << 20), limits=limits) == {"big": Hold.SIZE}
    assert held(added("a", size=8 << 20), added("b", size=8 << 20), limits=limits) == {"": Hold.SIZE}


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("secrets", ["secrets", "secrets/a", "x/secrets/a", "SECRETS/a"], ["secret", "xsecrets"]),
        ("/secrets", ["secrets/a"], ["x/secrets"]),
        ("*.pem", ["a.pem", "x/y.PEM"], ["a.pem2"]),
        ("infra/*.tf", ["infra/a.tf"], ["infra/x/a.tf", "x/infra/a.tf"]),
        ("infra/**/*.tf", ["infra/a.tf", "infra/x/y/a.tf"], ["a.tf"]),
        ("infra/**", ["infra/a", "infra/x/y"], ["infra", "xinfra/a"]),
        ("deploy/", ["deploy/x", "a/deploy/x"], ["deployed"]),
        ("**/x/**", ["x/a", "a/x/b"], ["x"]),
        ("", [], ["a"]),
        ("/", [], ["a"]),
    ],
)
def test_patterns_of_the_configuration(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in (*yes, *no) if matches(path, pattern)] == yes


def test_blocked_paths_are_held() -> None:
    change = Change("infra/main.tf", "D", "100644", "000000", "0" * 40)
    assert held(change, blocked=["infra/**"]) == {"infra/main.tf": Hold.BLOCKED}


UNSEEN = st.text(alphabet=st.characters(categories=["Cf"]), max_size=3)
SIGNS = [*"./\\:-@~^?*[ \x7f\u200b\u202e\u2028", "..", "//", "/.", "@{", ".lock"]
LETTERS = st.text(alphabet="ab/", max_size=3)
HOSTILE = st.builds("{}{}{}".format, LETTERS, st.sampled_from(SIGNS) | st.characters(codec="utf-8"), LETTERS)
"""One sign among letters: of several, another one would be what it is refused for."""


@pytest.mark.acceptance("E08")
@given(UNSEEN, st.text(alphabet=" .x:", max_size=4))
def test_no_name_that_some_system_reads_as_git_passes(before: str, after: str) -> None:
    ignorable = "".join(c for c in before if unicodedata.category(c) == "Cf")
    trailing = "".join(c for c in after if c in " .")
    for name in (f".g{ignorable}iT{trailing}", f".git:{after}", f"{ignorable}git~1{trailing}"):
        path = f"a/{name.replace('/', '')}"
        assert not check([added(path)]).may_push
        assert not check([Change(path, "M", "100644", "100644", "1" * 40)]).may_push, "nor where it was before"


@pytest.mark.acceptance("E08")
@given(st.lists(st.sampled_from(["a", "b", "..", ".", "", "c"]), max_size=8), st.integers(0, 3))
def test_no_link_that_passes_can_leave_the_tree(parts: list[str], depth: int) -> None:
    path, target = "/".join([*["d"] * depth, "link"]), "/".join(parts)
    if link_fault(path, target) is None:
        level = depth
        for part in parts:
            level += {"..": -1, ".": 0, "": 0}.get(part, 1)
            assert level >= 0


@example("a\u200bb")
@example("a\u2028b")
@given(HOSTILE)
def test_a_name_that_passes_is_one_plain_text_for_all_systems(path: str) -> None:
    if names.path_fault(path) is None:
        assert path.encode() and "\\" not in path and ":" not in path
        assert all(part.strip(" .") for part in path.split("/"))
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in path)


@given(st.lists(st.text(alphabet="aAéÉe\u0301/.", min_size=1, max_size=6), max_size=6))
def test_the_policy_never_fails_and_names_only_what_changed(paths: list[str]) -> None:
    changes = [added(path) for path in dict.fromkeys(paths)]
    verdict = check(changes, blocked=["**/a", "*"], existing=["a", "A/b"])
    assert {item.path for item in verdict.held} <= {c.path for c in changes} | {""}


@pytest.mark.acceptance("E10")
@example("a..b")
@example("a/-b.lock")
@given(HOSTILE)
def test_no_branch_name_is_taken_for_an_option_or_leaves_its_folder(name: str) -> None:
    if not names.is_branch(name):
        with pytest.raises(BadName):
            names.branch_ref(name)
    else:
        assert not name.startswith(("-", "/", ".")) and ".." not in name and not name.endswith((".lock", "/", "."))
        assert not any(c in name for c in "~^:?*[\\ \x7f") and all(ord(c) > 32 for c in name)


@pytest.mark.acceptance("E02")
def test_branches_that_cannot_stand_beside_each_other() -> None:
    existing = ["main", "forgehand/1-a", "Feature/X"]
    assert names.clash("forgehand/1-b", existing) is None
    assert names.clash("forgehand/1-a", existing) is None
    assert names.clash("forgehand", existing) == "forgehand/1-a"
    assert names.clash("forgehand/1-a/x", existing) == "forgehand/1-a"
    assert names.clash("feature/x", existing) == "Feature/X"
    assert names.clash("feature/y", existing) is None
