"""What a folder takes of its disk: counted to the end, or said not to be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox import files

pytestmark = pytest.mark.review("suspected-1")


def test_bytes_and_files_are_counted_and_a_file_of_two_names_once(tmp_path: Path) -> None:
    empty = files.measured_disk(tmp_path)
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/two\nlines").write_bytes(b"x" * 100_000)
    os.link(tmp_path / "deep/er/two\nlines", tmp_path / "again")
    (tmp_path / "root").symlink_to("/")
    found = files.measured_disk(tmp_path)
    assert empty.whole and found.whole
    assert found.files - empty.files == 5
    assert 100_000 <= found.bytes - empty.bytes < 130_000


def test_what_is_not_counted_in_time_is_not_nothing(tmp_path: Path) -> None:
    for number in range(2_000):
        (tmp_path / f"{number}").touch()
    assert files.measured_disk(tmp_path, seconds=0.0).whole is False
    assert files.measured_disk(tmp_path).files == 2_001


def test_what_cannot_be_read_is_not_nothing(tmp_path: Path) -> None:
    assert files.measured_disk(tmp_path / "absent").whole is False
