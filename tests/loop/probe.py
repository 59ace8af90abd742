"""`python -m tests.loop.probe HOST PORT`: asks `/healthz` over and over, a new connection each time; a line of JSON
for each line read from stdin says how long the slowest answer took since the last one, and what went wrong."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time

EVERY_SECONDS = 0.05
PATIENCE_SECONDS = 120.0


class Probe:
    def __init__(self, host: str, port: int) -> None:
        self._at = (host, port)
        self._lock = threading.Lock()
        self._slowest, self._asked, self._refused = 0.0, 0, 0
        self._began = 0.0
        """Of the question that is not answered yet."""

    def run(self) -> None:
        while True:
            self._began = began = time.monotonic()
            status = self._ask()
            with self._lock:
                self._began = 0.0
                self._asked += 1
                self._refused += status != 200
                self._slowest = max(self._slowest, time.monotonic() - began)
            time.sleep(EVERY_SECONDS)

    def take(self) -> dict[str, float]:
        with self._lock:
            under_way = time.monotonic() - self._began if self._began else 0.0
            found = {
                "slowest": max(self._slowest, under_way),
                "asked": self._asked,
                "refused": self._refused,
            }
            self._slowest, self._asked, self._refused = 0.0, 0, 0
        return found

    def _ask(self) -> int:
        connection = http.client.HTTPConnection(*self._at, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()


def main() -> None:
    probe = Probe(sys.argv[1], int(sys.argv[2]))
    threading.Thread(target=probe.run, daemon=True).start()
    for _ in sys.stdin:
        print(json.dumps(probe.take()), flush=True)


if __name__ == "__main__":
    main()
