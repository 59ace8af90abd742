"""As E2B leaves its images: `user` is not root, and has only to ask."""

from __future__ import annotations

import pytest
from e2b import AsyncSandbox

from tests.e2b_stand_in import E2BStandIn, users
from tests.e2b_stand_in.conftest import until

pytestmark = pytest.mark.skipif(not users.are_two(), reason="two users inside can only be had by root of this machine")
LOG_IN = """python3 -c '
import json, socket
at = socket.socket(socket.AF_UNIX)
at.connect("/run/sshd.sock")
at.sendall(json.dumps({"user": "root", "password": "", "command": "id -u"}).encode() + b"\\n")
print(at.makefile().read())'"""


async def test_there_are_two_users(box: AsyncSandbox) -> None:
    said = [(await box.commands.run("echo $(id -u) $HOME; pwd", user=user)).stdout for user in ("root", "user")]
    assert said == ["0 /root\n/root\n", "1000 /home/user\n/home/user\n"]
    await box.files.write("/opt/of-root", "", user="root")
    await box.files.write("of-user", "")
    owners = (await box.commands.run("stat -c %U /opt/of-root of-user; cat /opt/of-root")).stdout
    assert owners == "root\nuser\n"
    info = await box.files.get_info("of-user")
    assert (info.owner, info.group, info.permissions) == ("user", "user", "-rw-r--r--")


async def test_root_executes_what_everybody_may_lay_in_usr_local(box: AsyncSandbox) -> None:
    await box.commands.run(
        "printf '#!/bin/sh\\nid -u > /tmp/became\\nexec /usr/bin/nice \"$@\"\\n' > /usr/local/bin/nice"
    )
    await box.commands.run("chmod 755 /usr/local/bin/nice; true")
    await box.commands.run("true", user="root")
    assert (await box.commands.run("cat /tmp/became")).stdout == "0\n"


async def test_a_boot_executes_it_too(e2b: E2BStandIn, box: AsyncSandbox) -> None:
    await box.commands.run("echo '#!/bin/sh\nid -u > /tmp/booted' > /usr/local/bin/e2b-seed-certs")
    await e2b.registry.pause(box.sandbox_id, keep_memory=False)
    again = await AsyncSandbox.connect(box.sandbox_id)
    assert (await again.commands.run("cat /tmp/booted")).stdout == "0\n"


async def test_sshd_lets_root_in_without_a_password_and_comes_back_when_it_is_killed(box: AsyncSandbox) -> None:
    async def answers() -> bool:
        return (await box.commands.run(f"{LOG_IN} 2>&1 || true")).stdout.strip() == "0"

    await until(answers)
    await box.commands.run("pkill -9 -x sshd", user="root")
    await until(answers)
    await box.commands.run("chmod 600 /usr/sbin/sshd; pkill -9 -x sshd; sleep 0.2", user="root")
    assert not await answers()
