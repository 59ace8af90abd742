"""What holds in every kind of environment when a turn is over: the agent was nobody else, and nothing of it goes on."""

from __future__ import annotations

import os

import pytest

from sandbox.primitives import EnvironmentPrimitives, EnvironmentProvider, Liveness
from tests.contract.makers import SPEC
from tests.world.environments import shell, until_size

WAYS_UP = """import os, subprocess
found = [os.getuid(), os.geteuid()]
for climb in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0)):
    try:
        climb()
    except OSError:
        pass
for name in (["sudo", "-n"], ["su", "-c"], ["pkexec"], ["doas", "-n"]):
    try:
        said = subprocess.run([*name, "id -u" if name[0] == "su" else "id"], capture_output=True, timeout=5, stdin=-3)
    except (OSError, subprocess.TimeoutExpired):
        continue
    found += [0] if said.stdout.startswith((b"0", b"uid=0")) else []
print(*found, os.getuid(), os.geteuid())
"""


@pytest.mark.review("e2b-1")
async def test_the_agent_is_never_root(env: EnvironmentPrimitives, request: pytest.FixtureRequest) -> None:
    """Plain processes are whoever runs us, and nobody more; of everything else root is somebody else."""
    said = (await env.exec(["python3", "-c", WAYS_UP])).stdout.split()
    assert said, "it was asked"
    if request.node.callspec.params["make"] == "plain":
        assert set(said) <= {str(os.getuid()).encode(), b"0" if os.getuid() == 0 else b""}
    else:
        assert b"0" not in said


DAEMONS = (
    "setsid sh -c '{tick}' &",
    "(setsid sh -c '{tick}' &) &",
    "nohup sh -c '{tick}' > /dev/null 2>&1 &",
    "(trap '' HUP TERM INT; exec setsid setsid sh -c '{tick}') &",
)


@pytest.mark.review("e2b-1")
@pytest.mark.parametrize("how", ["rest", "still"])
async def test_nothing_of_the_agent_outlives_its_turn(provider: EnvironmentProvider, how: str) -> None:
    env = await provider.create("one", SPEC)
    files = [f"{env.layout.out}/ticks-{number}" for number in range(len(DAEMONS) * 2)]

    def daemons(first: int) -> str:
        tick = "while :; do echo . >> {}; sleep 0.02; done"
        made = (daemon.format(tick=tick.format(file)) for daemon, file in zip(DAEMONS, files[first:], strict=False))
        return " ".join(made)

    # Some by a run that goes on, and some by one that has ended before.
    await env.launch("run", shell(f"{daemons(0)} exec sleep 300"))
    await env.launch("earlier", shell(f"{daemons(len(DAEMONS))} sleep 0.2"))
    for file in files[: len(DAEMONS)]:
        await until_size(env, file, 4)
    if how == "rest":
        await provider.rest("one")
        env = await provider.attach("one")
    else:
        await env.still()
    before = [await env.stat(file) for file in files]
    await env.exec(["sleep", "0.3"])
    assert [await env.stat(file) for file in files] == before
    for name in ("run", "earlier"):
        assert await env.liveness(name) is Liveness.EXITED
