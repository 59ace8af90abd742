"""The filter is run by a small interpreter of BPF, on both machines."""

from __future__ import annotations

import errno
import platform
import re
import struct
from pathlib import Path

import pytest

from sandbox.local import seccomp
from sandbox.local.seccomp import ARCHITECTURES, Architecture

ALLOW = 0x7FFF0000
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    data = struct.pack("=iIQ6Q", number, audit or ARCHITECTURES[machine].audit, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    steps = list(struct.iter_unpack("=HBBI", seccomp.compiled(machine)))
    loaded, at = 0, 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return int(value)
        else:
            hit = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            at += then if hit else otherwise


def refusal(error: int) -> int:
    return 0x00050000 | error


@pytest.fixture(params=sorted(ARCHITECTURES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def arch(machine: str) -> Architecture:
    return ARCHITECTURES[machine]


def test_families(machine: str, arch: Architecture) -> None:
    allowed = [family for family in range(60) if verdict(machine, arch.socket, family, 1, 0) == ALLOW]
    assert allowed == [1, 2, 10, 16]
    assert verdict(machine, arch.socket, 40, 1, 0) == refusal(errno.EAFNOSUPPORT)
    # The kernel looks at 32 bits: what stands above them must not make a family look like another one.
    assert verdict(machine, arch.socket, (1 << 32) | 40, 1, 0) == refusal(errno.EAFNOSUPPORT)


def test_terminal_input(machine: str, arch: Architecture) -> None:
    assert verdict(machine, arch.ioctl, 0, 0x5412) == refusal(errno.EPERM)
    assert verdict(machine, arch.ioctl, 0, (7 << 32) | 0x5412) == refusal(errno.EPERM)
    assert verdict(machine, arch.ioctl, 0, 0x541C) == refusal(errno.EPERM)
    assert verdict(machine, arch.ioctl, 0, 0x5413) == ALLOW


def test_clone_makes_processes_and_threads_but_no_namespaces(machine: str, arch: Architecture) -> None:
    assert verdict(machine, arch.clone, 0x01200011) == ALLOW  # fork()
    assert verdict(machine, arch.clone, 0x003D0F00) == ALLOW  # pthread_create()
    for bit in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, arch.clone, bit | 17) == refusal(errno.EPERM)
    assert verdict(machine, arch.clone3) == refusal(errno.ENOSYS)


def test_every_denied_call_is_denied_and_no_other(machine: str, arch: Architecture) -> None:
    special = {arch.socket, arch.clone3}
    refused = {number for number in range(600) if verdict(machine, number) == refusal(errno.EPERM)}
    assert refused == set(arch.denied)
    assert all(verdict(machine, number) == ALLOW for number in range(600) if number not in refused | special)


def test_another_machines_numbers_end_the_process(machine: str) -> None:
    assert verdict(machine, 0, audit=0x40000003) == 0x80000000


def test_x32_has_no_calls() -> None:
    assert verdict("x86_64", 0x40000000 | 41, 40) == refusal(errno.ENOSYS)


def test_a_program_is_short_enough(machine: str) -> None:
    assert len(seccomp.program(machine)) < 250


@pytest.mark.parametrize("name", sorted(HEADERS))
def test_numbers_are_those_of_the_kernels_headers(name: str) -> None:
    if not HEADERS[name].exists() or platform.machine() != "x86_64":
        pytest.skip("no headers here")
    text = HEADERS[name].read_text(encoding="utf-8")
    known = {
        found[1]: int(found[2]) for found in re.finditer(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", text, re.MULTILINE)
    }
    column = sorted(HEADERS, reverse=True).index(name)
    ours = {call: pair[column] for call, pair in seccomp._DENIED.items()} | dict(seccomp._DENIED_EVERYWHERE)
    assert {call: number for call, number in ours.items() if known.get(call, number) != number} == {}
    arch = ARCHITECTURES[name]
    assert [known[call] for call in ("socket", "ioctl", "clone", "clone3")] == [
        arch.socket,
        arch.ioctl,
        arch.clone,
        arch.clone3,
    ]
