"""JSON log lines; each has the ids of its delivery or session and passes the redactor."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TextIO

_ABOUT: ContextVar[Mapping[str, str]] = ContextVar("about", default=MappingProxyType({}))
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
            **_ABOUT.get(),
            **{name: value for name, value in vars(record).items() if name not in _STANDARD},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return self._redact(json.dumps(line, default=str, ensure_ascii=False))


@contextlib.contextmanager
def about(**ids: str) -> Iterator[None]:
    """Add these ids to every line logged inside the block."""
    token = _ABOUT.set({**_ABOUT.get(), **ids})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def configure(
    redact: Callable[[str], str],
    *,
    stream: TextIO | None = None,
    level: int = logging.INFO,
    on_record: Callable[[logging.LogRecord], None] = lambda _: None,
) -> None:
    """Set up all logging of the process, ours and that of libraries."""

    def is_news(record: logging.LogRecord) -> bool:
        # Requests that we cut ourselves, at a stop, come as errors from the server.
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            return False
        on_record(record)
        return True

    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonFormatter(redact))
    handler.addFilter(is_news)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("httpx", "httpcore", "dbos", "sqlalchemy", "asyncio", "uvicorn", "git"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
