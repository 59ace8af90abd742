"""What Forgehand says about folders of a repository."""

from __future__ import annotations

from collections.abc import Sequence

from bot.text.markup import named, shown

MOST_NAMED = 5


def no_such_folder(folder: str, near: Sequence[str]) -> str:
    meant = f" Did you mean {named(near, MOST_NAMED)}?" if near else " Name one that is there, or leave `--in` out."
    return f"`--in`: there is no folder {shown(folder, 200)} on the commit that the work would start from.{meant}"


def is_a_file(path: str, folder: str) -> str:
    instead = f": `--in {folder}`, for example" if folder else ", or leave `--in` out"
    return f"`--in`: {shown(path, 200)} is a file. Name its folder{instead}."


def is_about(folders: Sequence[str]) -> str:
    """Tell the agent where to work."""
    rows = "\n".join(f"- {folder}" for folder in folders)
    about = "It is about these. Leave others as they are unless the task needs them:"
    return f"# Folders of this request\n\n{about}\n\n{rows}"


def worked_in(folders: Sequence[str], rules: Sequence[str], patterns: Sequence[str]) -> str:
    """Tell people whose rules and settings the turn had."""
    by = [f"the rules of {named(rules, MOST_NAMED)}"] if rules else []
    by += [f"the settings for {named(patterns, MOST_NAMED)}"] if patterns else []
    counted = " and ".join(by)
    if not folders:
        return f"**Paths:** worked with {counted}."
    return f"**Folder{'s' * (len(folders) > 1)}:** {named(folders, MOST_NAMED)}{', with ' * bool(by)}{counted}."
