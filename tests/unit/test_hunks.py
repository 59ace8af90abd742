"""A patch for people: each hunk with the calls that wrote it, within bounds, with everything visible."""

from __future__ import annotations

import time

from bot.web.pages import hunks
from bot.web.pages.edits import EditCall


def call(id_: str, path: str, *diff: tuple[str, str]) -> EditCall:
    return EditCall(id_, 1, float(id_[1:]), "Edit", path, list(diff), ok=True)


def patch(path: str, *lines: str) -> str:
    return "\n".join([f"diff --git a/{path} b/{path}", f"--- a/{path}", f"+++ b/{path}", *lines, ""])


def test_a_hunk_names_the_last_call_that_has_its_lines() -> None:
    first = call("e1", "a.py", ("add", "x = 1"), ("add", "y = 2"))
    again = call("e2", "a.py", ("del", "x = 1"), ("add", "x = 3"))
    other = call("e3", "b.py", ("add", "x = 3"))
    text = patch("a.py", "@@ -1 +1,2 @@", "+x = 3", "+y = 2", "@@ -9 +9 @@", "+z = 0")
    [file] = hunks.shown(text, [first, again, other])
    assert [one.id for one in file.hunks[0].calls] == ["e1", "e2"] and file.hunks[1].calls == []
    assert (file.added, file.removed) == (3, 0)


def test_what_tools_report_is_shown_call_by_call_and_bounded() -> None:
    calls = [call(f"e{n}", f"{n % 3}.py", ("del", "x"), *[("add", f"{n}")] * 40) for n in range(3_000)]
    files = hunks.edited(calls)
    assert [one.path for one in files] == ["0.py", "1.py", "2.py"] and files[0].hunks[0].calls == [calls[0]]
    shown = sum(len(hunk.lines) for file in files for hunk in file.hunks)
    assert shown == hunks.MOST_LINES and all(hunk.lines for file in files for hunk in file.hunks)
    assert shown + sum(file.left_out for file in files) == 3_000 * 41


def test_many_hunks_of_many_calls_take_little_time() -> None:
    calls = [call(f"e{n}", "a.py", *[("add", f"{n} {m}") for m in range(20)]) for n in range(2_000)]
    lines = [part for n in range(3_000) for part in (f"@@ -{n} +{n} @@", f"+{n} 1")]
    began = time.process_time()
    [file] = hunks.shown(patch("a.py", *lines), calls)
    assert file.hunks[7].calls == [calls[7]] and time.process_time() - began < 5.0


def test_an_empty_line_names_nobody() -> None:
    text = patch("a.py", "@@ -1 +1,2 @@", "+", "+  ")
    assert hunks.shown(text, [call("e1", "a.py", ("add", ""), ("add", "  "))])[0].hunks[0].calls == []


def test_what_happened_to_a_file_is_said() -> None:
    text = (
        "diff --git a/new.sh b/new.sh\nnew file mode 100755\nindex 0..1\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
        "diff --git a/p.png b/p.png\nindex 0..1 100644\nGIT binary patch\nliteral 3\nKcmZ\n\n"
        "diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+target\n"
        "\\ No newline at end of file\n"
    )
    files = hunks.shown(text, [])
    assert [(one.path, one.note) for one in files] == [
        ("new.sh", "new, executable"),
        ("gone", "deleted"),
        ("run", "mode 100644 → 100755"),
        ("p.png", "binary"),
        ("link", "new, symbolic link"),
    ]
    assert files[4].hunks[0].lines[-1] == ("same", "(no newline at end of file)")


def test_lines_that_look_like_a_patch_are_lines() -> None:
    text = patch("a.py", "@@ -1 +1,3 @@", "+diff --git a/x b/x", "++++ b/x", "--- a/x", "+@@ -1 +1 @@")
    [file] = hunks.shown(text, [])
    assert [kind for kind, _ in file.hunks[0].lines] == ["add", "add", "del", "add"]


def test_carriage_returns_show_only_if_they_differ() -> None:
    [file] = hunks.shown(patch("a", "@@ -1 +1 @@", "-x\r", "+y\r"), [])
    assert file.hunks[0].lines == [("del", "x"), ("add", "y")]
    [file] = hunks.shown(patch("a", "@@ -1 +1 @@", "-x\r", "+x"), [])
    assert file.hunks[0].lines == [("del", "x\\u{d}"), ("add", "x")]


def test_everything_is_bounded_and_counted() -> None:
    many = patch("a", "@@ -0,0 +1,4000 @@", *(f"+{n}" for n in range(4000)))
    text = "".join(many.replace("a/a b/a", f"a/{n} b/{n}").replace("+++ b/a", f"+++ b/{n}") for n in range(300))
    files = hunks.shown(text, [])
    assert len(files) == hunks.MOST_FILES
    lines = sum(len(hunk.lines) for file in files for hunk in file.hunks)
    assert lines == hunks.MOST_LINES and files[0].left_out == 4000 - hunks.MOST_LINES_EACH
    assert len(hunks.visible("x" * 10_000)) < hunks.LONGEST_LINE + 50


def test_files_stand_under_their_folders() -> None:
    files = [hunks.ShownFile(n, path) for n, path in enumerate(["z.py", "a/b.py", "a/c.py", "a/d/e.py"])]
    tree = hunks.by_folder(files)
    assert [(folder, [one.path for one in inside]) for folder, inside in tree] == [
        ("", ["z.py"]),
        ("a", ["a/b.py", "a/c.py"]),
        ("a/d", ["a/d/e.py"]),
    ]
