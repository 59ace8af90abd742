"""`forgehand`, and `python -m bot`."""

from __future__ import annotations

import errno
import os
import sys

from bot.cli.main import app


def main() -> None:
    try:
        app()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.stderr.write(f"Nothing can be written any more: {error.strerror}.\n")
        sys.exit(1)
    finally:
        _let_go_of_stdout()


def _let_go_of_stdout() -> None:
    """Whoever read it (`head`, for one) may have gone: that is no error worth a traceback at the very end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
