"""A patch is redacted line by line: it keeps its form, whatever a secret spans."""

from __future__ import annotations

from bot.outbound.patches import redacted
from bot.outbound.redact import Redactor

SECRET = "correct-horse-battery-staple"
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
BODY = "Ab3+" * 12


def patch(*lines: str) -> str:
    return "\n".join(["diff --git a/f b/f", "--- a/f", "+++ b/f", *lines, ""])


def test_a_patch_without_a_secret_stays_as_it_is() -> None:
    text = patch("@@ -1,2 +1,2 @@ def f():", " same", "-old", "+new", "\\ No newline at end of file")
    two = text + text.replace("a/f b/f", "a/g b/g")
    assert redacted(Redactor([SECRET]), two) == two


def test_what_is_secret_goes_from_each_side_and_from_the_heading() -> None:
    text = patch(f"@@ -1,2 +1,2 @@ {SECRET}", f" {TOKEN}", f"-{SECRET} old", f"+x {SECRET}")
    clean = redacted(Redactor([SECRET]), text)
    assert SECRET not in clean and TOKEN not in clean
    assert clean.split("\n")[3:7] == ["@@ -1,2 +1,2 @@ [redacted]", " [redacted]", "-[redacted] old", "+x [redacted]"]


def test_a_secret_over_several_lines_of_one_side_goes_though_the_other_side_lies_between() -> None:
    secret = "first-half-of-it\nsecond-half-of-it"
    text = patch("@@ -1,1 +1,2 @@", "+first-half-of-it", "-between", "+second-half-of-it")
    clean = redacted(Redactor([secret]), text)
    assert "half" not in clean and "-between" in clean and clean.count("\n") == text.count("\n")


def test_a_key_goes_also_if_the_patch_shows_only_its_end() -> None:
    text = patch("@@ -8,4 +8,4 @@", f" {BODY}", f" {BODY}", " -----END RSA PRIVATE KEY-----", "-a", "+b")
    clean = redacted(Redactor(), text)
    assert BODY not in clean and clean.split("\n")[4:9] == [" [redacted]", " [redacted]", " [redacted]", "-a", "+b"]


def test_the_name_of_a_binary_file_goes_but_not_its_compressed_content() -> None:
    literal = ["GIT binary patch", "literal 9", f"c{TOKEN}"]
    text = "\n".join([f"diff --git a/{TOKEN} b/{TOKEN}", "new file mode 100644", *literal, ""])
    clean = redacted(Redactor(), text).split("\n")
    assert clean[0] == "diff --git a/[redacted] b/[redacted]" and clean[2:5] == literal
    assert TOKEN not in redacted(Redactor(), f"diff --git a/f b/f\nBinary files a/{TOKEN} and b/{TOKEN} differ\n")


def test_a_name_with_a_secret_goes_too() -> None:
    text = f"diff --git a/{TOKEN} b/{TOKEN}\nnew file mode 100644\n--- /dev/null\n+++ b/{TOKEN}\n@@ -0,0 +1 @@\n+x\n"
    assert TOKEN not in redacted(Redactor(), text)
