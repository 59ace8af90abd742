"""A tree like that of a commit, with one file of ours in it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bot.git.run import Io, run_git


async def with_file(git_dir: Path, commit: str, path: str, content: bytes) -> str:
    blob = (await run_git(["hash-object", "-w", "--stdin"], git_dir, io=Io(stdin=content))).text
    with tempfile.TemporaryDirectory(dir=git_dir, prefix="index-") as folder:
        io = Io(env={"GIT_INDEX_FILE": f"{folder}/index"})
        await run_git(["read-tree", "--end-of-options", commit], git_dir, io=io)
        await run_git(["update-index", "--add", "--cacheinfo", f"100644,{blob},{path}"], git_dir, io=io)
        return (await run_git(["write-tree"], git_dir, io=io)).text
