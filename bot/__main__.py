"""`forgehand`, and `python -m bot`."""

from __future__ import annotations

import errno
import logging
import os
import sys

from bot.cli.main import app

FOREIGN_THREADS = "pyqwest"
"""What E2B's SDK speaks HTTP with. Its threads are Rust's: one that has something to tell Python while the interpreter
goes away is ended there by force, which takes the whole process with it (SIGABRT, seen once in 70 ends under load)."""


def main() -> None:
    try:
        app(prog_name="forgehand")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.stderr.write(f"Nothing can be written any more: {error.strerror}.\n")
        sys.exit(1)
    except SystemExit as ended:
        if FOREIGN_THREADS in sys.modules and isinstance(ended.code, int | None):
            _let_go_of_stdout()
            _leave(ended.code or 0)
        raise
    finally:
        _let_go_of_stdout()


def _leave(code: int) -> None:
    """At once: commands have closed what they had opened, and nothing is left to the interpreter's own end."""
    sys.stderr.flush()
    logging.shutdown()
    os._exit(code)


def _let_go_of_stdout() -> None:
    """Whoever read it (`head`, for one) may have gone: that is no error worth a traceback at the very end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
