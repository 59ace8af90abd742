"""What a new machine's disk holds: Debian's files as E2B's build leaves them, with all that lets a user become root."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.e2b_stand_in.users import USER, outside

HOME = "/home/user"
DISK = {
    "home": HOME,
    "tmp": "/tmp",
    "var-tmp": "/var/tmp",
    "opt": "/opt",
    "work": "/work",
    "var-lib": "/var/lib",
    "var-forgehand": "/var/forgehand",
    "etc": "/etc",
    "root": "/root",
    "usr-local": "/usr/local",
    "usr-sbin": "/usr/sbin",
}
"""The folders that can be written, and where they are inside; everything else is the host's, read-only."""
MODES = {"tmp": 0o1777, "var-tmp": 0o1777, "root": 0o700}
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n",
    "shadow": "root::20000:0:99999:7:::\ndaemon:*:20000:0:99999:7:::\nuser::20000:0:99999:7:::\n",
    "group": "root:x:0:\nsudo:x:27:user\nuser:x:1000:\n",
    "hosts": "127.0.0.1 localhost e2b.local\n::1 localhost\n",
    "hostname": "e2b.local\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    # Debian's: a login shell forgets the PATH that it was given. The last line is E2B's.
    "profile": 'if [ "$(id -u)" -eq 0 ]; then\n  PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\n'
    'else\n  PATH="/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"\nfi\nexport PATH\n'
    "if [ -f ~/.bashrc ]; then . ~/.bashrc; fi; if [ -f ~/.profile ]; then . ~/.profile; fi\n",
    "sudoers": "root ALL=(ALL:ALL) ALL\nuser ALL=(ALL:ALL) NOPASSWD: ALL\n",
    "ssh/sshd_config": "PermitRootLogin yes\nPermitEmptyPasswords yes\nPasswordAuthentication yes\n",
    "systemd/system/envd.service": "[Service]\nExecStartPre=/usr/local/bin/e2b-seed-certs\nExecStart=/usr/bin/envd\n",
}
CLOSED = {"shadow": 0o640, "sudoers": 0o440}
USR_LOCAL = ("bin", "sbin", "lib", "etc", "share", "lib/python3.11/dist-packages")
SEED = "#!/bin/sh\n# runs as root at each boot\nexit 0\n"
SSHD = "#!/bin/sh\n# the stand-in serves in its place as long as this can be executed\n"


def lay_out(folder: Path) -> None:
    """Once: a machine that boots again finds its disk as it was."""
    if (folder / "etc" / "passwd").exists():
        return
    for name in DISK:
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name).chmod(MODES.get(name, 0o755))
    for name, text in ETC.items():
        _write(folder / "etc" / name, text, CLOSED.get(name, 0o644))
    for name in USR_LOCAL:
        (folder / "usr-local" / name).mkdir(parents=True, exist_ok=True)
    _write(folder / "usr-local" / "bin" / "e2b-seed-certs", SEED, 0o755)
    _write(folder / "usr-sbin" / "sshd", SSHD, 0o755)
    subprocess.run(["chmod", "-R", "777", str(folder / "usr-local")], check=True)  # the last step of each build
    os.chown(folder / "home", outside(USER), outside(USER))


def copy(source: Path, target: Path) -> None:
    """With owners and modes."""
    target.mkdir(parents=True)
    save(source, target)


def save(source: Path, target: Path) -> None:
    """In the place of what was there."""
    for name in DISK:
        shutil.rmtree(target / name, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", *(str(source / name) for name in DISK), str(target)], check=True)


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
