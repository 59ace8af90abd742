"""What becomes of a repository's `.claude`: names, heads, commands. `-k skills` runs this too."""

from __future__ import annotations

import time

import pytest
import yaml

from bot.errors import CommandError
from bot.knowhow import KnowHow, KnowHowFile, NamedCommand, asking, packing


def packed(**files: str) -> KnowHow:
    return packing.pack("repository", [KnowHowFile(f".claude/{path}", text.encode()) for path, text in files.items()])


def head(known: KnowHow, path: str) -> dict[str, object]:
    _, raw, _ = known.files[path].decode().split("---\n", 2)
    found = yaml.safe_load(raw)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "written",
    [
        "description: D\nhooks: {a: []}\nmodel: opus\nallowed-tools: Bash\ncontext: fork\nagent: x\neffort: max",
        'description: D\n"hooks":\n  PreToolUse: []\n',
        "? hooks\n: x\n? description\n: D\n",
        "{description: D, hooks: {}, permissionMode: bypassPermissions, mcpServers: {}}",
        "description: &a D\nhooks: *a\n",
        'description: "D\\nhooks: x"\n',
        "description: D\u2028hooks: x\n",
        "description: D\rhooks: x\n",
        "description: D\n\thooks: x\n",
        "description: 'D\n  hooks: x'\n---\nhooks: y\n",
        "description: Use this: when it [breaks\nhooks: x\n",
    ],
)
def test_skills_keep_only_harmless_keys_however_they_are_written(written: str) -> None:
    files = {"skills/s/SKILL.md": f"---\n{written}\n---\nBody", "agents/a.md": f"---\n{written}\n---\nBody"}
    known = packed(**files)
    assert set(head(known, "skills/s/SKILL.md")) == {"name", "description"}
    assert set(head(known, "agents/a.md")) == {"name", "description"}


@pytest.mark.quick("bot.knowhow")
def test_skills_are_named_by_their_folder_and_what_is_no_skill_is_left_out() -> None:
    known = packed(
        **{
            "skills/s/SKILL.md": "---\nname: other\ndisable-model-invocation: true\n---\n\n# What it is\n",
            "skills/s/ref/SKILL.md": "---\nhooks: x\n---\n",
            "skills/s/.mcp.json": "{}",
            "skills/none/x.md": "x",
            "skills/bad name/SKILL.md": "x",
            "agents/run.sh": "x",
            "commands/a b.md": "x",
        }
    )
    assert set(known.files) == {packing.MANIFEST, "skills/s/SKILL.md", "skills/s/ref/SKILL.md"}
    assert head(known, "skills/s/SKILL.md") == {
        "disable-model-invocation": True,
        "description": "What it is",
        "name": "s",
    }
    assert [(one.name, one.body) for one in known.commands] == [("s", "\n# What it is\n")]
    keys, unfit = known.left_out
    assert keys == "`hooks` in files of `.claude`, which Forgehand does not use"
    assert "skills/none/x.md" in unfit and unfit.endswith("no part of a skill, an agent or a command")


@pytest.mark.parametrize(
    "body", ["!!`rm x`", "```!!\nrm x\n```", "``!`!rm x", "!\u200b!`rm x`", "a!!!b" + "!" * 200_000]
)
def test_no_mark_by_which_reading_a_skill_would_run_a_command_is_left(body: str) -> None:
    text = packed(**{"skills/s/SKILL.md": body}).files["skills/s/SKILL.md"].decode().split("---\n", 2)[2]
    assert "!`" not in text and "```!" not in text and ("`" not in body or "rm x" in text)


def test_heads_of_skills_with_endless_values_are_read_in_no_time() -> None:
    written = f"---\ndescription: D\nhooks: [{'1,' * 1_650}1]\n---\nBody"
    began = time.monotonic()
    known = packed(**{f"commands/c{n}.md": written for n in range(300)})
    assert time.monotonic() - began < 12
    assert head(known, "commands/c7.md") == {"description": "D"}


COMMANDS = (
    NamedCommand("deploy", "", "repository", "To $1: $ARGUMENTS"),
    NamedCommand("team:release", "", "repository", "Release it."),
    NamedCommand("team:notes", "", "repository", "Notes."),
    NamedCommand("deploy", "", "account", "The account's."),
    NamedCommand("rounding", "", "repository", None),
)


@pytest.mark.parametrize(
    ("request_", "has"),
    [
        ("/deploy prod $ARGUMENTS $1", "To prod: prod $ARGUMENTS $1"),
        ("/DEPLOY", "To : "),
        ("/account:deploy now", "The account's.\n\nnow"),
        ("/repository:team:release", "Release it."),
        ("/release\nwith care", "Release it.\n\nwith care"),
        (
            "/rounding of totals",
            "Use the skill `repository:rounding` (call the tool Skill with that name).\n\nof totals",
        ),
        ("/etc/passwd is readable", "/etc/passwd is readable"),
        ("fix /deploy", "fix /deploy"),
    ],
)
def test_commands_of_skills_are_written_out(request_: str, has: str) -> None:
    assert asking.written_out(request_, COMMANDS, "/claude").endswith(has)


@pytest.mark.parametrize(
    ("name", "known", "says"),
    [
        ("depoly", COMMANDS, "Did you mean `/claude /deploy`"),
        ("rel", COMMANDS, "Did you mean `/claude /team:release`?"),
        ("zzz", COMMANDS, "It has `/deploy`, `/team:release`"),
        ("zzz", (), "its base branch has nothing in `.claude/commands`"),
    ],
)
def test_unknown_commands_of_skills_are_answered_with_near_ones(
    name: str, known: tuple[NamedCommand, ...], says: str
) -> None:
    with pytest.raises(CommandError) as caught:
        asking.written_out(f"/{name} now", known, "/claude")
    assert says in str(caught.value)


def test_a_command_that_would_grow_without_end_is_refused_before_it_is_built() -> None:
    endless = NamedCommand("x", "", "repository", "$ARGUMENTS" * 5_000)
    with pytest.raises(CommandError, match="longer than"):
        asking.written_out("/x " + "y" * 50_000, (endless,), "/claude")
