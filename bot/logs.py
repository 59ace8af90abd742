"""JSON log lines with the ids that follow a request from webhook to sandbox; every line passes the redactor."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable
from typing import TextIO

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _JsonFormatter(logging.Formatter):
    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "at": f"{moment}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _STANDARD},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return self._redact(json.dumps(line, default=str, ensure_ascii=False))


def _is_news(record: logging.LogRecord) -> bool:
    """Requests that we cut ourselves, at a stop, come as errors from the server."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def configure(redact: Callable[[str], str], *, stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """All logging of the process goes through here, ours and the libraries'."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonFormatter(redact))
    handler.addFilter(_is_news)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("httpx", "httpcore", "dbos", "sqlalchemy", "asyncio", "uvicorn", "git"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
