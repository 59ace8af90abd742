"""`python -m tests.language [FILE…] [--mark NAME]`: sentences that are hard to read, by file and mark.

Without arguments it counts them per file. With files, or parts of their paths, it lists the sentences.
A mark is a hint for a reader, not a verdict: a good sentence may carry one.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 35
STYLE_PAGE = ".github/CONTRIBUTING.md"
DOCUMENTS = ("*.md", "docs/*.md", ".github/*.md", "bot/README.md", "sandbox/README.md", "deploy/**/*.md")
COMMENTED = (
    "app.yml",
    "compose*.yaml",
    "Dockerfile",
    "deploy/Caddyfile",
    "deploy/kubernetes/*.*",
    "pyproject.toml",
)
SOURCE = ("bot/**/*.py", "sandbox/**/*.py")
TEMPLATES = ("bot/**/templates/*.html",)
SPOKEN = (
    "bot/words",
    "bot/cli",
    "bot/commands",
    "bot/handlers",
    "bot/live",
    "bot/setup",
    "bot/checkup",
    "bot/settings",
    "bot/repo_config",
    "bot/web",
    "bot/workbench",
    "bot/account_settings.py",
)
"""Packages whose string literals people read."""
FRAGMENT = re.compile(
    r"(?:Of|To|Where|What|Who|Whose|Whom|Which|Whether|When|If|That|How|As|For|By|In|With|Without|From|At|On|Until|Since"
    r"|Because|Under|Behind|Beside|After|Before|Only|Not|Nothing|All|Is|Has|It|And|Or|Else|Why|Into|So|Such|Than|Then"
    r"|There|This|These|Those)\b"
)
"""First words of a docstring that is no whole phrase."""
FORBIDDEN = re.compile(
    r"\b(?:anew|mend(?:s|ed|ing)?|(?:is|are|was|were|be) told|to be had|of (?:its|their|his|her|one's) own|thereby"
    r"|thereof|therein|whereof|whereby|whosoever|nobody's|save for|lest|laid to rest|counts? for nothing|in the way of"
    r"|(?<!there )is none|(?:to|for|of|by|from) who)\b",
    re.IGNORECASE,
)
_HANGING = re.compile(r"(?:Of|Where|What|Who|Whoever|Whose|Whom|Whatever)\b(?!.*\?[\"”')*]*$)")
_TO = re.compile(r"To\b(?!.{0,90}[,:])")
_TWICE_NO = re.compile(
    r"\bnot un\w+|\b(?:nothing|nobody|none|no \w+)\b[^,;.:]{0,50}\b(?:but|not|never|without)\b"
    r"|\bnot\b[^,;.:]{0,40}\b(?:nothing|nobody|never)\b",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*]|\d+\.) ")
_SENTENCE = re.compile(r"(?<=[.!?])[\"”')*]*\s+(?=[\"“'(*\[`]*[A-Z])|;\s+")


@dataclass(frozen=True)
class Found:
    file: str
    line: int
    mark: str
    sentence: str


@dataclass(frozen=True)
class Text:
    """A piece of prose: a paragraph, a cell of a table, a docstring, a literal."""

    file: str
    line: int
    words: str
    docstring_of_function: bool = False


MARKS: dict[str, Callable[[str], bool]] = {
    "hanging": lambda sentence: sentence.count(" ") > 2 and bool(_HANGING.match(sentence) or _TO.match(sentence)),
    "forbidden": lambda sentence: bool(FORBIDDEN.search(sentence)),
    "double no": lambda sentence: bool(_TWICE_NO.search(sentence)),
    "long": lambda sentence: len(sentence.split()) > LONGEST,
}


def sentences(words: str) -> list[str]:
    plain = re.sub(r"\s+", " ", words).strip(" -*#>|")
    return [one.strip() for one in _SENTENCE.split(plain) if one and one.strip()]


def find(texts: Iterable[Text]) -> Iterator[Found]:
    for text in texts:
        if text.docstring_of_function and FRAGMENT.match(text.words):
            yield Found(text.file, text.line, "fragment", sentences(text.words)[0])
        for sentence in sentences(text.words):
            for mark, is_marked in MARKS.items():
                if is_marked(sentence):
                    yield Found(text.file, text.line, mark, sentence)


def _files(patterns: Iterable[str]) -> list[Path]:
    found = {path for pattern in patterns for path in ROOT.glob(pattern) if not path.is_symlink()}
    return sorted(found)


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def markdown(name: str, text: str) -> Iterator[Text]:
    """Paragraphs, list items and cells, without code blocks, inline code and addresses."""
    if name == STYLE_PAGE:
        text = re.sub(r"^## Style.*?(?=^## )", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"^```.*?^```$", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"`[^`]*`", lambda found: "X" + "\n" * found[0].count("\n"), text)
    text = re.sub(r"\]\([^)]*\)", lambda found: "]" + "\n" * found[0].count("\n"), text)
    begun, held = 0, ""
    for number, line in enumerate([*text.replace("[", "").replace("]", "").splitlines(), ""], 1):
        begins = not line.strip() or re.match(r"\s*(?:[-*] |\d+\. |\||#|<|!)", line)
        if begins and held:
            yield Text(name, begun, held)
            held = ""
        if line.startswith("|"):
            yield from (Text(name, number, cell) for cell in line.strip("|").split("|") if cell.strip(" -"))
        elif line.strip() and not line.startswith(("#", "<")):
            begun = begun if held else number
            held = f"{held} {_BULLET.sub('', line).strip()}".strip()


def template(name: str, text: str) -> Iterator[Text]:
    text = re.sub(r"<(?:script|style)\b.*?</(?:script|style)>", "", text, flags=re.S)
    text = re.sub(r"\{\{.*?\}\}", "X", text, flags=re.S)
    for number, line in enumerate(re.sub(r"\{%.*?%\}|\{#.*?#\}", "\0", text, flags=re.S).splitlines(), 1):
        spoken = [*re.findall(r'(?:aria-label|title|placeholder)="([^"]*)"', line), *re.split(r"<[^>]*>|\0", line)]
        yield from (Text(name, number, words) for words in spoken if len(words.split()) > 1)


def comments(name: str, text: str) -> Iterator[Text]:
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.search(r"(?:^|\s)# (.*)", line):
            yield Text(name, number, found[1])


def docstrings(name: str, tree: ast.Module) -> Iterator[Text]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for place, one in enumerate(body if isinstance(body, list) else []):
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                of_function = place == 0 and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                yield Text(name, one.lineno, one.value.value.strip(), of_function)


def literals(name: str, tree: ast.Module) -> Iterator[Text]:
    """String literals of four words or more, with `X` for what is filled in."""
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
            words = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            words = node.value
        else:
            continue
        if len(words.split()) > 3 and not re.search(r"\\[dswb]|(?:SELECT|UPDATE|INSERT|DELETE) ", words):
            yield Text(name, node.lineno, words)


def documents() -> Iterator[Text]:
    for path in _files(DOCUMENTS):
        yield from markdown(_name(path), path.read_text(encoding="utf-8"))
    for path in _files(COMMENTED):
        yield from comments(_name(path), path.read_text(encoding="utf-8"))
    for path in _files(TEMPLATES):
        yield from template(_name(path), path.read_text(encoding="utf-8"))


def code() -> Iterator[Text]:
    for path in _files(SOURCE):
        name, tree = _name(path), _parsed(path)
        yield from docstrings(name, tree)
        if name.startswith(SPOKEN):
            yield from literals(name, tree)


def fragments() -> tuple[int, int]:
    """Count docstrings of product functions that begin as a fragment, and all of them."""
    paths = [path for path in _files(SOURCE) if "simulation" not in path.parts]
    found = [one for path in paths for one in docstrings(_name(path), _parsed(path)) if one.docstring_of_function]
    return sum(bool(FRAGMENT.match(one.words)) for one in found), len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="list the sentences of files whose path contains one of these")
    parser.add_argument("--mark", choices=["fragment", *MARKS], help="only this mark")
    wanted = parser.parse_args()
    every = [one for one in find([*documents(), *code()]) if wanted.mark in (None, one.mark)]
    if wanted.files:
        for one in every:
            if any(part in one.file for part in wanted.files):
                print(f"{one.file}:{one.line}: {one.mark}: {one.sentence}")
        return
    for file, count in sorted(Counter(one.file for one in every).items(), key=lambda item: (-item[1], item[0])):
        marks = Counter(one.mark for one in every if one.file == file)
        print(f"{count:5} {file}  {', '.join(f'{mark} {n}' for mark, n in marks.most_common())}")
    begun, total = fragments()
    print(
        f"{len(every):5} in all: {', '.join(f'{mark} {n}' for mark, n in Counter(o.mark for o in every).most_common())}"
    )
    print(f"{begun} of {total} docstrings of functions begin as a fragment ({100 * begun / total:.1f} %)")


if __name__ == "__main__":
    main()
