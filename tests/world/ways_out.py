"""What a command of an agent asks of the one way out of its environment."""

from __future__ import annotations


def asking(*hosts: str) -> str:
    """Prints each host and the status with which the proxy answers for it."""
    return f"""python3 - <<'END'
import os, socket, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
for host in {hosts!r}:
    with socket.create_connection((proxy.hostname, proxy.port)) as near:
        near.sendall(f"CONNECT {{host}}:443 HTTP/1.1\\r\\n\\r\\n".encode())
        print(host, near.recv(4096).split()[1].decode())
END
"""
