"""The lock of the data directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.store.data_directory import DataDirLock

HOLDER = """
import sys
from pathlib import Path
from bot.store.sqlite.backend import Checkpoints
from bot.store.data_directory import DataDirLock

with DataDirLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.acceptance("F03")
def test_a_second_process_is_refused_by_number_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(StoreError, match=rf"already running \(pid {holder.pid}\)"), DataDirLock(tmp_path):
        pass
    holder.kill()
    holder.communicate(timeout=10)
    with DataDirLock(tmp_path):
        assert (tmp_path / "lock").read_text() == str(os.getpid())
    with DataDirLock(tmp_path):
        pass
