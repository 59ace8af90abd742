"""Builds the system call filter of a box as raw BPF, for x86_64 and aarch64.

It closes what namespaces leave open: address families that network namespaces do not confine (AF_VSOCK reaches the
hypervisor), nested user namespaces, kernel interfaces with a long record of holes, and typing into a terminal.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from errno import EAFNOSUPPORT, ENOSYS, EPERM

ALLOWED_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK

DENIED_IOCTLS = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: put characters into a terminal's input

NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* bit that clone() takes

# From 424 on all architectures share one table.
_DENIED_EVERYWHERE: Mapping[str, int] = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}

# The numbers of x86_64 and of aarch64.
_DENIED: Mapping[str, tuple[int, int]] = {
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "lookup_dcookie": (212, 18),
}

_DENIED_X86_ONLY: Mapping[str, int] = {"uselib": 134, "modify_ldt": 154, "iopl": 172, "ioperm": 173}


@dataclass(frozen=True)
class Architecture:
    audit: int
    socket: int
    ioctl: int
    clone: int
    denied: tuple[int, ...]
    has_x32: bool
    clone3: int = 435


def _denied(column: int, extra: Sequence[int] = ()) -> tuple[int, ...]:
    return (*(pair[column] for pair in _DENIED.values()), *_DENIED_EVERYWHERE.values(), *extra)


ARCHITECTURES: Mapping[str, Architecture] = {
    "x86_64": Architecture(0xC000003E, 41, 16, 56, _denied(0, tuple(_DENIED_X86_ONLY.values())), has_x32=True),
    "aarch64": Architecture(0xC00000B7, 198, 29, 220, _denied(1), has_x32=False),
}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data (low words)
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_X32_BIT = 0x40000000

Instruction = tuple[int, int, int, int]


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, 0x00050000 | error)


def _when_equal(value: int, then: Sequence[Instruction]) -> list[Instruction]:
    return [(_EQUAL, 0, len(then), value), *then]


def program(machine: str) -> list[Instruction]:
    """Return the filter's instructions; KeyError for a machine without a table."""
    arch = ARCHITECTURES[machine]
    allow = (_RETURN, 0, 0, _ALLOW)
    families = [step for family in ALLOWED_FAMILIES for step in _when_equal(family, [allow])]
    ioctls = [step for command in DENIED_IOCTLS for step in _when_equal(command, [_refuse(EPERM)])]
    steps: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, arch.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if arch.has_x32:
        steps += [(_AT_LEAST, 0, 1, _X32_BIT), _refuse(ENOSYS)]
    steps += _when_equal(arch.socket, [(_LOAD, 0, 0, _FIRST), *families, _refuse(EAFNOSUPPORT)])
    steps += _when_equal(arch.ioctl, [(_LOAD, 0, 0, _SECOND), *ioctls, allow])
    cloning = [(_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, NEW_NAMESPACES), _refuse(EPERM), allow]
    steps += _when_equal(arch.clone, cloning)
    # Its flags are in memory, where a filter cannot look; libc falls back to clone() on ENOSYS.
    steps += _when_equal(arch.clone3, [_refuse(ENOSYS)])
    for number in arch.denied:
        steps += _when_equal(number, [_refuse(EPERM)])
    return [*steps, allow]


def compiled(machine: str) -> bytes:
    """Encode the program for bubblewrap's `--seccomp`: an array of struct sock_filter."""
    return b"".join(struct.pack("=HBBI", *step) for step in program(machine))
