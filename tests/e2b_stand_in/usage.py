"""How much of CPU, memory and disk a sandbox uses, in E2B's form."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.e2b_stand_in.clock import Clock

CPUS, MEMORY_MB, DISK_MB = 2, 2048, 10240


class Usage:
    """Samples are taken when they are asked for; the share of CPU is that since the sample before."""

    def __init__(self, clock: Clock, folder: Path) -> None:
        self._clock = clock
        self._folder = folder
        self._ticks = 0
        self._when = clock.now()
        self.samples: list[dict[str, Any]] = []

    def sample(self, pids: Iterable[int]) -> None:
        ticks = memory = 0
        for pid in pids:
            try:
                fields = (
                    Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
                )
            except OSError:
                continue
            ticks += int(fields[11]) + int(fields[12])
            memory += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        now = self._clock.now()
        busy = max(0, ticks - self._ticks) / os.sysconf("SC_CLK_TCK") / max(now - self._when, 0.001)
        self._ticks, self._when = ticks, now
        self.samples.append(
            {
                "timestamp": datetime.fromtimestamp(now, UTC).isoformat(),
                "timestampUnix": int(now),
                "cpuCount": CPUS,
                "cpuUsedPct": round(min(100.0, busy * 100 / CPUS), 2),
                "memUsed": memory,
                "memTotal": MEMORY_MB << 20,
                "memCache": 0,
                "diskUsed": _disk(self._folder),
                "diskTotal": DISK_MB << 20,
            }
        )


def _disk(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(where, name).lstat().st_blocks * 512
            except OSError:
                continue
    return total
