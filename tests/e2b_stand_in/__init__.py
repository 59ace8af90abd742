"""A stand-in for E2B, real enough for E2B's own SDK: an API, sandboxes that are process trees, and envd in each.

What it does not have, or has otherwise than E2B:
- sandboxes share the host's network: rules are checked and kept for reading, not enforced;
- `root` and `user` are two users inside where root of this machine runs it; elsewhere both are uid 1000. Only folders
  of `disk.DISK` can be written. sshd listens on a Unix socket, sudo is the host's and has no power;
- no terminals (PTY), no volumes, forks, logs, or webhooks; template builds build nothing; a snapshot is of the disk;
- a port inside is a port of the host: `http://<port>-<id>.localhost:<port of sandbox_url>/`, or the headers
  E2b-Sandbox-Id and E2b-Sandbox-Port at `sandbox_url`, reach it (HTTP and WebSocket), and so does 127.0.0.1 directly.
"""

from tests.e2b_stand_in.faults import Call, Fault, Faults
from tests.e2b_stand_in.registry import Limits
from tests.e2b_stand_in.sandbox import Sandbox
from tests.e2b_stand_in.stand_in import E2BStandIn

__all__ = ["Call", "E2BStandIn", "Fault", "Faults", "Limits", "Sandbox"]
