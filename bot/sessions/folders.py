"""Finds the folders that a turn is about, and what `paths` in the config says for them. Pure."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence

from bot.agent.folder_rules import above
from bot.commands.options import MAX_FOLDER
from bot.errors import CommandError
from bot.proposal import push_policy
from bot.proposal.push_policy import matches
from bot.repo_config import RepoConfig
from bot.text.likeness import is_near
from bot.text.markup import shown
from bot.words import on_folders

MOST_FOLDERS = 10
MOST_WORDS = 2_000
"""The most paths that we look up in one text."""
MOST_DEPTH = 40
MOST_ELSEWHERE = 4_000
ANYTHING = "\x01"
"""Stands for any file of a folder; only a pattern with a wildcard matches it."""
_PATH = re.compile(r"(?<![\w./@:+-])(?:\./)?((?:[\w@+.-]{1,255}/){1,40}(?:[\w@+.-]{1,255})?)")


class CommitFolders(Collection[str]):
    """All folders of a commit. None is held as a string: a few megabytes of paths can have gigabytes of folders."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(paths)

    def __contains__(self, folder: object) -> bool:
        if not isinstance(folder, str) or not folder:
            return False
        at = bisect_left(self._paths, f"{folder}/")
        return at < len(self._paths) and self._paths[at].startswith(f"{folder}/")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        """Yield each as far as people can name it: no deeper, and no longer."""
        known: list[str] = []
        for path in self._paths:
            parts = path.split("/", MOST_DEPTH)[:-1]
            same = next((at for at, (one, other) in enumerate(zip(parts, known, strict=False)) if one != other), None)
            begin = min(len(parts), len(known)) if same is None else same
            for end in range(begin + 1, len(parts) + 1):
                if len(folder := "/".join(parts[:end])) > MAX_FOLDER:
                    break
                yield folder
            known = parts


def asked_for(folder: str, paths: Collection[str], known: Collection[str]) -> str:
    """Return the folder that `--in` names; a CommandError says which one may be meant."""
    if folder in known:
        return folder
    if folder in paths:
        raise CommandError(on_folders.is_a_file(folder, posixpath.dirname(folder)))
    raise CommandError(on_folders.no_such_folder(folder, _near(folder, known)))


def _near(folder: str, known: Iterable[str]) -> list[str]:
    """Look for a slip of the finger, another case, and the same name elsewhere."""
    written, last = folder.lower(), posixpath.basename(folder).lower()

    def fits(one: str) -> bool:
        other = one.lower()
        return is_near(written, other) or is_near(last, posixpath.basename(other))

    found = sorted(filter(fits, known), key=lambda one: (not is_near(written, one.lower()), one.count("/"), one))
    return found[: on_folders.MOST_NAMED]


def named_in(text: str, paths: Collection[str], known: Collection[str]) -> list[str]:
    """Find files and folders of the repository in words; of a file that is not there yet, its folder."""
    found: dict[str, None] = {}
    for count, match in enumerate(_PATH.finditer(text)):
        if count >= MOST_WORDS or len(found) >= MOST_FOLDERS:
            break
        written = match[1].rstrip("/.")
        place = next((one for one in (written, posixpath.dirname(written)) if one in paths or one in known), None)
        if place:
            found[place if place in paths else f"{place}/{ANYTHING}"] = None
    return list(found)


def patterns_for(config: RepoConfig, places: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of `paths` that match one of the files; all, if those are more than we look at."""
    files = list(places)
    if push_policy.are_too_many(files):
        return tuple(one.pattern for one in config.paths)
    return tuple(one.pattern for one in config.paths if any(matches(path, one.pattern) for path in files))


def homes(places: Iterable[str], marked: Collection[str]) -> tuple[str, ...]:
    """Return for each file its nearest marked folder, without those around another."""
    deepest = max((one.count("/") + 1 for one in marked), default=0)
    near = (next((one for one in _around(path, deepest) if one in marked), None) for path in places)
    found = {one for one in near if one is not None}
    around = {outer for one in found for outer in above(one)[:-1]}
    return tuple(sorted(found - around))[:MOST_FOLDERS]


def _around(path: str, deepest: int) -> Iterator[str]:
    """Yield the folders of a path, the innermost first, without those that are too deep."""
    parts = path.split("/", deepest)[:-1]
    return ("/".join(parts[:end]) for end in range(len(parts), 0, -1))


def fixed_part(pattern: str) -> str:
    """Return the folder in front of the first wildcard; empty for none."""
    parts = pattern.strip("/").split("/")
    end = next((at for at, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
    return "/".join(parts[:end])


def instructions(config: RepoConfig, patterns: Sequence[str]) -> str:
    """Join the config's instructions: the root's, those that count here, and in short those of other paths."""
    parts = [config.instructions] if config.instructions else []
    here = [one for one in config.paths if one.instructions and one.pattern in patterns]
    parts += [f"For {shown(one.pattern, 200)}:\n\n{one.instructions}" for one in here]
    if rows := list(_elsewhere(config, patterns)):
        parts.append("\n".join(["Only if you touch such a path:", "", *rows]))
    return "\n\n".join(parts)


def _elsewhere(config: RepoConfig, patterns: Sequence[str]) -> Iterator[str]:
    room = MOST_ELSEWHERE
    for one in config.paths:
        if one.instructions and one.pattern not in patterns:
            row = f"- {shown(one.pattern, 200)}: {' '.join(one.instructions.split())}"
            room -= len(row)
            if room < 0:
                yield "- There are more of them in .github/forgehand.yml, for other paths."
                return
            yield row
