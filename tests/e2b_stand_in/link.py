"""The host's end of the socket to a guest: requests with descriptors out, answers and exits in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

HEAD = 4


class GuestError(Exception):
    """A refusal by the guest, in Connect's terms."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class GuestGone(Exception):
    """The machine stopped under a request."""


class Link:
    def __init__(self, sock: socket.socket, on_exit: Callable[[int, int], None]) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._on_exit = on_exit
        self._sending = asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], list[int]]]] = {}
        self._number = 0
        self._data = bytearray()
        self._fds: list[int] = []
        self._closed = False
        asyncio.get_running_loop().add_reader(sock.fileno(), self._readable)

    async def ask(self, do: str, *, fds: Sequence[int] = (), **values: Any) -> tuple[dict[str, Any], list[int]]:
        if self._closed:
            raise GuestGone
        self._number += 1
        number = self._number
        answer: asyncio.Future[tuple[dict[str, Any], list[int]]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._send({"do": do, "number": number, **values}, list(fds))
            return await answer
        except (BrokenPipeError, ConnectionError) as error:
            raise GuestGone from error
        finally:
            self._waiting.pop(number, None)

    async def fd(self, do: str, path: str, user: str = "user") -> int:
        _, fds = await self.ask(do, path=path, user=user)
        return fds[0]

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        asyncio.get_running_loop().remove_reader(self._sock.fileno())
        self._sock.close()
        for fd in self._fds:
            os.close(fd)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(GuestGone())

    async def _send(self, message: dict[str, Any], fds: list[int]) -> None:
        data = json.dumps(message).encode()
        async with self._sending:
            while True:
                with contextlib.suppress(BlockingIOError):
                    socket.send_fds(self._sock, [struct.pack("!I", len(data))], fds)
                    break
                await asyncio.sleep(0.005)
            await asyncio.get_running_loop().sock_sendall(self._sock, data)

    def _readable(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._sock, 1 << 16, 8)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self.close()
            return
        self._data += data
        self._fds += fds
        while (message := self._message()) is not None:
            self._take(message)

    def _message(self) -> dict[str, Any] | None:
        if len(self._data) < HEAD:
            return None
        size = int.from_bytes(self._data[:HEAD])
        if len(self._data) < HEAD + size:
            return None
        message: dict[str, Any] = json.loads(self._data[HEAD : HEAD + size])
        del self._data[: HEAD + size]
        return message

    def _take(self, message: dict[str, Any]) -> None:
        if "exited" in message:
            self._on_exit(message["exited"], message["status"])
            return
        count = message["fds"]
        fds, self._fds = self._fds[:count], self._fds[count:]
        answer = self._waiting.get(message["number"])
        if answer is None or answer.done():
            for fd in fds:
                os.close(fd)
        elif "code" in message:
            answer.set_exception(GuestError(message["code"], message["error"]))
        else:
            answer.set_result((message, fds))
