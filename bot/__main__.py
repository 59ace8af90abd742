"""`forgehand`, and `python -m bot`."""

from __future__ import annotations

import errno
import logging
import os
import sys

from bot.cli.main import app

FOREIGN_THREADS = "pyqwest"
"""The HTTP library of E2B's SDK. If one of its Rust threads calls into Python while the interpreter shuts down, the
whole process aborts (SIGABRT, seen once in 70 exits under load)."""


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
            sys.stderr.flush()
            logging.shutdown()
            os._exit(ended.code or 0)  # commands have closed what they opened: nothing is left for the interpreter
        raise
    finally:
        _let_go_of_stdout()


def _let_go_of_stdout() -> None:
    """Ignore a reader that has gone, such as `head`: it needs no traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
