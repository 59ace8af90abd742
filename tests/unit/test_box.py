"""Arguments of a box: pure, so a table will do."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import IsolationMissing, NotThere, SandboxError
from sandbox.local import folders, probe
from sandbox.local import launcher as boxes
from sandbox.local.folders import Folders
from sandbox.local.launcher import CLEAN, Box, BoxLimits
from sandbox.local.tools import Furniture

FURNITURE = Furniture((("/usr", "/usr"), ("/host/tool", "/opt/x/tool")), (("usr/bin", "/bin"),), "/bin", "py", "git")
BOX = Box(
    Folders(Path("/b"), Path("/s"), Path("/w")), FURNITURE, {"X": "a\nb"}, "/work", sockets=None, dies_with_parent=True
)


def options(**changes: object) -> list[str]:
    return boxes.arguments(dataclasses.replace(BOX, **changes), seccomp_fd=7, status_fd=8)  # type: ignore[arg-type]


def test_every_namespace_and_the_filter() -> None:
    found = options()
    for name in ("user", "ipc", "pid", "uts", "net"):
        assert f"--unshare-{name}" in found
    assert found[found.index("--seccomp") + 1] == "7"
    assert found[found.index("--cap-drop") + 1] == "ALL"
    assert {"--disable-userns", "--new-session", "--clearenv"} <= set(found)


def test_only_an_attached_box_dies_with_us() -> None:
    assert "--die-with-parent" in options()
    assert "--die-with-parent" not in options(dies_with_parent=False)


def test_sockets_are_bound_only_for_a_box_with_a_way_out_and_read_only() -> None:
    assert "/run/forgehand/sockets" not in options()[options().index("--proc") :]
    found = options(sockets="/host/sockets")
    place = found.index("/host/sockets")
    assert found[place - 1 : place + 2] == ["--ro-bind", "/host/sockets", "/run/forgehand/sockets"]


def test_what_is_writable_inside() -> None:
    found = options(sockets="/host/sockets")
    writable = [found[at + 2] for at, option in enumerate(found) if option == "--bind"]
    assert writable == ["/tmp", "/home/agent", "/work", "/run/forgehand/out"]
    assert not [option for option in found if "dev-bind" in option]
    assert found[found.index("--remount-ro") + 1] == "/dev"
    assert "/s" not in found  # our own state is never bound


def test_the_environment_is_set_over_a_clear_one() -> None:
    found = options()
    place = found.index("X")
    assert found[place - 1 : place + 2] == ["--setenv", "X", "a\nb"]
    assert found.index("--clearenv") < place


@pytest.mark.parametrize(
    "change", [{"env": {"X": "a\0--bind"}}, {"env": {"A=B": "c"}}, {"env": {"": "c"}}, {"cwd": "/\0"}]
)
def test_what_would_become_options_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(SandboxError):
        options(**change)


def test_encoding_ends_each_option_with_nul() -> None:
    assert boxes.encoded(["--chdir", "/ä\udcff"]) == b"--chdir\0/\xc3\xa4\xff\0"


def test_root_steps_down_and_limits_go_no_higher_than_ours() -> None:
    steps = boxes.prefix(61001, BoxLimits(processes=100), {"nofile": 1024})
    assert steps[steps.index("--reuid") + 1] == "61001"
    assert {"--nproc=100", "--nofile=1024", "--core=0", "--no-new-privs", "--bounding-set=-all"} <= set(steps)
    assert steps.index("prlimit") < steps.index("setpriv")


def test_an_ordinary_user_shares_one_number_of_processes_over_all_boxes() -> None:
    steps = boxes.prefix(None, BoxLimits(processes=100), {})
    assert "setpriv" not in steps
    assert f"--nproc={100 * boxes.SHARED_BY}" in steps


def test_the_forwarder_stands_before_the_command() -> None:
    found = boxes.forwarded(BOX, ["cmd", "-x"], name="turn-1")
    assert found[0] == "py"
    assert found[-3:] == ["--", "cmd", "-x"]
    assert "/run/forgehand/out/launch-turn-1.log" in found
    assert "--log" not in boxes.forwarded(BOX, ["cmd"])
    assert "/run/forgehand/sockets/egress.sock" in found
    alone = replace(BOX, sockets="/host/sockets", own="/host/ways/one")
    assert "/run/forgehand/own/egress.sock" in boxes.forwarded(alone, ["cmd"])
    options = boxes.arguments(alone, seccomp_fd=3, status_fd=4)
    at = options.index("/host/ways/one")
    assert options[at - 1 : at + 2] == ["--ro-bind", "/host/ways/one", "/run/forgehand/own"]


@pytest.mark.parametrize(
    ("path", "folder", "steps"),
    [
        ("/work/a/b", "work", ("a", "b")),
        ("/work", "work", ()),
        ("/home/agent/.claude/x", "home", (".claude", "x")),
        ("/run/forgehand/out/s", "out", ("s",)),
        ("/tmp/x", "tmp", ("x",)),
        ("/opt/forgehand/runner/x.py", "runner", ("x.py",)),
    ],
)
def test_paths_inside_have_a_folder_behind_them(path: str, folder: str, steps: tuple[str, ...]) -> None:
    assert BOX.folders.behind(path) == (f"/b/{folder}", steps, path.rpartition("/")[2])


@pytest.mark.parametrize(
    "path", ["", "work/x", "/", "/etc/passwd", "/work/../etc", "/workshop", "/home/agent2", "/work/\0"]
)
def test_other_paths_have_not(path: str) -> None:
    with pytest.raises(NotThere):
        BOX.folders.behind(path)


HOLDS = {
    "core_pattern": "Permission denied",
    "environ": sorted(CLEAN),
    "processes": 2,
    "interfaces": ["lo"],
    "outside": "Network is unreachable",
    "vsock": "Address family not supported by protocol",
    "uid": 1000,
}


def test_a_box_that_holds() -> None:
    assert probe.judge(HOLDS) == []


@pytest.mark.parametrize(
    "change",
    [
        {"core_pattern": None},
        {"environ": ["PATH", "ANTHROPIC_API_KEY"]},
        {"interfaces": ["eth0", "lo"]},
        {"outside": None},
        {"vsock": None},
        {"uid": 0},
        {"processes": 90},
    ],
)
def test_a_box_that_does_not(change: dict[str, object]) -> None:
    assert len(probe.judge({**HOLDS, **change})) == 1


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("bwrap: No permissions to create new namespace, likely because ...", "seccomp=unconfined"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
        ("bwrap: pivot_root: Operation not permitted", "do not help"),
        ("bwrap: setting up uid map: Permission denied", "AppArmor"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor"),
        ("bwrap: Unknown option --disable-userns", "0.8"),
        ("setpriv: setresuid failed: Operation not permitted", "CAP_SETUID"),
        ("something new", "by hand"),
    ],
)
def test_each_refusal_has_a_cure(said: str, advice: str) -> None:
    assert advice in probe.cure(said)


def test_where_boxes_can_live_nowhere_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a root file system that is read-only, as in a container."""
    monkeypatch.setattr(folders, "_FALLBACK", tmp_path / "is not there")
    with pytest.raises(IsolationMissing, match="choose another data directory"):
        folders.EnvironmentsFolder(tmp_path / ("long" * 40))
