"""A command with which an agent tries the only way out of its environment."""

from __future__ import annotations


def asking(*hosts: str) -> str:
    """Write a script that prints each host and the proxy's status for it."""
    return f"""python3 - <<'END'
import os, socket, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
for host in {hosts!r}:
    with socket.create_connection((proxy.hostname, proxy.port)) as near:
        near.sendall(f"CONNECT {{host}}:443 HTTP/1.1\\r\\n\\r\\n".encode())
        print(host, near.recv(4096).split()[1].decode())
END
"""
